"""Trains a small model in which steps differ, and writes what PyTorch's allocator
counted between pairs of moments: between marks, between steps, and around what is
kept for later. Each window begins with reset_peak_memory_stats, so that its peak is
PyTorch's own word."""
import json

import torch
from torch import nn

import oracle


def counters():
    stats = torch.cuda.memory_stats()
    return {"live": stats["allocated_bytes.all.current"], "blocks": stats["allocation.all.current"], "allocated": stats["allocation.all.allocated"], "freed": stats["allocation.all.freed"]}


class Windows:
    """What the allocator counted between moments."""

    def __init__(self):
        self.done = []
        self.open = None

    def begin(self, moment):
        torch.cuda.reset_peak_memory_stats()
        self.open = (moment, counters())

    def end(self, moment):
        start, before = self.open
        after = counters()
        self.done.append({"from": start, "to": moment, "peak": torch.cuda.max_memory_allocated(), "start": before["live"], "end": after["live"],
                          "start_blocks": before["blocks"], "end_blocks": after["blocks"], "allocated": after["allocated"] - before["allocated"], "freed": after["freed"] - before["freed"]})


def train(model, optimizer, batch):
    loss = model(torch.ones(batch, 256, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def main():
    options = oracle.parser(__doc__, steps=12).parse_args()
    windows, kept = Windows(), []
    windows.begin("mark:begin")
    oracle.mark("begin")
    model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(256, 256), nn.GELU())]).cuda()
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    windows.end("mark:built")
    oracle.mark("built")
    for step in range(options.steps):
        if step in (4, 7):
            windows.end(f"step:{step}")
        if step in (2, 4):
            windows.begin(f"step:{step}")
        oracle.step()
        train(model, optimizer, 64 * (1 + step * 5 % 7))
        if step % 3 == 1:
            kept.append(torch.zeros(1000 * (step + 1), device="cuda"))
        if step == 8:
            windows.begin("mark:cache")
            oracle.mark("cache")
            kept = [torch.zeros(3000, device="cuda"), kept[-1]]
            scratch = [torch.zeros(50_000, device="cuda") for _ in range(3)]
            del scratch
            windows.end("mark:cached")
            oracle.mark("cached")
            windows.begin("mark:cached")
    windows.end("mark:stats")
    oracle.mark("stats")
    options.memory_stats.write_text(json.dumps(windows.done))


if __name__ == "__main__":
    main()
