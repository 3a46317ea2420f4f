"""A training on several ranks: ranks.py WORLD LEAKING-RANK WRAP starts them, each on a device of its own.

WRAP is ddp (DistributedDataParallel) or fsdp2 (fully_shard).

The leaking rank keeps the output of every step.
"""
import os
import subprocess
import sys
import tempfile

WORLD, LEAKING, WRAP = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
STEPS = 24


def launch():
    with tempfile.TemporaryDirectory() as meet:
        ranks = [subprocess.Popen([sys.executable, __file__, *sys.argv[1:]],
                                  env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(WORLD),
                                           MEET=os.path.join(meet, "store"))) for rank in range(WORLD)]
        return max(rank.wait() for rank in ranks)


def wrapped(net, rank):
    if WRAP == "ddp":
        from torch.nn.parallel import DistributedDataParallel

        return DistributedDataParallel(net, device_ids=[rank])
    from torch.distributed.fsdp import fully_shard

    for layer in net[::2]:
        fully_shard(layer)
    return fully_shard(net)


def train(rank):
    import torch
    import torch.distributed as dist
    from torch import nn

    torch.cuda.set_device(rank)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD, store=dist.FileStore(os.environ["MEET"], WORLD))
    net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 64)).cuda()
    model = wrapped(net, rank)
    optimizer = torch.optim.AdamW(model.parameters())
    history = []
    for _ in range(STEPS):
        out = model(torch.randn(512, 256, device="cuda"))
        if rank == LEAKING:
            history.append(out.detach().repeat(4, 1))
        out.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if "RANK" in os.environ:
    train(int(os.environ["RANK"]))
else:
    sys.exit(launch())
