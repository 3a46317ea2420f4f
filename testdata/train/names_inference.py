"""Models that never train: one that lives to the end, one that a function makes and lets go, and one that is there when memory runs out.

names_inference.py end|gone|oom FILE
"""
import sys
import time

import names_oracle
import torch
from torch import nn


def net(size):
    return nn.Sequential(nn.Linear(size, 300), nn.BatchNorm1d(300), nn.Sequential(nn.ReLU(), nn.Linear(300, 5))).cuda().eval()


def use(model, size):
    with torch.no_grad():
        return model(torch.ones(4, size, device="cuda"))


def end(oracle):
    global served
    served = net(40)
    use(served, 40)
    oracle.module("served", served)
    oracle.mark("end")


def gone(oracle):
    """Nobody looks at the moment at which it goes: it has to be met while it is used."""
    served = net(50)
    marks = time.monotonic() + 6
    while time.monotonic() < marks:
        use(served, 50)
        time.sleep(0.01)
    oracle.module("served", served)
    oracle.mark("gone")


def oom(oracle):
    served = net(60)
    try:
        torch.empty(1 << 40, device="cuda")
    except torch.cuda.OutOfMemoryError:
        pass
    until = time.monotonic() + 3
    while time.monotonic() < until:  # the library's thread asks, the interpreter answers between two instructions
        time.sleep(0.01)
    oracle.module("served", served)
    oracle.mark("oom")


def main():
    oracle = names_oracle.Oracle(sys.argv[2])
    {"end": end, "gone": gone, "oom": oom}[sys.argv[1]](oracle)
    oracle.finish()


if __name__ == "__main__":
    main()
