# SPDX-License-Identifier: Apache-2.0
"""Times eager training steps of a 12-layer transformer: small ones, which the CPU bounds, and large ones, which the GPU bounds. Prints medians in
seconds. Small eager steps allocate all the time and compute little: the worst case for a recorder."""

import json
import statistics
import time

import torch

torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda()
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)


def step(batch):
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def median_step(shape, count):
    batch = torch.randn(shape, device="cuda")
    for _ in range(10):
        step(batch)
    times = []
    for _ in range(count):
        torch.cuda.synchronize()
        began = time.perf_counter()
        step(batch)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


print(json.dumps({"small": median_step((1, 64, 768), 80), "large": median_step((16, 512, 768), 30)}))
