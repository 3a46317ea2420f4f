"""Keeps tensors in one of many ways, has memory refused, and prints how much is freed when it lets go of what it keeps, by its own count:

    kept_by.py CASE
"""
import gc
import json
import sys

import torch
from torch import nn

MEBI = 1 << 20
net = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.GELU())]).cuda()


def empty(mebibytes=10):
    return torch.empty(mebibytes * MEBI, dtype=torch.uint8, device="cuda")


def losses():
    """Losses with their graphs."""
    return [net(torch.randn(1024, 1024, device="cuda")).sum() for _ in range(8)]


def shared():
    """What another list holds, too, but for one."""
    global also
    kept = [empty() for _ in range(10)]
    also = kept[1:]
    return kept


def part():
    """A slice that another variable has."""
    global also
    kept = [empty() for _ in range(10)]
    also = kept[3]
    return kept


def parameters():
    """Graphs that have saved parameters, which the model has as well."""
    global wide
    wide = nn.Linear(8192, 8192, bias=False).cuda()
    return [wide(torch.randn(64, 8192, device="cuda", requires_grad=True)).sum() for _ in range(4)]


def hidden():
    """A state that is never detached, over many steps."""
    cell, state = nn.GRUCell(512, 512).cuda(), torch.zeros(2048, 512, device="cuda")
    for _ in range(12):
        state = cell(torch.randn(2048, 512, device="cuda"), state)
    return state


def both():
    """Losses and a state of one graph: neither has it alone."""
    global also
    cell, state, kept = nn.GRUCell(512, 512).cuda(), torch.zeros(2048, 512, device="cuda"), []
    for _ in range(12):
        state = cell(torch.randn(2048, 512, device="cuda"), state)
        kept.append(state.sum())
    also = state
    return kept


def lists():
    """A dictionary of lists."""
    return {"a": [empty(3) for _ in range(5)], "b": [empty(7) for _ in range(5)]}


def records():
    """A list of dictionaries of several tensors."""
    return [{"features": empty(3), "logits": empty(2), "more": [empty(1), empty(1)]} for _ in range(8)]


def views():
    """Views of one tensor."""
    whole = empty(64)
    return [whole[n * MEBI : (n + 1) * MEBI] for n in range(16)]


def viewed():
    """Views of a tensor that another variable has."""
    global also
    also = empty(64)
    return [also[n * MEBI : (n + 1) * MEBI] for n in range(16)] + [empty(4)]


class Result:
    def __init__(self):
        self.values, self.owner = empty(), self


def cycles():
    """Objects in cycles with a name."""
    return [Result() for _ in range(6)]


def hooked():
    """What hooks have of each layer's results: as many functions of one name as there are layers."""
    values = []

    def hook_of(number):
        def hook(module, inputs, output):
            values.append((number, output.detach()))

        return hook

    handles = [layer.register_forward_hook(hook_of(n)) for n, layer in enumerate(net)]
    with torch.no_grad():
        net(torch.randn(1024, 1024, device="cuda"))
    return Handles(handles)


class Handles:
    def __init__(self, handles):
        self.handles = handles

    def __del__(self):
        for handle in self.handles:
            handle.remove()


class Doubled(torch.autograd.Function):
    """Its contexts have tensors as attributes, and others that they have saved."""

    @staticmethod
    def forward(context, x):
        context.doubled = x * 2
        context.save_for_backward(x + 1)
        return x * 3

    @staticmethod
    def backward(context, gradient):
        return gradient * 2


def contexts():
    """A tensor that was computed by functions of the program's own."""
    state = torch.ones(2048, 1024, device="cuda", requires_grad=True) * 1
    for _ in range(8):
        state = Doubled.apply(state)
    return state


def packed():
    """A tensor whose graph has what hooks of the program made of what is saved."""
    state = torch.ones(2048, 1024, device="cuda", requires_grad=True) * 1
    with torch.autograd.graph.saved_tensors_hooks(lambda x: (x.shape, x.half()), lambda of: of[1].float()):
        for _ in range(8):
            state = (state * state).sin()
    return state


def leaves():
    """Losses of inputs that nothing else refers to, with their gradients."""
    inputs = [torch.ones(2048, 1024, device="cuda", requires_grad=True) for _ in range(6)]
    sums = [(x + 1).sum() for x in inputs]
    for x, one in zip(inputs, sums):
        one.backward(retain_graph=True)
        x.grad += 1
    return sums


also = None
kept = globals()[sys.argv[1]]()
try:
    torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError:
    pass
before = torch.cuda.memory_allocated()
del kept
gc.collect()
print(json.dumps({"freed": before - torch.cuda.memory_allocated()}))
