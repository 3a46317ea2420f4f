"""Keeps CUDA tensors in each way that programs do without meaning to, and prints what memtrace finds.

    referrers.py list      memtrace.referrers(), as JSON
    referrers.py wait      waits for lines on its standard input, without the package: for memtrace ctl PID referrers
    referrers.py busy      as wait, and never stands still meanwhile
    referrers.py deaf N    as wait, but first keeps the interpreter's lock for N seconds
"""
import ctypes
import gc
import json
import select
import sys
import weakref

if sys.argv[1] == "list":
    import memtrace
import torch


class Server:
    def __init__(self):
        self.cache = {"answers": []}


class Slotted:
    __slots__ = ("held",)


def zeros(mebibytes):
    return torch.zeros(mebibytes << 18, device="cuda")


server, history, slotted, losses, last, staged, columns = Server(), {}, Slotted(), [], None, [], []


def closure():
    kept = zeros(5)
    return lambda: kept


def fail():
    big = zeros(6)
    raise ValueError(len(big))


def graph(weight):
    y = weight
    for _ in range(8):
        y = (y * 2).exp()
    losses.append(y.sum())


def keep_all():
    global last
    server.cache["answers"].extend(zeros(1) for _ in range(50))
    for number in range(20):
        history[number] = zeros(2)
    slotted.held = (zeros(7),)
    try:
        fail()
    except ValueError as error:
        last = error
    for _ in range(3):
        graph(weight)
    staged.extend(torch.empty(1 << 19, pin_memory=True) for _ in range(4))
    columns.extend(zeros(4).view(1024, 1024)[:, :16] for _ in range(2))


weight = torch.ones(1 << 18, device="cuda", requires_grad=True)
handler = closure()
keep_all()
trained = torch.ones(3 << 18, device="cuda", requires_grad=True)
spent = (trained * 2).exp().sum()  # the graph of which the backward pass has freed
spent.backward()
small = torch.ones(8192, device="cuda")
if sys.argv[1] != "list":
    watched = weakref.ref(slotted.held[0])
    print("ready", flush=True)
    if sys.argv[1] == "deaf":
        ctypes.PyDLL(None).sleep(int(sys.argv[2]))
    steps = 0
    while sys.argv[1] == "busy" and not select.select([0], [], [], 0)[0]:
        losses[0].detach() * 2
        steps += 1
    for _ in sys.stdin:
        slotted.held = None
        print("released", watched() is None, "memtrace" in sys.modules, flush=True)
    print("end", flush=True)
    sys.exit()

before, watched, count = torch.cuda.memory_allocated(), weakref.ref(slotted.held[0]), len(gc.get_objects())
local = zeros(9)
found = memtrace.referrers(limit=20, quiet=True)
few = memtrace.referrers(limit=2, budget=1, quiet=True)
del local
slotted.held = None
gc.collect()
print(json.dumps({
    "holders": [holder.as_dict() for holder in found],
    "few": len(few),
    "released": watched() is None,
    "allocated": torch.cuda.memory_allocated() - before,
    "version": torch.__version__,
}))
