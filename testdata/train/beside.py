"""Trains a small model in steps under tags, while something else in the process holds memory of the CUDA runtime's, then gives a part of it back.

    beside.py [--steps N]
"""
import argparse
import ctypes

import torch
from torch import nn

import memtrace


class Runtime:
    """The CUDA runtime, as a program that does not go through PyTorch calls it."""

    def __init__(self):
        self.library = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")

    def malloc(self, size):
        at = ctypes.c_void_p()
        assert self.library.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(size)) == 0
        return at

    def free(self, at):
        assert self.library.cudaFree(at) == 0


def main(steps):
    model = nn.Sequential(nn.Linear(1001, 513), nn.LayerNorm(513), nn.ReLU(), nn.Linear(513, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    runtime = Runtime()
    held = [runtime.malloc(3 << 20)]
    for step in range(steps):
        memtrace.step()
        with memtrace.tag("forward"):
            loss = nn.functional.cross_entropy(model(torch.randn(300 + step, 1001, device="cuda")), torch.zeros(300 + step, dtype=torch.long, device="cuda"))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        held.append(runtime.malloc(1_000_000 + step))
    memtrace.mark("trained")
    runtime.free(held.pop(0))


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3)
main(parser.parse_args().steps)
