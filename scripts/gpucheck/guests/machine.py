# SPDX-License-Identifier: Apache-2.0
"""Prints what the results are obtained on."""

import ctypes
import json

import torch

version = ctypes.c_int()
ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
properties = torch.cuda.get_device_properties(0)
print(json.dumps({"gpu": properties.name, "devices": torch.cuda.device_count(), "gpu_bytes": properties.total_memory, "driver_cuda": version.value,
                  "torch": torch.__version__, "torch_cuda": torch.version.cuda,
                  "nccl": torch.distributed.is_available() and torch.distributed.is_nccl_available()}))
