"""Pools of the program's own beside PyTorch's allocator: one whose blocks lie in a tensor, one in memory of the driver. Writes what
PyTorch and the pools count, with everything still there, to the file that is named."""
import ctypes
import json
import sys

import torch

MIB = 1 << 20
library = ctypes.CDLL(None)
library.memtrace_pool_create.restype = ctypes.c_uint64
library.memtrace_pool_create.argtypes = [ctypes.c_char_p, ctypes.c_int]
library.memtrace_pool_alloc.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]
library.memtrace_pool_free.argtypes = [ctypes.c_uint64, ctypes.c_void_p]


def driver_memory(size):
    address = ctypes.c_uint64()
    assert ctypes.CDLL("libcuda.so.1").cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
    return address.value


weights = torch.empty(50 * MIB, dtype=torch.uint8, device="cuda")
slab = torch.empty(32 * MIB, dtype=torch.uint8, device="cuda")
cache = library.memtrace_pool_create(b"kv cache", 0)
for i in range(8):
    library.memtrace_pool_alloc(cache, slab.data_ptr() + i * MIB, MIB)
chunk = driver_memory(16 * MIB)
driver_memory(7 * MIB)
arena = library.memtrace_pool_create(b"arena", 0)
for i in range(12):
    library.memtrace_pool_alloc(arena, chunk + i * MIB, MIB)
for i in range(4):
    library.memtrace_pool_free(arena, chunk + i * MIB)
more = torch.empty(20 * MIB, dtype=torch.uint8, device="cuda")
with open(sys.argv[1], "w") as file:
    json.dump({"allocated": torch.cuda.memory_allocated(), "reserved": torch.cuda.memory_reserved(), "arena": 8 * MIB, "chunk": 16 * MIB,
               "cache": 8 * MIB}, file)
