"""What the training programs of MXNet's Gluon share: their options, and the sizes that their arrays must have, from shapes and types alone."""
import json
import os
import time

import mxnet
from mxnet import gluon
from mxnet.gluon.trainer import Trainer

import oracle


def parser(description):
    made = oracle.parser(description)
    made.add_argument("--optimizer", default="adam")
    made.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="of the optimizer, as JSON")
    made.add_argument("--hybridize", choices=["no", "yes", "static"], default="no")
    made.add_argument("--dtype", default="float32")
    made.add_argument("--devices", type=oracle.positive, default=1)
    made.add_argument("--batch", type=oracle.positive, default=8)
    return made


def wait_for_names(seconds=60):
    """Lets the library's adapter come, which takes longer than a short program on a busy machine. It comes after the first device memory."""
    if "libmemtrace" not in os.environ.get("LD_PRELOAD", "") or os.environ.get("MEMTRACE_ADAPTERS") == "none":
        return
    end = time.monotonic() + seconds
    while not any(type(part).__name__ == "after" for part in Trainer._update.__code__.co_consts) and time.monotonic() < end:
        time.sleep(0.02)


def contexts(options):
    oracle.need_devices(options.devices, mxnet.context.num_gpus())
    return [mxnet.gpu(i) for i in range(options.devices)]


def prepare(options, net):
    wait_for_names()
    if options.dtype != "float32":
        net.cast(options.dtype)
    if options.hybridize != "no":
        net.hybridize(static_alloc=options.hybridize == "static", static_shape=options.hybridize == "static")


def trainer(options, net):
    chosen = {name: json.loads(value) for name, value in (option.split("=", 1) for option in options.option)}
    return gluon.Trainer(net.collect_params(), options.optimizer, chosen)


def size(array):
    """Bytes of an array's elements."""
    total = array.dtype().itemsize
    for extent in array.shape:
        total *= extent
    return total


def state_arrays(state):
    if isinstance(state, mxnet.nd.NDArray):
        return [state]
    return [array for part in state or () for array in state_arrays(part)] if isinstance(state, (tuple, list)) else []


def sizes(net, trainer):
    """{device: {what: bytes}} of everything that has a name."""
    found = {}

    def add(what, name, array):
        found.setdefault(str(array.context.device_id), {})[f"{what}:{name}"] = size(array)

    for p in net.collect_params().values():
        auxiliary = p.name.endswith(("running_mean", "running_var"))
        for array in p.list_data():
            add("aux_state" if auxiliary else "in_arg", p.name, array)
        for array in p.list_grad() if p.grad_req != "null" else ():
            add("arg_grad", p.name, array)
    updaters = trainer._updaters if trainer else []
    if trainer and trainer._update_on_kvstore:
        updaters = [trainer._kvstore._updater]
    for updater in updaters:
        for index, state in updater.states.items():
            for i, array in enumerate(state_arrays(state)):
                add("state", f"{i}:{trainer._params[index].name}", array)
    return found


def finish(options, net, trainer, *alive):
    mxnet.nd.waitall()
    print(f"{options.steps} steps, {mxnet.context.gpu_memory_info(0)[0]} bytes free")
    oracle.finish(options, net, trainer, *alive, synchronize=mxnet.nd.waitall, counters=lambda: sizes(net, trainer))
