"""Programs about which there is something to say when memory runs out, one at a time:

    advice.py CASE [--followed] [--steps N]

twice loads a checkpoint onto the device beside the model that it is for, lengths
trains with one batch of longer sequences, autocast trains in half precision
under a with statement. With --followed the program does already what would be
said: it loads onto the host, it limits the lengths; of autocast it is the other
way round, without it nothing is computed in half precision.
"""
import argparse
import os
import tempfile

import torch
from torch import nn

WIDTH = 1024


def model(layers):
    return nn.Sequential(*(layer for _ in range(layers) for layer in (nn.Linear(WIDTH, WIDTH), nn.GELU()))).cuda()


def train(net, optimizer, rows, autocast=False):
    x = torch.zeros(rows, WIDTH, device="cuda")
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        loss = net(x).float().sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def twice(followed, steps):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        torch.save(model(64).state_dict(), path)
        net = model(64)
        state = torch.load(path, map_location="cpu" if followed else "cuda", weights_only=True)
        net.load_state_dict(state)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(steps):
            train(net, optimizer, 1024 << step)
        return state


def lengths(followed, _steps):
    net = model(4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for rows in (4096, 3500, 4096, 4000, 4096, 4096 if followed else 65536):
        train(net, optimizer, rows)
    if followed:
        hoard = []
        while True:
            hoard.append(torch.zeros(64 << 20, device="cuda"))


def autocast(followed, steps):
    net = model(8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        train(net, optimizer, 4096 << step, autocast=followed)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=("twice", "lengths", "autocast"))
    parser.add_argument("--followed", action="store_true")
    parser.add_argument("--steps", type=int, default=8, help="each twice as large as the one before (default %(default)s)")
    options = parser.parse_args()
    globals()[options.case](options.followed, options.steps)


main()
