# SPDX-License-Identifier: Apache-2.0
"""Times a pair of allocation and free: of torch's cache in nanoseconds, of the driver in microseconds. Prints the best of several rounds."""

import json
import time

import torch
from driver import MIB, call, take

ROUNDS = 7


def best(count, pair):
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(count):
            pair()
        times.append((time.perf_counter() - began) / count)
    return min(times)


def framework():
    torch.empty(1024, dtype=torch.uint8, device="cuda")


def driver():
    call("cuMemFree_v2", take(2 * MIB))


keep = torch.empty(1024, dtype=torch.uint8, device="cuda")  # the segment stays
torch.cuda.synchronize()
print(json.dumps({"framework": best(20000, framework) * 1e9, "driver": best(200, driver) * 1e6}))
