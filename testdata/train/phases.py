"""Trains a small network and marks where the passes of each step begin: what memtrace says of phases is compared with it."""

import torch
from torch import nn

import memtrace

STEPS = 5

model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.Adam(model.parameters())
inputs = torch.ones(64, 512, device="cuda")
for step in range(STEPS):
    memtrace.mark(f"forward {step}")
    loss = model(inputs).square().mean()
    memtrace.mark(f"backward {step}")
    loss.backward()
    memtrace.mark(f"optimizer {step}")
    optimizer.step()
    memtrace.mark(f"end {step}")
    optimizer.zero_grad()
memtrace.mark("done")
