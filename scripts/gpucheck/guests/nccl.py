# SPDX-License-Identifier: Apache-2.0
"""One rank of an all-reduce. Arguments: rank, number of ranks, a file name through which they meet."""

import json
import sys

import memtrace
import torch
import torch.distributed as ranks

rank, count, meeting = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.cuda.set_device(rank)
ranks.init_process_group("nccl", init_method=f"file://{meeting}", rank=rank, world_size=count)
data = torch.full((1 << 22,), float(rank + 1), device="cuda")
for _ in range(5):
    ranks.all_reduce(data)
torch.cuda.synchronize()
stats = torch.cuda.memory_stats(rank)
memtrace.mark("stats")
ranks.destroy_process_group()
print(json.dumps({"stats": stats}))
