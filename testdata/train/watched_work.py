"""Trains under everything of PyTorch's that tells what a program does, and prints what that told: with the library it must be the same.

    watched_work.py profile|modes|numbers|fork

Addresses, times and numbers of processes are left out.
"""
import collections
import contextlib
import gc
import json
import os
import re
import sys
import threading
import time
import warnings

import backward_threads
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

DEVICE = "cuda"
BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


def clean(name):
    return re.sub(r"0x[0-9a-f]+", "ADDRESS", str(name))


class Net(nn.Module):
    """Has a sparse gradient, whose parts only operators tell."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 16, sparse=True)
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x):
        return self.second(torch.relu(self.first(self.table(x).mean(1))))


def make():
    """A step that is no tensor of the device's: what such a one holds there nobody computes."""
    torch.manual_seed(0)
    net = Net().to(DEVICE)
    dense = [p for name, p in net.named_parameters() if "table" not in name]
    return net, torch.optim.SGD(dense, lr=0.1, momentum=0.9)


def train(net, optimizer, steps=4, after=lambda: None):
    for _ in range(steps):
        net.table.weight.grad = None
        loss = net(torch.zeros(4, 3, dtype=torch.long, device=DEVICE)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        after()
    return loss


def wait():
    """Who looks at a program from time to time does so between two lines."""
    until = time.monotonic() + 1.2
    while time.monotonic() < until:
        pass


def show_keys(profiler):
    """Bytes as a whole only: whose a free is depends on which of two threads gets on, and differs between plain runs."""
    rows = profiler.key_averages(group_by_input_shape=True)
    for row in sorted(rows, key=lambda row: (row.key, str(row.input_shapes))):
        print(clean(row.key), row.count, row.input_shapes if row.key != "[memory]" else "")
    print("bytes", sum(row.self_cpu_memory_usage for row in rows), sum(row.self_device_memory_usage for row in rows))


def show_export(profiler):
    """Kineto's own file: every event but for times, places and the threads' numbers in the system."""
    profiler.export_chrome_trace("trace.json")
    with open("trace.json") as file:
        text = re.sub(r"[\x00-\x1f]", " ", file.read())
    counts = collections.Counter()
    for event in json.JSONDecoder(strict=False).decode(text)["traceEvents"]:
        args = event.get("args", {})
        kept = {key: args[key] for key in ("Sequence number", "Fwd thread id", "Input Dims", "Input type", "Concrete Inputs", "Bytes", "Device Type", "Python module id") if key in args}
        if event.get("cat") not in ("Trace", "python_function") or "<memtrace>" in str(event):
            counts[event.get("ph"), event.get("cat"), clean(event.get("name")) if event.get("ph") != "M" else "", json.dumps(kept, sort_keys=True)] += 1
        elif event.get("cat") == "python_function":
            counts["function", clean(event.get("name"))] += 1
    for key, count in sorted(counts.items(), key=str):
        print(*key, count)


def profiles():
    work = make()
    with profile(activities=BOTH, record_shapes=True, profile_memory=True) as watched:  # from the first allocation but the model's on: whoever wakes up does so in here
        train(*work)
        wait()
        train(*work, steps=2)
    show_keys(watched)
    show_export(watched)
    print("stacks")
    with profile(activities=BOTH, record_shapes=True, profile_memory=True, with_stack=True, with_modules=True) as watched:
        train(*work)
    show_keys(watched)
    show_export(watched)
    print("schedule")
    seen = []
    with profile(activities=BOTH, schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=lambda p: seen.append(sorted((e.key, e.count) for e in p.key_averages()))) as watched:
        train(*work, steps=9, after=watched.step)
    print(len(seen), *seen, sep="\n")
    print("autograd")
    for options in {}, {"use_kineto": False}:
        with torch.autograd.profiler.profile(profile_memory=True, record_shapes=True, **options) as watched:
            train(*work)
        print(sorted((clean(e.key), e.count) for e in watched.key_averages()))
    with torch.autograd.profiler.emit_nvtx():
        train(*work)


def counting_modes():
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    counts = collections.Counter()

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            counts["function", getattr(function, "__name__", str(function))] += 1
            return function(*args, **(kwargs or {}))

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            counts["dispatch", str(function)] += 1
            return function(*args, **(kwargs or {}))

    saved = collections.Counter()

    def pack(x):
        saved["pack"] += 1
        return x

    def unpack(x):
        saved["unpack"] += 1
        return x

    return [("functions", Functions()), ("dispatch", Dispatch()), ("saved tensors", torch.autograd.graph.saved_tensors_hooks(pack, unpack))], counts, saved


def modes():
    """Each from a model's first step on, and while whoever looks from time to time does so."""
    listed, counts, saved = counting_modes()
    listed += [("anomaly", torch.autograd.detect_anomaly(check_nan=False)), ("one thread", torch.autograd.set_multithreading_enabled(False)), ("default device", torch.device(DEVICE))]
    for name, mode in listed:
        with mode:
            work = make()
            train(*work)
            wait()
            train(*work, steps=1)
        print(name, sorted(counts.items()), sorted(saved.items()))
        counts.clear(), saved.clear()
    torch.use_deterministic_algorithms(True, warn_only=True)
    train(*make())
    torch.use_deterministic_algorithms(False)
    net, optimizer = make()
    called = []
    torch.autograd.graph.register_multi_grad_hook([net.first.weight, net.second.weight], lambda grads: called.append(len(grads)))
    train(net, optimizer)
    print("multi grad hook", called)
    torch.cuda.memory._record_memory_history(stacks="python")
    train(*make())
    wait()
    history = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    actions = collections.Counter()
    for entry in history["device_traces"][0]:
        place = next((f for f in entry.get("frames", []) if f["filename"] == __file__), {"name": "", "line": 0})
        actions[entry["action"], entry["size"], place["name"], place["line"]] += 1
        if any("<memtrace>" in f["filename"] for f in entry.get("frames", [])):
            print("somebody else's frames", entry)
    print("history", sorted(actions.items()))
    traced()


def traced():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    def step(weight, x):
        y = torch.nn.functional.linear(x, weight).relu().sum()
        return torch.autograd.grad(y, weight)
    weight = torch.ones(8, 8, device=DEVICE, requires_grad=True)
    print(make_fx(step)(weight, torch.ones(4, 8, device=DEVICE)).code)
    with FakeTensorMode():
        net = nn.Linear(16, 8, device=DEVICE)  # moved there, a module of such tensors would have to be swapped
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        for _ in range(2):
            net(torch.ones(4, 16, device=DEVICE)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        print("fake", type(net.weight).__name__, type(net.weight.data).__name__)
    torch.set_default_dtype(torch.float64)
    print("dtype", train(*make()).dtype)
    torch.set_default_dtype(torch.float32)


def numbers():
    """Numbers that PyTorch gives to operators, as everyone may read them, and to threads, as profiles have them: in the order in which they first do something that is numbered."""
    x = torch.ones(8, 8, device=DEVICE)
    for _ in range(20):
        x = x + 1
    wait()
    for _ in range(20):
        x = x + 1  # of this thread nothing is recorded so far

    def work():
        leaf = torch.ones(8, 8, device=DEVICE, requires_grad=True)
        y = (leaf @ x).sum()
        print("operator", y.grad_fn._sequence_nr())
        y.backward()

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    work()
    with torch.autograd.profiler.profile(use_kineto=False) as watched:
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
        work()
    print(sorted({(event.name, event.thread, event.sequence_nr) for event in watched.function_events}))
    print("collector", gc.isenabled(), len(gc.callbacks), warnings.filters == warnings.filters)


def fork():
    """A process that has run no backward pass may fork, and its children may run them on the CPU. PyTorch refuses it once its threads for backward passes are there."""
    x = torch.ones(8, device=DEVICE)
    for _ in range(20):
        x = x + 1
    wait()
    for _ in range(20):
        x = x + 1
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            try:
                y = torch.ones(4, requires_grad=True)
                (y * 2).sum().backward()
                print("the child's gradient", y.grad.sum().item(), flush=True)
            except RuntimeError as error:
                print("the child", error, flush=True)
        os._exit(0)
    print(os.waitpid(child, 0)[1], float(x.sum() * 0))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    {"profile": profiles, "modes": modes, "numbers": numbers, "fork": fork}[sys.argv[1]]()
    backward_threads.wait()
