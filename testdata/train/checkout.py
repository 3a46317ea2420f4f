"""Writes a small program into a folder of the working directory, as a checkout of it, and runs it.

    checkout.py FOLDER [changed]      with "changed", one line of it keeps a mask, and stands a line lower
"""
import os
import runpy
import sys

MODEL = '''import torch
from torch import nn


class DropPath(nn.Module):
    def forward(self, x):
        {line}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(512, 512)
        self.drop = DropPath()

    def forward(self, x):
        return x + self.drop(self.linear(x))
'''

TRAIN = '''import torch
from torch import nn

from net.model import Block


def main():
    model = nn.Sequential(*[Block() for _ in range(6)]).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(3):
        model(torch.ones(2048, 512, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


main()
'''

folder = sys.argv[1]
line = "return x * 0.5"
if sys.argv[2:]:
    line = "# keeps a mask\n        return x * torch.empty_like(x).bernoulli_(0.5)"
os.makedirs(os.path.join(folder, "net"))
for name, text in (("net/model.py", MODEL.replace("{line}", line)), ("train.py", TRAIN)):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)
sys.path.insert(0, os.path.join(os.getcwd(), folder))
runpy.run_path(os.path.join(folder, "train.py"))
