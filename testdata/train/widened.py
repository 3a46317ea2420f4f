"""Trains four blocks of Linear, GELU, Dropout and Linear.

usage: widened.py WIDTH [BATCH]

The dropout after the first Linear holds more than that Linear does: its output and its mask.
"""
import sys

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.drop_in = nn.LayerNorm(128), nn.Dropout(0.1)
        self.up, self.act, self.drop, self.down = nn.Linear(128, width), nn.GELU(), nn.Dropout(0.1), nn.Linear(width, 128)

    def forward(self, x):
        return x + self.down(self.drop(self.act(self.up(self.drop_in(self.norm(x))))))


def main():
    width, batch = int(sys.argv[1]), int((sys.argv[2:] or ["4096"])[0])
    net = nn.Sequential(*(Block(width) for _ in range(4))).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        net(torch.ones(batch, 128, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


main()
