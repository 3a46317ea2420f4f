"""One rank of a job, with a fault where one is named: `leak`, `batch` (a larger batch), `stray` (memory on another rank's device)."""

import sys

import torch

fault = sys.argv[1] if len(sys.argv) > 1 else ""
device = "cuda:1" if fault == "stray" else "cuda:0"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256)).to(device)
optimizer = torch.optim.Adam(model.parameters())
kept = [torch.zeros(1, device="cuda:0")] if fault == "stray" else []
for _ in range(20):
    batch = torch.randn(1792 if fault == "batch" else 1024, 256, device=device)
    (model(batch) ** 2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if fault == "leak":
        kept.append(torch.empty(1 << 16, device=device))  # leak
