# SPDX-License-Identifier: Apache-2.0
"""Captures a training step into a CUDA graph, whose memory lies in a private pool, replays it, and prints torch's counters at the mark "stats"."""

import gc
import json

import memtrace
import torch

torch.backends.cudnn.enabled = torch.cuda.get_device_name(0) != "Null GPU"
model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.randn(512, 1024, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = model(data).square().mean()
    loss.backward()
    optimizer.step()
    return loss


aside = torch.cuda.Stream()
aside.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(aside):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(aside)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    result = step()
for _ in range(10):
    graph.replay()
torch.cuda.synchronize()
gc.collect()
stats = torch.cuda.memory_stats()
memtrace.mark("stats")
print(json.dumps({"stats": stats}))
