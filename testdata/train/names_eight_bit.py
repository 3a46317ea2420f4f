"""Adam of the real bitsandbytes: states of 8 bits with scales of their own and tables that all parameters share, of 32 bits where a parameter is small."""
import sys

import bitsandbytes
import names_oracle
import torch
from torch import nn


def main():
    oracle = names_oracle.Oracle(sys.argv[1])
    net = nn.Sequential(nn.Linear(300, 400), nn.ReLU(), nn.Linear(400, 200)).cuda()
    optimizer = bitsandbytes.optim.Adam8bit(net.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.ones(8, 300, device="cuda")).sum().backward()
        optimizer.step()
    kinds = {key for state in optimizer.state.values() for key, value in state.items() if torch.is_tensor(value)}
    if not {"state1", "state2", "qmap1", "qmap2", "absmax1", "absmax2"} <= kinds:
        sys.exit(f"no states of 8 bits: {sorted(kinds)}")
    oracle.module("net", net)
    oracle.optimizer(optimizer, net=net)
    oracle.mark("trained")
    oracle.finish()


if __name__ == "__main__":
    main()
