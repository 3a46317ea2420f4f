# SPDX-License-Identifier: Apache-2.0
"""Takes blocks of their own segments under tags, prints what each tag should show, and ends with status 7."""

import json
import sys

import memtrace
import torch

MIB = 1 << 20


@memtrace.tag("decorated")
def take(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


assert memtrace.active(), "the library is not there"
kept = []
# Sizes from 10 MiB on get a segment of exactly their own, so that driver and framework level agree.
with memtrace.tag("outer"):
    kept.append(torch.empty(64 * MIB, dtype=torch.uint8, device="cuda"))
    with memtrace.tag("inner.1"):
        kept.append(torch.empty(32 * MIB, dtype=torch.uint8, device="cuda"))
kept.append(take(128 * MIB))
print(json.dumps({"outer": 64 * MIB, "outer.inner.1": 32 * MIB, "decorated": 128 * MIB}))
sys.exit(7)
