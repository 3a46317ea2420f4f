# SPDX-License-Identifier: Apache-2.0
"""What the driver's management library says of the first device, through ctypes."""

import ctypes
import os


class _Memory(ctypes.Structure):
    """nvmlMemory_v2_t"""

    _fields_ = [("version", ctypes.c_uint), ("total", ctypes.c_ulonglong), ("reserved", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong),
                ("used", ctypes.c_ulonglong)]


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t"""

    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu_instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint)]


_UNKNOWN = (1 << 64) - 1


def read(uuid=None):
    """{used, kept, own, others}: bytes used on the device by whomever with what is kept for the driver and firmware; own and others are None where the
    device does not say which process uses how much. None without the library. uuid, as "GPU-...", picks the device."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    if nvml.nvmlInit_v2():
        return None
    handle, memory = ctypes.c_void_p(), _Memory(version=ctypes.sizeof(_Memory) | 2 << 24)
    if not uuid or nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)):
        if nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)):
            return None
    if nvml.nvmlDeviceGetMemoryInfo_v2(handle, ctypes.byref(memory)):
        return None
    own, others = _shares(nvml, handle)
    nvml.nvmlShutdown()
    return {"used": memory.used + memory.reserved, "kept": memory.reserved, "own": own, "others": others}


def _shares(nvml, handle):
    count = ctypes.c_uint(256)
    list_ = (_Process * count.value)()
    if nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), list_):
        return None, None
    known = {entry.pid: entry.used for entry in list_[:count.value] if entry.used != _UNKNOWN}
    if os.getpid() not in known or len(known) < count.value:
        return None, None
    own = known.pop(os.getpid())
    return own, sum(known.values())
