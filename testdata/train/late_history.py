"""Has blocks and cached segments from before PyTorch's history begins, and blocks cut from them during it, some of which are freed again.

    late_history.py FOLDER      writes FOLDER/late.pickle and FOLDER/counters.json: PyTorch's own bytes, and its peak since the history began
"""
import json
import os
import random
import sys

import torch


def blocks(count, kept, live):
    """Allocates blocks of 1 to 30 MiB and small ones, and frees some at random."""
    for _ in range(count):
        size = random.choice((random.randint(1 << 20, 30 << 20), random.randint(1, 200_000)))
        live.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        while len(live) > kept:
            del live[random.randrange(len(live))]


def main(folder):
    random.seed(7)
    live = []
    blocks(60, 12, live)
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.memory._record_memory_history()
    blocks(80, 9, live)
    torch.cuda.memory._dump_snapshot(os.path.join(folder, "late.pickle"))
    with open(os.path.join(folder, "counters.json"), "w", encoding="utf-8") as file:
        json.dump({"Allocated": torch.cuda.memory_allocated(), "Peak": torch.cuda.max_memory_allocated(), "Reserved": torch.cuda.memory_reserved()}, file)


main(sys.argv[1])
