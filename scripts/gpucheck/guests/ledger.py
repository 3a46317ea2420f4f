# SPDX-License-Identifier: Apache-2.0
"""Trains a little, holds pinned memory, keeps still long enough for the device to be asked, and prints torch's counters and NVML's words."""

import gc
import json
import time

import memtrace
import nvml
import torch

torch.backends.cudnn.enabled = torch.cuda.get_device_name(0) != "Null GPU"
with memtrace.tag("model"):
    model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(16))).cuda()
parameters = sum(p.numel() * p.element_size() for p in model.parameters())
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
data = torch.randn(64, 2048, device="cuda")
for _ in range(3):
    optimizer.zero_grad()
    with memtrace.tag("forward"):
        loss = model(data).square().mean()
    loss.backward()
    with memtrace.tag("optimizer"):
        optimizer.step()
pinned = torch.empty(64 << 20, dtype=torch.uint8).pin_memory()
gc.collect()
torch.cuda.synchronize()
time.sleep(2.5)
stats = torch.cuda.memory_stats()
memtrace.mark("view")
uuid = getattr(torch.cuda.get_device_properties(0), "uuid", None)
seen = nvml.read(f"GPU-{uuid}" if uuid else None)
time.sleep(1.5)
free, _ = torch.cuda.mem_get_info()
print(json.dumps({"stats": stats, "nvml": seen, "free": free, "pinned": pinned.numel(), "model": parameters}))
