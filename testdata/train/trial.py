"""What three users did, each as small as it still shows what they saw.

    trial.py tags       three coroutines, each with a tag of its own
    trial.py early      a mark and steps before the first CUDA call
    trial.py settle     holds memory, gives all back, and waits for the device to be asked
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
    kept = [torch.zeros(32 * MIB, dtype=torch.uint8, device="cuda") for _ in range(4)]
    torch.cuda.synchronize()
    time.sleep(1.5)
    del kept
    torch.cuda.empty_cache()
    time.sleep(1.5)
    torch.zeros(MIB, dtype=torch.uint8, device="cuda")


{"tags": tags, "early": early, "settle": settle}[sys.argv[1]]()
