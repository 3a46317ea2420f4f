#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logs what device 0 has in use every 10 ms, in the words of `nvidia-smi --query-gpu=memory.used --format=csv -lms 10`, which the null GPU has not. Ends with its standard input.

    scripts/smi-log.py > memory.txt
"""
import ctypes
import select
import sys
import time


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


def main() -> None:
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device, memory = ctypes.c_void_p(), Memory()
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)):
        sys.exit("smi-log: no device")
    print("memory.used [MiB]", flush=True)
    due = time.monotonic()
    while True:
        if nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)):
            sys.exit("smi-log: the device does not say what it has in use")
        print(f"{memory.used >> 20} MiB", flush=True)
        due = max(due + 0.01, time.monotonic())
        if select.select([sys.stdin], [], [], max(due - time.monotonic(), 0))[0] and not sys.stdin.read(1):
            return


if __name__ == "__main__":
    main()
