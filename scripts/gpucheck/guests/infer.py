# SPDX-License-Identifier: Apache-2.0
"""Infers with convolutions, matrix products and Fourier transforms, and prints torch's counters at the mark "stats"."""

import gc
import json

import memtrace
import torch

cudnn = torch.cuda.get_device_name(0) != "Null GPU"  # the null GPU's plans nothing
torch.backends.cudnn.enabled = cudnn
torch.manual_seed(0)
convolutions = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 7, 2, 3), torch.nn.ReLU(), torch.nn.Conv2d(64, 128, 3, 1, 1), torch.nn.ReLU(),
                                   torch.nn.Conv2d(128, 64, 1)).cuda().eval()
products = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)).cuda().eval()
images, rows, signal = (torch.rand(shape).cuda() for shape in ((8, 3, 224, 224), (256, 1024), (16, 1 << 16)))
shape_sum = 0
with torch.no_grad():
    for batch in range(20):
        with memtrace.tag("convolution"):
            seen = convolutions(images)
        with memtrace.tag("product"):
            mixed = products(rows) @ rows.t()
        with memtrace.tag("fourier"):
            spectrum = torch.fft.fft(signal)
            again = torch.fft.irfft2(torch.fft.rfft2(images))
        shape_sum += seen.numel() + mixed.numel() + spectrum.numel() + again.numel() + batch
results = [shape_sum, round(spectrum.abs().mean().item(), 3), round(again.mean().item(), 3)]
torch.cuda.synchronize()
gc.collect()
stats = torch.cuda.memory_stats()
memtrace.mark("stats")
print(json.dumps({"stats": stats, "cudnn": cudnn, "results": results}))
