"""Takes memory in every place where operators run, and prints which operator each piece is expected to belong to:
size, 1 + the operator's number (0 none, -1 any), whether it is the one whose backward runs."""
import json
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

PIECE = 512
expected, kept = [], []


def take(op, backward):
    """Takes memory of a size that nothing else has."""
    size = (1000 + len(expected)) * PIECE
    kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    expected.append([size, op, backward])


def numbered(tensor):
    return tensor.grad_fn._sequence_nr() + 1


class Double(torch.autograd.Function):
    """Its backward is Python code: in the thread of the engine's, and on the caller's where the engine has none."""

    @staticmethod
    def forward(ctx, x):
        ctx.number = []
        numbers.append(ctx.number)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        recorded = torch.is_grad_enabled()
        doubled = gradient * 2
        take(numbered(doubled) if recorded else ctx.number[0], not recorded)
        return doubled


numbers = []


def double(x):
    y = Double.apply(x)
    numbers[-1].append(numbered(y))
    return y


class Again(nn.Module):
    """Is computed once more in the backward pass: its operators have numbers of their own then."""

    def __init__(self):
        super().__init__()
        self.runs = 0

    def forward(self, x):
        self.runs += 1
        y = x * 3
        if torch.is_grad_enabled():
            take(numbered(y), False)
        return y.sin()


def train(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main():
    parameter = nn.Parameter(torch.ones(1 << 12, device="cuda"))
    optimizer = torch.optim.SGD([parameter], lr=0.0)
    for _ in range(3):  # the layout of nodes is known by then
        train(optimizer, (parameter * 2).sum())
        time.sleep(0.3)
    expected.clear()

    y = double(parameter)
    take(numbered(y), False)  # the last operator that was recorded
    train(optimizer, double(y).sum())

    with torch.autograd.set_multithreading_enabled(False):
        train(optimizer, double(parameter).sum())

    for reentrant in False, True:
        again = Again()
        train(optimizer, checkpoint(again, parameter * 1, use_reentrant=reentrant).sum())
        assert again.runs == 2, again.runs

    handle = parameter.register_hook(lambda gradient: take(0, False))  # the node that sums up has no number
    train(optimizer, (parameter * 7).sum())
    handle.remove()

    torch.autograd.grad(double(parameter).pow(2).sum(), parameter, create_graph=True)  # its operators are recorded, too
    with torch.no_grad():
        take(-1, False)  # no node runs
    print(json.dumps(expected))


if __name__ == "__main__":
    main()
