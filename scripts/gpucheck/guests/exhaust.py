# SPDX-License-Identifier: Apache-2.0
"""Asks for more memory than the device has and survives torch's error."""

import json

import torch

total = torch.cuda.get_device_properties(0).total_memory
try:
    torch.empty(2 * total, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    print(json.dumps({"error": type(error).__name__}))
else:
    raise SystemExit("twice the device's memory was granted")
