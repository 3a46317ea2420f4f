"""Keeps tensors until memory runs out, and prints what the program itself knows of that: how much is freed when it lets go.

    kept.py outputs     a validation loop keeps its outputs with their graphs, as an attribute
    kept.py total       the same by adding up losses in a local variable
    kept.py views       a view of each result is kept, in a global list
    kept.py garbage     objects in cycles that nothing refers to any more
    kept.py caught      exceptions of failed attempts are kept, and their frames
    kept.py deaf        another thread keeps Python's interpreter while memory runs out
    kept.py local      a variable of a function keeps a tensor of each pass; nothing is left when it has returned
    kept.py grow        as views, but ends before memory runs out
    kept.py restarts    schedulers of restarts are kept, and with them their optimizers; prints the bytes of what these have
    kept.py searched    the same, and has the library search in between
    kept.py steady      lets go of everything; kept.py many: keeps 6,000 small tensors
"""
import ctypes
import gc
import json
import sys
import threading

import torch
from torch import nn

MEBI = 1 << 20
net = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.GELU())]).cuda()


def batch():
    return torch.randn(1024, 1024, device="cuda")


class Validator:
    def __init__(self):
        self.validation_outputs = []

    def run(self):
        while True:
            self.validation_outputs.append({"feats": net(batch())})


def total():
    losses = 0
    try:
        while True:
            losses = losses + net(batch()).sum()
    except torch.OutOfMemoryError:
        pass
    before = torch.cuda.memory_allocated()
    losses = None
    say_freed(before)


features = []


def views(most=10**6):
    with torch.no_grad():
        for _ in range(most):
            features.append(net(batch())[:, 0])


class Result:
    def __init__(self):
        self.values = torch.empty(50 * MEBI, dtype=torch.uint8, device="cuda")
        self.owner = self


def garbage():
    while True:
        Result()


errors = []


def attempt(mebibytes):
    held = torch.empty(mebibytes * MEBI, dtype=torch.uint8, device="cuda")
    raise ValueError(held.shape)


def caught():
    while True:
        try:
            attempt(50)
        except ValueError as error:
            errors.append(error)


def deaf():
    def keep():
        for _ in range(3):
            ctypes.PyDLL(None).sleep(1)  # it gives the interpreter away only in between, and gets it back when the main thread asks for memory

    kept = [torch.empty(50 * MEBI, dtype=torch.uint8, device="cuda")]
    threading.Thread(target=keep).start()
    return kept, torch.empty(1 << 40, dtype=torch.uint8, device="cuda")


def local():
    global net
    own, net, kept = net, None, []
    with torch.no_grad():
        for _ in range(3000):
            own(batch())
            kept.append(torch.empty(MEBI >> 5, dtype=torch.uint8, device="cuda"))


schedulers = []


def restart(steps=4):
    optimizer = torch.optim.Adam(net.parameters())
    schedulers.append(torch.optim.lr_scheduler.ConstantLR(optimizer))
    for _ in range(steps):
        optimizer.zero_grad()
        net(batch()).sum().backward()
        optimizer.step()
        schedulers[-1].step()


def restarts(searched):
    for n in range(12):
        restart()
        if searched and n in (5, 11):
            room = ctypes.create_string_buffer(MEBI)
            if not ctypes.PyDLL(None).memtrace_referrers(64, room, MEBI):
                raise SystemExit("nothing was found")
    kept = [tensor for one in schedulers for state in one.optimizer.state.values() for tensor in state.values() if tensor.is_cuda]
    print(json.dumps({"before": torch.cuda.memory_allocated(), "freed": sum(tensor.nbytes for tensor in kept)}))


def freed(let_go):
    before = torch.cuda.memory_allocated()
    let_go()
    say_freed(before)


def say_freed(before):
    gc.collect()
    print(json.dumps({"before": before, "freed": before - torch.cuda.memory_allocated()}))


mode = sys.argv[1]
validator = Validator()
gc.disable()
if mode == "steady":
    views(40)
    features.clear()
elif mode == "grow":
    views(40)
elif mode == "many":
    features.extend(torch.empty(MEBI >> 8, dtype=torch.uint8, device="cuda") for _ in range(6000))
elif mode == "local":
    local()
elif mode in ("restarts", "searched"):
    restarts(mode == "searched")
else:
    try:
        {"outputs": validator.run, "total": total, "views": views, "garbage": garbage, "caught": caught, "deaf": deaf}[mode]()
    except torch.OutOfMemoryError:
        pass
    for kept in (validator.validation_outputs, features, errors):
        if kept:
            freed(kept.clear)
    if mode == "garbage":
        freed(lambda: None)
