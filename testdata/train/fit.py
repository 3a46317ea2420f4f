# SPDX-License-Identifier: Apache-2.0
"""Trains a model with a batch of the given size for some steps: convolutions, attention, residual blocks or wide layers."""
import argparse

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True) for _ in range(6))
        self.head = nn.Linear(width, 4096)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Residual(nn.Module):
    """Its blocks are small, and of many sizes."""

    def __init__(self, width):
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return torch.relu(x + self.second(torch.relu(self.norm(self.first(x)))))


MODELS = {
    "wide": (lambda: nn.Sequential(*[part for _ in range(6) for part in (nn.Linear(2048, 2048), nn.GELU())]), (256, 2048)),
    "attention": (lambda: Attention(512), (128, 512)),
    "convolutions": (lambda: nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(64), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(),
                                           nn.Conv2d(128, 256, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                           nn.Linear(256, 10)), (3, 64, 64)),
    "residual": (lambda: nn.Sequential(nn.Conv2d(3, 48, 3, padding=1), *[Residual(48) for _ in range(6)], nn.Conv2d(48, 96, 3, 2, 1),
                                       *[Residual(96) for _ in range(6)], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 10)), (3, 50, 50)),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("batch", type=int)
    parser.add_argument("--steps", type=int, default=3)
    asked = parser.parse_args()
    torch.backends.cudnn.enabled = False  # the null GPU has no engines
    make, shape = MODELS[asked.model]
    model = make().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(asked.steps):
        loss = model(torch.zeros(asked.batch, *shape, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
