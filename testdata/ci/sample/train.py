"""Trains the transformer on random tokens."""
import torch
from torch import nn

from model import Transformer


def main(steps=3, batch=8, length=256):
    torch.manual_seed(0)
    model = Transformer().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for _ in range(steps):
        tokens = torch.randint(10240, (batch, length + 1)).cuda()
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
