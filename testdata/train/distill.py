# SPDX-License-Identifier: Apache-2.0
"""A student is trained to do what a teacher does, beside a moving average of it. The teacher runs with a graph that nobody needs (graph), with one whose end is detached
(detached), or under torch.no_grad() (no_grad); or it is a frozen network through which the student is trained (through)."""
import copy
import sys

import torch
from torch import nn

WIDTH, ROWS = 1024, 2048


def network(layers):
    return nn.Sequential(*[part for _ in range(layers) for part in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]).cuda()


def main(mode):
    teacher, student = network(5), network(4)
    average = copy.deepcopy(student).requires_grad_(False)
    if mode == "through":
        teacher.requires_grad_(False)
    optimizer = torch.optim.AdamW(student.parameters())
    for _ in range(4):
        x = torch.zeros(ROWS, WIDTH, device="cuda")
        if mode == "through":
            loss = teacher(student(x)).square().mean()
        else:
            with torch.set_grad_enabled(mode != "no_grad"):
                wanted = teacher(x)
            loss = (student(x) - (wanted.detach() if mode == "detached" else wanted)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mean, value in zip(average.parameters(), student.parameters()):
                mean.lerp_(value, 0.1)


main(sys.argv[1])
