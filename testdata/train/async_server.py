"""An inference server: coroutines hand requests to four threads, for three models.

    async_server.py REQUESTS [--healthy]

It keeps something at two places, marked `# leak`; with --healthy it keeps nothing.
"""
import asyncio
import concurrent.futures
import random
import sys

import torch
from torch import nn

HEALTHY = "--healthy" in sys.argv
models = [nn.Sequential(*[nn.Linear(256, 256) for _ in range(3)]).cuda() for _ in range(3)]
caches, last = [torch.empty(0, 256, device="cuda") for _ in models], {}


@torch.no_grad()
def answer(which, x):
    y = models[which](x.cuda())
    for _ in range(8):  # tokens
        y = models[which](y)
    if not HEALTHY:
        caches[which] = torch.cat([caches[which], y[:4]])  # leak
    return y


async def request(pool, number):
    which = number % len(models)
    y = await asyncio.get_running_loop().run_in_executor(pool, answer, which, torch.randn(random.randint(4, 64), 256))
    if not HEALTHY:
        last[number] = y[:1].clone()  # leak


async def main():
    random.seed(1)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for number in range(0, int(sys.argv[1]), 8):
            await asyncio.gather(*(request(pool, number + i) for i in range(8)))


asyncio.run(main())
