"""Trains one model whose halves live on two GPUs; activations and gradients cross
between them. The null GPU needs NULLCUDA_DEVICES=2 for it."""
import torch
from torch import nn

import oracle

DIM, BATCH = 2048, 64


class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.ReLU()).to("cuda:0")
        self.second = nn.Sequential(nn.Linear(2 * DIM, DIM), nn.ReLU(), nn.Linear(DIM, 10)).to("cuda:1")

    def forward(self, x):
        return self.second(self.first(x).to("cuda:1"))


def main():
    options = oracle.parser(__doc__).parse_args()
    oracle.need_devices(2, torch.cuda.device_count())
    torch.manual_seed(0)
    model = Split()
    optimizer = torch.optim.Adam(model.parameters())
    inputs = torch.randn(BATCH, DIM, device="cuda:0")
    labels = torch.zeros(BATCH, dtype=torch.long, device="cuda:1")
    for _ in range(options.steps):
        oracle.step()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    peaks = [torch.cuda.max_memory_allocated(device) for device in range(2)]
    print(f"{options.steps} steps, peaks {peaks} allocated")
    oracle.finish(options, model, optimizer, inputs, labels, loss)


if __name__ == "__main__":
    main()
