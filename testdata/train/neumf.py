"""Trains neural matrix factorisation on the sizes of MovieLens-20M: 138,493 users
and 26,744 items, with random ids. It knows nothing of memtrace."""
import argparse

import torch
from torch import nn

USERS, ITEMS = 138_493, 26_744
FACTORS, LAYERS = 64, (256, 256, 128, 64)


class NeuMF(nn.Module):
    def __init__(self):
        super().__init__()
        self.mf_user = nn.Embedding(USERS, FACTORS)
        self.mf_item = nn.Embedding(ITEMS, FACTORS)
        self.mlp_user = nn.Embedding(USERS, LAYERS[0] // 2)
        self.mlp_item = nn.Embedding(ITEMS, LAYERS[0] // 2)
        self.mlp = nn.ModuleList(nn.Linear(inputs, outputs) for inputs, outputs in zip(LAYERS, LAYERS[1:]))
        self.predict = nn.Linear(FACTORS + LAYERS[-1], 1)

    def forward(self, users, items):
        deep = torch.cat((self.mlp_user(users), self.mlp_item(items)), 1)
        for layer in self.mlp:
            deep = torch.relu(layer(deep))
        wide = self.mf_user(users) * self.mf_item(items)
        return self.predict(torch.cat((wide, deep), 1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--fused", action="store_true", help="one kernel updates everything; counts steps on the device")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = NeuMF().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=4.5e-4, fused=options.fused)
    criterion = nn.BCEWithLogitsLoss()
    for _ in range(options.steps):
        users = torch.randint(USERS, (options.batch,), device="cuda")
        items = torch.randint(ITEMS, (options.batch,), device="cuda")
        labels = torch.randint(2, (options.batch,), device="cuda").float()
        optimizer.zero_grad()
        loss = criterion(model(users, items), labels)
        loss.backward()
        optimizer.step()
    print(f"{options.steps} steps")


if __name__ == "__main__":
    main()
