"""Training with forward passes between that no backward pass goes through: validate.py MODE."""
import sys

import torch
from torch import nn

net = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(512, 512), nn.GELU()))).cuda()
optimizer = torch.optim.Adam(net.parameters())


def batch():
    return torch.randn(4096, 512, device="cuda")


def appended():
    """Outputs are collected, each with its graph."""
    outputs = []
    for _ in range(6):
        outputs.append(net(batch()))
    return torch.cat(outputs).sum().item()


def replaced():
    """The graph of each pass lives until the next one is there."""
    for _ in range(6):
        out = net(batch())
        out.sum().item()


held = []


def leaked():
    """What was collected stays until the program ends."""
    for _ in range(6):
        held.append(net(batch()))


@torch.no_grad()
def without():
    return appended()


@torch.no_grad()
def features():
    """Results only, and more than a training step has."""
    return len([net(batch()) for _ in range(60)])


def accumulated():
    """One backward pass goes through all."""
    sum(net(batch()).mean() for _ in range(6)).backward()


def step(good):
    loss = net(batch()).sum()
    if not good:
        raise ValueError("the loss is not finite")
    loss.backward()


failures = []


def skipped():
    """Every other step is given up, and its exception has what its pass computed."""
    for number in range(6):
        try:
            step(number % 2)
        except ValueError as e:
            failures.append(e)


for _ in range(3):
    for _ in range(4):
        net(batch()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    globals()[sys.argv[1]]()
net(batch()).sum().backward()
