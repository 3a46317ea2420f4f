"""Answers requests and keeps something of each: a server that leaks.

    server.py [--requests N]
"""
import argparse

import torch

model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).cuda()
answers = {}


@torch.no_grad()
def answer(number):
    hidden = torch.randn(64, 512, device="cuda")
    for layer in model:
        hidden = layer(hidden).relu()
    answers[number] = hidden[:8].clone()
    return hidden.mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    for number in range(parser.parse_args().requests):
        answer(number)


main()
