"""What three users did, each as small as it still shows what they saw.

    trial.py tags       three coroutines, each with a tag of its own
    trial.py early      a mark and steps before the first CUDA call
    trial.py settle     holds memory, gives all back, and waits for the device to be asked
    trial.py requested  trains a model whose tensors fill no block
"""
import asyncio
import sys
import time

import torch

import memtrace

MIB = 1 << 20


def tags():
    async def request(i):
        with memtrace.tag(f"req{i}"):
            await asyncio.sleep(0.05 - 0.01 * i)
            kept = torch.zeros((i + 1) * 32 * MIB, dtype=torch.uint8, device="cuda")
            await asyncio.sleep(0.1)
            return kept

    async def main():
        return await asyncio.gather(*(request(i) for i in range(3)))

    asyncio.run(main())


def early():
    memtrace.mark("begin")
    for i in range(5):
        memtrace.step()
        torch.zeros((i + 1) * 32 * MIB, dtype=torch.uint8, device="cuda")


def settle():
    kept = [torch.zeros(32 * MIB - 100, dtype=torch.uint8, device="cuda") for _ in range(4)]
    torch.cuda.synchronize()
    print(torch.cuda.memory_stats()["requested_bytes.all.current"])
    time.sleep(1.5)
    del kept
    torch.cuda.empty_cache()
    time.sleep(1.5)
    torch.zeros(MIB, dtype=torch.uint8, device="cuda")


def requested():
    """Prints what was requested for the blocks of parameters, gradients and states, and what these blocks hold."""
    model = torch.nn.Sequential(torch.nn.Linear(33, 7), torch.nn.Linear(7, 1000)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(5, 33, device="cuda")).sum().backward()
        optimizer.step()
    blocks = {}
    for segment in torch.cuda.memory_snapshot():
        for block in segment["blocks"]:
            blocks[block["address"]] = (block["requested_size"], block["size"])
    tensors = [t for p in model.parameters() for t in (p, p.grad, *optimizer.state[p].values()) if t.is_cuda]
    print(*(sum(part) for part in zip(*(blocks[t.data_ptr()] for t in tensors))))


{"tags": tags, "early": early, "settle": settle, "requested": requested}[sys.argv[1]]()
