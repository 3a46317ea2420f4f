# SPDX-License-Identifier: Apache-2.0
"""Takes a known amount of every kind of memory through the driver and prints what a recorder must have seen."""

import ctypes
import json
import mmap
import struct

import memtrace
from driver import MIB, call, initialize, number, primary_context, size, take, vmm_properties

driver, other, undo = {}, {}, []


def kind(name, level=driver):
    """A tag for one kind; take(...) inside returns the bytes taken."""
    def decorate(function):
        with memtrace.tag(name):
            level[name] = function()
    return decorate


primary_context(initialize())


@kind("device")
def device():
    for _ in range(3):
        undo.append(("cuMemFree_v2", take(10 * MIB)))
    return 30 * MIB


@kind("pitch")
def pitch():
    address, row = number(), ctypes.c_size_t()
    call("cuMemAllocPitch_v2", ctypes.byref(address), ctypes.byref(row), size(1000), size(100), 4)
    undo.append(("cuMemFree_v2", address))
    return row.value * 100


@kind("async")
def stream_ordered():
    address, stream = number(), number()
    call("cuStreamCreate", ctypes.byref(stream), 0)
    call("cuMemAllocAsync", ctypes.byref(address), size(4 * MIB), stream)
    undo.extend((("cuMemFreeAsync", address, stream), ("cuStreamSynchronize", stream)))
    return 4 * MIB


@kind("array")
def array():
    handle = number()
    # CUDA_ARRAY_DESCRIPTOR: width, height, format (32-bit float), channels
    call("cuArrayCreate_v2", ctypes.byref(handle), ctypes.create_string_buffer(struct.pack("<QQiI", 1024, 256, 0x20, 1)))
    undo.append(("cuArrayDestroy", handle))
    return 1024 * 256 * 4


@kind("vmm")
def physical():
    properties, step, address, handle = vmm_properties(), ctypes.c_size_t(), number(), number()
    call("cuMemGetAllocationGranularity", ctypes.byref(step), properties, 0)
    whole = 3 * step.value
    call("cuMemAddressReserve", ctypes.byref(address), size(2 * whole), size(0), number(), number())
    call("cuMemCreate", ctypes.byref(handle), size(whole), properties, number())
    call("cuMemMap", address, size(whole), size(0), handle, number())
    # Released before it is unmapped, as libraries do: the mapping keeps it.
    undo.extend((("cuMemRelease", handle), ("cuMemUnmap", address, size(whole)), ("cuMemAddressFree", address, size(2 * whole))))
    other["address"] = 2 * whole
    return whole


@kind("managed", other)
def managed():
    address = number()
    call("cuMemAllocManaged", ctypes.byref(address), size(8 * MIB), 1)
    undo.append(("cuMemFree_v2", address))
    return 8 * MIB


@kind("host", other)
def pinned():
    first, second = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuMemAllocHost_v2", ctypes.byref(first), size(16 * MIB))
    call("cuMemHostAlloc", ctypes.byref(second), size(4 * MIB), 0)
    undo.extend((("cuMemFreeHost", first), ("cuMemFreeHost", second)))
    return 20 * MIB


@kind("registered", other)
def registered():
    global pages
    pages = mmap.mmap(-1, MIB)
    address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(pages)))
    call("cuMemHostRegister_v2", address, size(MIB), 0)
    undo.append(("cuMemHostUnregister", address))
    return MIB


for name, *arguments in undo:
    call(name, *arguments)
memtrace.mark("freed")
print(json.dumps({"driver": driver, "other": other}))
