"""Trains a small model and, from a quarter of the steps on, keeps each one's losses: a list of tensors that was meant to hold numbers. Slow enough to be watched.

    leaking.py STEPS SECONDS_A_STEP
"""
import sys
import time

import torch
from torch import nn

steps, pause = int(sys.argv[1]), float(sys.argv[2])
model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.Adam(model.parameters())
outputs = []
for step in range(steps):
    batch = torch.randn(256, 1024, device="cuda")
    loss = model(batch).square()
    loss.mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step >= steps // 4:
        outputs.append(loss.detach().clone())  # leak: 1 MiB a step
    time.sleep(pause)
torch.cuda.synchronize()
print(torch.cuda.memory_allocated())
