# SPDX-License-Identifier: Apache-2.0
"""Allocates and frees through torch, prints torch's counters, and dies by SIGKILL without another call."""

import json
import os
import signal
import sys

import torch

kept = []
for size in range(1, 400):
    block = torch.empty(size * 4099, dtype=torch.uint8, device="cuda")
    if size % 3:
        kept.append(block)
del block
stats = torch.cuda.memory_stats()
print(json.dumps({"allocated": stats["allocated_bytes.all.current"], "count": stats["allocation.all.allocated"]}))
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
