"""A model of so many parameters that what its optimizer keeps is named after the second step. One layer is there twice, one parameter is shared, one is frozen.

names_many.py FILE
"""
import sys

import names_oracle
import torch
from torch import nn


class Many(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(7, 9) for _ in range(layers))
        self.again = self.layers[3]
        self.tied = nn.Linear(7, 9)
        self.tied.weight = self.layers[5].weight
        self.norm = nn.BatchNorm1d(9)

    def forward(self, x):
        return sum(self.norm(layer(x)).sum() for layer in self.layers) + self.tied(x).sum()


def main():
    global model, optimizer
    oracle = names_oracle.Oracle(sys.argv[1])
    model = Many(1200).cuda()
    model.layers[7].weight.requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    for _ in range(2):
        model(torch.ones(4, 7, device="cuda")).backward()
        optimizer.step()
    oracle.module("model", model)
    oracle.optimizer(optimizer, model=model)
    oracle.mark("two steps")
    oracle.finish()


if __name__ == "__main__":
    main()
