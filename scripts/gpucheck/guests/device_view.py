# SPDX-License-Identifier: Apache-2.0
"""Holds memory and prints what the device itself counts as used, before the process had a context and now."""

import json
import subprocess

import memtrace


def used_on_device():
    """Bytes used on device 0 by everybody, from nvidia-smi (whole MiB)."""
    finished = subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], check=True,
                              stdout=subprocess.PIPE, universal_newlines=True)
    return int(finished.stdout.strip()) << 20


before = used_on_device()
import torch  # noqa: E402  after the first reading, since it may open the device

kept = [torch.randn(1 << 22, device="cuda") for _ in range(16)]
product = kept[0].view(2048, 2048) @ kept[1].view(2048, 2048)
torch.cuda.synchronize()
memtrace.mark("view")
print(json.dumps({"used_before": before, "used": used_on_device()}))
