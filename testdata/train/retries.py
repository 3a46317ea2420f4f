"""Trains a model with Hugging Face's find_executable_batch_size: a batch that does not fit is made smaller and tried again.

    retries.py ACCOUNT

Each time that PyTorch gives up, its own account of the blocks is noted, and at the
end written to ACCOUNT as JSON, with the size of the batch that succeeded.
"""
import json
import sys

import torch
from accelerate.utils import find_executable_batch_size
from torch import nn

WIDTH, DEPTH, STEPS = 1024, 8, 3
model = nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(DEPTH)]).cuda()
failures, tried = [], []


def note(*_):
    """What the live blocks hold, by what is known of their tensors."""
    blocks, sizes = {}, [0, 0]
    for segment in torch.cuda.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                blocks[address] = block["size"]
                sizes[0] += block["size"]
                sizes[1] += 1
            address += block["size"]
    parameters = [blocks[p.data_ptr()] for p in model.parameters()]
    failures.append({"bytes": sizes[0], "blocks": sizes[1], "parameters": sum(parameters), "parameter_blocks": len(parameters)})


@find_executable_batch_size(starting_batch_size=20000)
def train(batch_size):
    tried.append(batch_size)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    for _ in range(STEPS):
        model(torch.randn(batch_size, WIDTH, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


torch._C._cuda_attach_out_of_memory_observer(note)
train()
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump({"failures": failures, "tried": tried}, file)
