# SPDX-License-Identifier: Apache-2.0
"""Fills CuPy's memory pool and prints its size."""

import json

import cupy
import memtrace

kept = [cupy.zeros(1 << 20, dtype=cupy.float32) for _ in range(8)]
memtrace.mark("pool")
print(json.dumps({"pool": cupy.get_default_memory_pool().total_bytes()}))
