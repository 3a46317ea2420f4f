"""Trains in children that somebody kills: for each line on stdin forks a child, prints its pid, and waits for its end.

Importing PyTorch, and what its first optimizer imports, takes seconds and is done once; every child makes its own CUDA context and trains
until it is killed. After each step it stores the number of allocations that PyTorch has counted into the file that the line names (8 bytes,
little endian), which is mapped, so that the count outlives the child like the trace must.
"""
import mmap
import os
import struct
import sys

import torch
import torch._dynamo


def train(path):
    with open(path, "r+b") as file:
        count = mmap.mmap(file.fileno(), 8)
    layers = [torch.nn.Linear(512, 512) for _ in range(8)]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    data = torch.zeros(64, 512, device="cuda")
    while True:
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        struct.pack_into("<Q", count, 0, torch.cuda.memory_stats()["allocation.all.allocated"])


def main():
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                train(line.strip())
            finally:
                os._exit(1)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    main()
