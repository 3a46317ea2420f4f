"""Programs that reserve much more than they use, and that do what avoids it: wasteful.py CASE [--followed].

Prints the most that PyTorch had reserved.
"""
import random
import sys

import torch
from torch import nn

MB = 1 << 20


def sizes(_):
    """Each batch is a little larger than all before it, so that nothing that is cached fits it."""
    net = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.GELU()))).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for rows in range(8000, 16000, 500):
        net(torch.randn(rows, 1024, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def graphs(followed):
    """Graphs with pools of their own."""
    net, pool, kept = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(4))).cuda(), None, []
    for size in sorted(range(1, 9), reverse=followed):
        static = torch.zeros(size * 2048, 1024, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph, pool=pool):
            out = net(static).sum()
        if followed:
            pool = graph.pool()
        kept.append((graph, static, out))
    torch.zeros(16384, 1024, device="cuda")


def streams(_):
    """What one stream has cached no other one gets."""
    kept = []
    for stream in [torch.cuda.Stream() for _ in range(6)]:
        with torch.cuda.stream(stream):
            blocks = [torch.empty(100 * MB, dtype=torch.uint8, device="cuda") for _ in range(3)]
            kept.append(torch.empty(MB, dtype=torch.uint8, device="cuda"))
            del blocks


def between(_):
    """What is kept lies between what was dropped, so that nothing larger fits there, whether segments grow or not."""
    dropped, kept = [], []
    for _ in range(12):
        dropped.append(torch.empty(30 * MB, dtype=torch.uint8, device="cuda"))
        kept.append(torch.empty(12 * MB, dtype=torch.uint8, device="cuda"))
    del dropped
    kept += [torch.empty(45 * MB, dtype=torch.uint8, device="cuda") for _ in range(8)]


def mixed(_):
    """Blocks of all sizes that live for different times; twice the cache is given back."""
    sizes, live = random.Random(1), {}
    for n in range(3000):
        for old in [old for old in live if old <= n]:
            del live[old]
        size = int(2 ** sizes.uniform(9, 25 + n / 1000))
        live[n + sizes.choice((3, 30, 300)) + sizes.random()] = torch.empty(size, dtype=torch.uint8, device="cuda")
        if n in (1000, 2000):
            torch.cuda.empty_cache()


def even(_):
    """All batches are equal: little is idle."""
    net = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(8))).cuda()
    for _ in range(8):
        net(torch.randn(8192, 1024, device="cuda")).sum().backward()


globals()[sys.argv[1]](sys.argv[2:] == ["--followed"])
print(torch.cuda.max_memory_reserved())
