# SPDX-License-Identifier: Apache-2.0
"""The driver's interface through ctypes, for guests that use no framework."""

import ctypes
import struct

MIB = 1 << 20
cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    """Calls a function of the driver; SystemExit with its name and status if it fails."""
    status = getattr(cuda, name)(*arguments)
    if status:
        raise SystemExit(f"{name}: CUDA error {status}")


def number(value=0):
    """A 64-bit place for a size, an address or a handle."""
    return ctypes.c_uint64(value)


def size(value):
    return ctypes.c_size_t(value)


def initialize():
    """The driver, and the first device's ordinal."""
    call("cuInit", 0)
    device = ctypes.c_int()
    call("cuDeviceGet", ctypes.byref(device), 0)
    return device


def primary_context(device):
    context = number()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    return context


def take(bytes_):
    address = number()
    call("cuMemAlloc_v2", ctypes.byref(address), size(bytes_))
    return address


def free_bytes():
    """Free on the device, as the driver says."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value


def vmm_properties():
    """CUmemAllocationProp of pinned memory on device 0: type, handle types, location, security attributes, flags."""
    return ctypes.create_string_buffer(struct.pack("<iiiiQQ", 1, 0, 1, 0, 0, 0))


def alloc_node(bytes_):
    """CUDA_MEM_ALLOC_NODE_PARAMS: properties of the pool (88 bytes), access descriptors, size in, address out."""
    return ctypes.create_string_buffer(struct.pack("<iiiiQQ56sQQQQ", 1, 0, 1, 0, 0, 0, b"", 0, 0, bytes_, 0))


def node_address(node):
    return number(struct.unpack_from("<Q", node, 112)[0])
