# SPDX-License-Identifier: Apache-2.0
"""Launches a graph with two allocation nodes, of which it frees one, and ends while the other lives."""

import ctypes
import json
import os

from driver import MIB, alloc_node, call, initialize, node_address, number, primary_context

RESERVED_NOW = 2  # CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT

device = initialize()
primary_context(device)
graph, first, second, end, runnable, stream, reserved = (number() for _ in range(7))
freed, kept = alloc_node(8 * MIB), alloc_node(6 * MIB)
call("cuGraphCreate", ctypes.byref(graph), 0)
call("cuGraphAddMemAllocNode", ctypes.byref(first), graph, None, ctypes.c_size_t(0), freed)
call("cuGraphAddMemAllocNode", ctypes.byref(second), graph, ctypes.byref(first), ctypes.c_size_t(1), kept)
call("cuGraphAddMemFreeNode", ctypes.byref(end), graph, ctypes.byref(second), ctypes.c_size_t(1), node_address(freed))
call("cuGraphInstantiateWithFlags", ctypes.byref(runnable), graph, number())
call("cuStreamCreate", ctypes.byref(stream), 0)
call("cuGraphLaunch", runnable, stream)
call("cuStreamSynchronize", stream)
call("cuDeviceGetGraphMemAttribute", device, RESERVED_NOW, ctypes.byref(reserved))
print(json.dumps({"count": 2, "bytes": 14 * MIB, "live": 6 * MIB, "launches": 1, "reserved": reserved.value}), flush=True)
os._exit(0)
