"""Trains a multilayer perceptron by the Module API, and an embedding by an updater of the program's own."""
import json

import mxnet

import mxnet_oracle
import oracle

INPUTS, HIDDEN, CLASSES, BATCH, WORDS, WIDTH = 64, 256, 10, 16, 1000, 32


def size(array):
    return array.size * array.dtype().itemsize


def network():
    x = mxnet.sym.Variable("data")
    for i in range(2):
        x = mxnet.sym.FullyConnected(x, num_hidden=HIDDEN, name=f"fc{i}")
        x = mxnet.sym.BatchNorm(x, name=f"bn{i}", fix_gamma=False)
        x = mxnet.sym.Activation(x, act_type="relu", name=f"relu{i}")
    return mxnet.sym.SoftmaxOutput(mxnet.sym.FullyConnected(x, num_hidden=CLASSES, name="fc_out"), name="softmax")


def counters(module, updater, table, gradient):
    found = {}

    def add(name, array):
        if array.context.device_type != "gpu":  # where the local store of several devices keeps its own
            return
        device = found.setdefault(str(array.context.device_id), {})
        device[name] = device.get(name, 0) + size(array)

    group = module._exec_group
    for executor in group.execs:
        for name, array in executor.arg_dict.items():
            add(("in_arg:" if name in group.param_names else "data_entry:") + name, array)
        for name, array in executor.grad_dict.items():
            if array is not None:
                add("arg_grad:" + name, array)
        for name, array in executor.aux_dict.items():
            add("aux_state:" + name, array)
        for name, array in executor.output_dict.items():
            add("data_entry:" + name, array)
    kept = module._kvstore._updater if module._update_on_kvstore else module._updater
    for index, state in kept.states.items():
        add("state:0:" + (index if isinstance(index, str) else group.param_names[index // len(group.execs)]), state)
    add("state:0:7", updater.states[7])
    return found


def main():
    parser = oracle.parser(__doc__)
    parser.add_argument("--devices", type=oracle.positive, default=1)
    parser.add_argument("--kvstore", default="local")
    options = parser.parse_args()
    oracle.need_devices(options.devices, mxnet.context.num_gpus())
    contexts = [mxnet.gpu(i) for i in range(options.devices)]
    module = mxnet.mod.Module(network(), context=contexts)
    module.bind(data_shapes=[("data", (BATCH, INPUTS))], label_shapes=[("softmax_label", (BATCH,))])
    module.init_params(mxnet.init.Xavier())
    module.init_optimizer(kvstore=options.kvstore, optimizer="sgd", optimizer_params={"momentum": 0.9})
    batch = mxnet.io.DataBatch([mxnet.nd.ones((BATCH, INPUTS))], [mxnet.nd.zeros((BATCH,))])
    table = mxnet.nd.ones((WORDS, WIDTH), ctx=contexts[0])
    gradient = mxnet.nd.ones((WORDS, WIDTH), ctx=contexts[0])
    updater = mxnet.optimizer.get_updater(mxnet.optimizer.create("adagrad"))
    mxnet_oracle.wait_for_names()
    for _ in range(options.steps):
        oracle.step()
        module.forward(batch, is_train=True)
        module.backward()
        module.update()
        updater(7, gradient, table)
    mxnet.nd.waitall()
    print(json.dumps({"steps": options.steps}))
    oracle.finish(options, module, updater, table, gradient, synchronize=mxnet.nd.waitall, counters=lambda: counters(module, updater, table, gradient))


if __name__ == "__main__":
    main()
