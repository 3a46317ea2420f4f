# SPDX-License-Identifier: Apache-2.0
"""A program that uses the three calls of the TBD memory profiler, and prints PyTorch's own figures beside its tables: one line of JSON per iteration."""

import argparse
import json

import memtrace
import torch
from torch import nn

options = argparse.ArgumentParser()
options.add_argument("--epochs", type=int, default=2)
options.add_argument("--period", type=int, default=2)
options.add_argument("--width", type=int, default=1000)
options.add_argument("--leak", type=int, default=0, help="bytes that each iteration leaves behind")
options = options.parse_args()

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(options.width, 2 * options.width), nn.ReLU(), nn.Linear(2 * options.width, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
kept = []
profiler = memtrace.memory_profiler(model, print_period=options.period, csv=True)
for epoch in range(options.epochs):
    for iteration in range(4):
        data = torch.randn(512, options.width, device="cuda")
        loss = model(data).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if options.leak:
            kept.append(torch.empty(options.leak, dtype=torch.uint8, device="cuda"))
        profiler.record_stats()
        figures = {"epoch": epoch + 1, "iteration": iteration + 1, "reserved": torch.cuda.memory_reserved(), "highest_reserved": torch.cuda.max_memory_reserved(),
                   "weights": {name: p.numel() * p.element_size() for name, p in model.named_parameters()},
                   "gradients": {name: p.grad.numel() * p.grad.element_size() for name, p in model.named_parameters()}}
        torch.cuda.reset_peak_memory_stats()
        print("figures " + json.dumps(figures), flush=True)
    profiler.epoch_end()
