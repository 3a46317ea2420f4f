# SPDX-License-Identifier: Apache-2.0
"""Ends contexts that have live memory: one by destroying it, the primary one by a reset, and one that has freed everything."""

import ctypes
import json

from driver import MIB, call, free_bytes, initialize, number, primary_context, size, take

device = initialize()
watch = primary_context(device)


def create():
    context = number()
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    return context


full = create()
for _ in range(3):
    take(10 * MIB)
managed, pinned = number(), ctypes.c_void_p()
call("cuMemAllocManaged", ctypes.byref(managed), size(8 * MIB), 1)
call("cuMemAllocHost_v2", ctypes.byref(pinned), size(4 * MIB))
free_held = free_bytes()
call("cuCtxDestroy_v2", full)

tidy = create()
block = take(2 * MIB)
call("cuMemFree_v2", block)
call("cuCtxDestroy_v2", tidy)

call("cuCtxSetCurrent", watch)
free_after = free_bytes()
take(12 * MIB)
call("cuDevicePrimaryCtxReset_v2", device)
print(json.dumps({"implicit": {"driver": {"count": 4, "bytes": 42 * MIB}, "managed": {"count": 1, "bytes": 8 * MIB}, "host": {"count": 1, "bytes": 4 * MIB}},
                  "peak": 30 * MIB, "free_held": free_held, "free_after": free_after}))
