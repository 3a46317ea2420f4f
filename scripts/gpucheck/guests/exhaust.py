# SPDX-License-Identifier: Apache-2.0
"""Fills most of the device under one tag, asks for more than is left under another, survives torch's error and says who was to be named."""

import json

import memtrace
import torch

BLOCK = 256 << 20
free, _ = torch.cuda.mem_get_info()
with memtrace.tag("hoard"):
    hoard = [torch.empty(BLOCK, dtype=torch.uint8, device="cuda") for _ in range(int(0.8 * free) // BLOCK)]
with memtrace.tag("small"):
    small = torch.empty(BLOCK // 8, dtype=torch.uint8, device="cuda")
wanted = (free // BLOCK) * BLOCK
try:
    with memtrace.tag("asker"):
        torch.empty(wanted, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    left, _ = torch.cuda.mem_get_info()
    print(json.dumps({"error": type(error).__name__, "owner": "hoard", "asker": "asker", "held": len(hoard) * BLOCK, "requested": wanted, "free": left}))
else:
    raise SystemExit("more was granted than the device has")
