# SPDX-License-Identifier: Apache-2.0
"""What `memtrace demo` records where PyTorch can use the device: a small network, trained for a few steps.

The program does not know of memtrace. One line of it leaks on purpose: the report says which one.
"""

import torch
from torch import nn

STEPS, BATCH, WIDTH, CLASSES, LAYERS = 12, 4096, 1024, 1000, 4


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(x)))


def main() -> None:
    model = nn.Sequential(*(Block() for _ in range(LAYERS)), nn.Linear(WIDTH, CLASSES)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    inputs = torch.ones(BATCH, WIDTH, device="cuda")
    targets = torch.zeros(BATCH, dtype=torch.long, device="cuda")
    kept = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        outputs = model(inputs)
        nn.functional.cross_entropy(outputs, targets).backward()
        optimizer.step()
        kept.append(outputs.detach().clone())  # the leak
    print(f"{STEPS} steps, peak {torch.cuda.max_memory_allocated()} allocated, {torch.cuda.max_memory_reserved()} reserved")


main()
