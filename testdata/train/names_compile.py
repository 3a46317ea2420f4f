"""Compiled models and optimizers: prints what the compiler counted. With FILE also the account of names.

The library's script must break no graph and cause no second compilation.
"""
import collections
import json
import sys
import warnings

import torch
import torch._dynamo
from torch import nn

warnings.simplefilter("ignore")
_kept = []


def net(size):
    return nn.Sequential(nn.Linear(size, 64), nn.ReLU(), nn.Linear(64, 5)).cuda()


def train(model, optimizer, size, step=None, steps=6):
    step = step or optimizer.step
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(4, size, device="cuda")).sum().backward()
        step()


def compiled_model(oracle):
    compiled = torch.compile(net(20), backend="aot_eager")
    optimizer = torch.optim.Adam(compiled.parameters(), foreach=True)
    train(compiled, optimizer, 20)
    if oracle:
        oracle.module("compiled", compiled)
        oracle.optimizer(optimizer, compiled=compiled)
        oracle.mark("model")
    return compiled, optimizer


def compiled_optimizer(oracle):
    """Its steps tell nobody: that the model has its name at the end is what is left."""
    global plain
    plain = net(30)
    optimizer = torch.optim.Adam(plain.parameters(), foreach=True)
    train(plain, optimizer, 30, torch.compile(optimizer.step, backend="eager"))
    if oracle:
        oracle.module("plain", plain)
        oracle.optimizer(optimizer, plain=plain)
        oracle.mark("optimizer")
    return plain, optimizer


def compiled_step(oracle):
    """The whole of a step in one function."""
    whole = net(40)
    optimizer = torch.optim.SGD(whole.parameters(), lr=0.1, momentum=0.9)

    @torch.compile(backend="eager")
    def step():
        whole(torch.ones(4, 40, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(4):
        step()
    return whole, optimizer


def main():
    oracle = None
    if len(sys.argv) > 1:
        import names_oracle
        oracle = names_oracle.Oracle(sys.argv[1])
    for case in compiled_model, compiled_optimizer, compiled_step:
        torch._dynamo.reset()
        _kept.append(case(oracle))
        counted = {kind: dict(sorted(values.items())) for kind, values in sorted(torch._dynamo.utils.counters.items())
                   if isinstance(values, collections.Counter) and kind in ("stats", "graph_break", "recompiles", "unimplemented", "aot_autograd")}
        print(case.__name__, json.dumps(counted), flush=True)
    if oracle:
        oracle.finish()


if __name__ == "__main__":
    main()
