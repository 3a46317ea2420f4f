"""What wraps models for several processes, in one process: replicas with gradients in buckets, parameters in flat pieces, tensors in shards."""
import os
import sys
import warnings

import names_oracle
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DataParallel, DistributedDataParallel

warnings.simplefilter("ignore")
_kept = []


class Local(names_oracle.Oracle):
    """A shard counts with this process's part."""

    def tensor(self, category, name, tensor):
        super().tensor(category, name, tensor.to_local() if hasattr(tensor, "to_local") else tensor)


def net():
    return nn.Sequential(nn.Linear(40, 41), nn.Sequential(nn.Linear(41, 42)), nn.BatchNorm1d(42)).cuda()


def train(model):
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(3):
        if step:
            optimizer.zero_grad()
        model(torch.ones(4, 40, device="cuda")).sum().backward()
        optimizer.step()
    return optimizer


def replicated(oracle):
    ddp = DistributedDataParallel(net(), device_ids=[0])
    optimizer = train(ddp)
    oracle.module("ddp", ddp)
    oracle.optimizer(optimizer, ddp=ddp)
    oracle.mark("ddp")
    return ddp, optimizer


def buckets(oracle):
    viewed = DistributedDataParallel(net(), device_ids=[0], gradient_as_bucket_view=True)
    optimizer = train(viewed)
    oracle.module("viewed", viewed)
    oracle.optimizer(optimizer, viewed=viewed)
    oracle.flat("gradient", "viewed.module.(flat of 6)", next(viewed.parameters()).grad)
    oracle.mark("buckets")
    return viewed, optimizer


def threads(oracle):
    parallel = DataParallel(net(), device_ids=[0])
    optimizer = train(parallel)
    oracle.module("parallel", parallel)
    oracle.optimizer(optimizer, parallel=parallel)
    oracle.mark("threads")
    return parallel, optimizer


def flat(oracle):
    sharded = FullyShardedDataParallel(net(), device_id=0)
    optimizer = train(sharded)
    oracle.module("sharded", sharded)
    oracle.optimizer(optimizer, sharded=sharded)
    oracle.mark("flat")
    return sharded, optimizer


def original(oracle):
    """The model's own parameters are pieces of the flat one."""
    pieces = FullyShardedDataParallel(net(), device_id=0, use_orig_params=True)
    optimizer = train(pieces)
    oracle.module("pieces", pieces)
    oracle.optimizer(optimizer, pieces=pieces)
    parameter = next(pieces.parameters())
    oracle.flat("parameter", "pieces._fsdp_wrapped_module.(flat of 6)", parameter)
    oracle.flat("gradient", "pieces._fsdp_wrapped_module.(flat of 6)", parameter.grad)
    oracle.mark("original")
    return pieces, optimizer


def shards(oracle):
    model = net()
    fully_shard(model[1])
    fully_shard(model)
    optimizer = train(model)
    oracle.module("model", model)
    oracle.optimizer(optimizer, model=model)
    oracle.flat("gradient", "model.(flat of 4)", model[0].weight.grad.to_local())  # what reduces them gives pieces
    oracle.flat("gradient", "model.1.0.(flat of 2)", model[1][0].weight.grad.to_local())
    oracle.mark("shards")
    return model, optimizer


def main():
    os.environ.update(RANK="0", WORLD_SIZE="1")
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    oracle = Local(sys.argv[1])
    for case in replicated, buckets, threads, flat, original, shards:
        _kept.append(case(oracle))
    oracle.finish()


if __name__ == "__main__":
    main()
