"""Trains a small model, and after each step writes PyTorch's own snapshot of its memory, its counters, and a mark of memtrace's.

    snapshots.py FOLDER      writes FOLDER/step0.pickle and so on, and FOLDER/counters.json
"""
import json
import os
import sys

import torch
from torch import nn

try:
    from memtrace import mark
except ImportError:
    def mark(name):
        pass


def main(folder):
    torch.cuda.memory._record_memory_history(stacks="python")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3001, 1021), nn.LayerNorm(1021), nn.ReLU(), nn.Linear(1021, 513), nn.ReLU(), nn.Linear(513, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    counters = []
    for step in range(4):
        for _ in range(3):
            x = torch.randn(500 + step, 3001, device="cuda")
            torch.nn.functional.cross_entropy(model(x), torch.zeros(500 + step, dtype=torch.long, device="cuda")).backward()
            optimizer.step()
            optimizer.zero_grad()
        if step == 2:
            del x
            torch.cuda.empty_cache()
        stats = torch.cuda.memory_stats()
        mark(f"step{step}")
        torch.cuda.memory._dump_snapshot(os.path.join(folder, f"step{step}.pickle"))
        counters.append({name: stats[f"{name}_bytes.all.{kind}"] for name, kind in (("allocated", "current"), ("reserved", "current"), ("requested", "current"))} |
                        {"peak": stats["allocated_bytes.all.peak"]})
    with open(os.path.join(folder, "counters.json"), "w", encoding="utf-8") as file:
        json.dump(counters, file)


main(sys.argv[1])
