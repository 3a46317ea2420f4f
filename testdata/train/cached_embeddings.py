"""Embeds batches that grow, and keeps a small result of each. Such results lie in segments of former batches, which then cannot go back to the driver, and the next batch, which is larger, does not fit beside them.

    cached_embeddings.py [--batches N]
"""
import argparse

import torch
from torch import nn


def embed(model, batch):
    with torch.no_grad():
        return model(batch)[:, :64].clone()  # the first columns are enough; a view would keep all


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=12)
    batches = parser.parse_args().batches
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(768, 1024), nn.GELU(), nn.Linear(1024, 1024)).cuda()
    cache = []
    for n in range(batches):
        batch = torch.randn(5000 + 600 * n, 768, device="cuda")
        cache.append(embed(model, batch))
    stats = torch.cuda.memory_stats()
    print(f"{len(cache)} embeddings of {sum(e.numel() * e.element_size() for e in cache)} bytes, {stats['allocated_bytes.all.current']} allocated, {stats['reserved_bytes.all.current']} reserved")


main()
