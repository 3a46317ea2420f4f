"""A server with an adapter for each version of a tenant's: adapters.py CASE.

    kept     every version of one tenant's stays, in a dictionary of the server's
    layers   the same, within the layers of the model
    latest   only the latest version of each tenant's stays
    even     every tenant has as many versions
"""
import sys

import torch
from torch import nn

WIDTH, RANK, LAYERS = 512, 16, 4
mode = sys.argv[1]


class Adapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(nn.Linear(WIDTH, RANK, bias=False) for _ in range(LAYERS))
        self.up = nn.ModuleList(nn.Linear(RANK, WIDTH, bias=False) for _ in range(LAYERS))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(WIDTH, WIDTH, bias=False)
        self.down, self.up = nn.ModuleDict(), nn.ModuleDict()


class Server:
    def __init__(self):
        self.layers, self.adapters = nn.ModuleList(Layer() for _ in range(LAYERS)).cuda(), {}

    def load(self, tenant, name):
        if mode == "latest":
            for old in [key for key in self.adapters if key.startswith(tenant)]:
                del self.adapters[old]
        self.adapters[name] = adapter = Adapter().cuda()
        if mode == "layers":
            for layer, down, up in zip(self.layers, adapter.down, adapter.up):
                layer.down[name], layer.up[name] = down, up
            self.adapters[name] = None

    def answer(self, tenant, version):
        name = "%s-v%d" % (tenant, version)
        if name not in self.adapters:
            self.load(tenant, name)
        adapter = self.adapters[name]
        x = torch.randn(64, WIDTH, device="cuda")
        for i, layer in enumerate(self.layers):
            down, up = (adapter.down[i], adapter.up[i]) if adapter else (layer.down[name], layer.up[name])
            x = torch.relu(layer.base(x) + up(down(x)))
        return x


server = Server()
with torch.no_grad():
    for version in range(12):
        for tenant in ("acme", "beta", "gamma", "delta"):
            server.answer(tenant, version if tenant == "acme" or mode == "even" else 0)
