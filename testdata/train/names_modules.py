"""Modules, parameters and buffers in the shapes that programs give them."""
import sys
import warnings

import names_oracle
import torch
from torch import nn
from torch.nn.utils import parametrize

warnings.simplefilter("ignore")
_kept = []  # alive at the end, when everything is said again


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(700))

    def forward(self, x):
        return x * self.factor[: x.shape[-1]]


class Half(nn.Module):
    def forward(self, x):
        return x / 2


class Odd(nn.Module):
    """Lists, dictionaries, one module in two places, one parameter in two modules, buffers of every kind."""

    def __init__(self):
        super().__init__()
        shared = Scaled()
        self.embed = nn.Embedding(40, 300)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(300, 300), shared), nn.Sequential(nn.Linear(300, 300), shared)])
        self.several = nn.ParameterList([nn.Parameter(torch.ones(300 + i)) for i in range(3)])
        self.named = nn.ParameterDict({"left": nn.Parameter(torch.ones(301)), "right": nn.Parameter(torch.ones(302))})
        self.norm = nn.BatchNorm1d(300)
        self.normed = nn.utils.weight_norm(nn.Linear(300, 300))
        self.halved = nn.Linear(300, 300)
        parametrize.register_parametrization(self.halved, "weight", Half())
        self.spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(300, 10))
        self.lazy = nn.LazyLinear(300)
        self.head = nn.Linear(300, 40, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("mask", torch.ones(300, dtype=torch.bool))
        self.register_buffer("hidden", torch.ones(900), persistent=False)
        self.register_buffer("nothing", None)
        self.register_parameter("none", None)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        x = x + sum(p[:300] for p in self.several) + sum(p[:300] for p in self.named.values())
        x = self.halved(self.normed(self.norm(x))) * self.mask
        return self.head(self.lazy(x)).sum() + self.spectral(x).sum()


def train(model, optimizer, x, steps=2):
    for _ in range(steps):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


def odd(oracle):
    net = Odd().cuda()
    tokens = torch.zeros(8, dtype=torch.long, device="cuda")
    net(tokens)
    optimizer = torch.optim.Adam(net.parameters())
    train(net, optimizer, tokens)
    oracle.module("net", net)
    oracle.optimizer(optimizer, net=net)
    oracle.mark("odd", whole=False)
    return net, optimizer


class Trainer:
    def __init__(self):
        self.generator = nn.Sequential(nn.Linear(50, 60), nn.Linear(60, 50)).cuda()
        self.critics = [nn.Linear(50, 7).cuda(), nn.Linear(50, 9).cuda()]
        self.optimizers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (self.generator, *self.critics)]

    def fit(self, x):
        for _ in range(2):
            y = self.generator(x)
            sum(critic(y).sum() for critic in self.critics).backward()
            for optimizer in self.optimizers:
                optimizer.step()


def several(oracle):
    """Models that only an object's attributes refer to, one optimizer each."""
    trainer = Trainer()
    trainer.fit(torch.ones(4, 50, device="cuda"))
    for at, (name, model) in enumerate(zip(("generator", "critics.0", "critics.1"), (trainer.generator, *trainer.critics))):
        oracle.module(f"trainer.{name}", model)
        oracle.optimizer(trainer.optimizers[at], **{f"trainer.{name}": model})
    oracle.mark("several")
    return trainer


def inner(oracle, network):
    optimizer = torch.optim.RMSprop(network.parameters())
    train(network, optimizer, torch.ones(4, 30, device="cuda"))
    oracle.module("outer", network)
    oracle.optimizer(optimizer, outer=network)
    oracle.mark("outermost")
    return optimizer


def outermost(oracle):
    """Two functions have the model under two names: the outer one's counts. The second `outer` is outer#2."""
    outer = nn.Linear(30, 31).cuda()
    kept = outer, inner(oracle, outer)
    first = outer
    outer = nn.Linear(30, 33).cuda()
    second = torch.optim.SGD(outer.parameters(), lr=0.1)
    train(outer, second, torch.ones(4, 30, device="cuda"))
    oracle.module("outer", first)
    oracle.module("outer#2", outer)
    oracle.mark("second")
    return kept, outer, second


def changing(oracle):
    """Parameters that get other memory, a head that is replaced, modules that appear while the program trains."""
    grown = nn.Sequential(nn.Linear(20, 400), nn.Linear(400, 30)).cuda()
    optimizer = torch.optim.SGD(grown.parameters(), lr=0.1)
    x = torch.ones(4, 20, device="cuda")
    train(grown, optimizer, x)
    pad = torch.empty(1 << 20, device="cuda")
    for p in grown.parameters():
        p.data = p.data.clone()
    train(grown, optimizer, x)
    oracle.module("grown", grown)
    oracle.mark("data")
    del pad
    grown[1] = nn.Sequential(nn.Linear(400, 500), nn.Linear(500, 3)).cuda()
    optimizer = torch.optim.SGD(grown.parameters(), lr=0.1, momentum=0.9)
    train(grown, optimizer, x)
    oracle.module("grown", grown)
    oracle.optimizer(optimizer, grown=grown)
    oracle.mark("replaced")
    grown.cpu()
    grown.cuda()
    train(grown, optimizer, x)
    oracle.module("grown", grown)
    oracle.optimizer(optimizer, grown=grown)
    oracle.mark("moved")
    return grown, optimizer


def loose(oracle):
    """Tensors without a module: by their variables, else by the place in the optimizer. Their gradients accumulate."""
    weight = torch.randn(300, 20, device="cuda", requires_grad=True)
    rest = [torch.randn(20, 31, device="cuda", requires_grad=True), torch.randn(31, device="cuda", requires_grad=True)]
    optimizer = torch.optim.Adam([{"params": [weight]}, {"params": rest}])
    for _ in range(3):
        ((torch.ones(4, 300, device="cuda") @ weight) @ rest[0] + rest[1]).sum().backward()
        optimizer.step()
    for name, p in ("weight", weight), ("rest.0", rest[0]), ("rest.1", rest[1]):
        oracle.tensor("parameter", name, p)
        oracle.tensor("gradient", name, p.grad)
        for key, value in optimizer.state[p].items():
            oracle.tensor("optimizer", f"{key}:{name}", value)
    oracle.mark("loose")
    hidden = torch.optim.SGD((torch.randn(n, device="cuda", requires_grad=True) for n in (333, 444)), lr=0.1)
    params = len(hidden.param_groups[0]["params"])
    for at in range(params):
        hidden.param_groups[0]["params"][at].sum().backward()
    hidden.step()
    for at in range(params):
        p = hidden.param_groups[0]["params"][at]
        oracle.tensor("parameter", f"SGD.0.{at}", p)
        oracle.tensor("gradient", f"SGD.0.{at}", p.grad)
    oracle.mark("nameless")
    return weight, rest, optimizer, hidden


def flat(oracle):
    """Parameters that are pieces of one tensor, as those of recurrent layers, and gradients that are."""
    packed = nn.Sequential(nn.Linear(64, 64), nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))).cuda()
    inner = list(packed[1].parameters())
    whole, gradient = (torch.randn(sum(p.numel() for p in inner), device="cuda") for _ in range(2))
    at = 0
    for p in inner:
        p.data = whole[at : at + p.numel()].view(p.shape)
        p.grad = gradient[at : at + p.numel()].view(p.shape)
        at += p.numel()
    optimizer = torch.optim.SGD(packed.parameters(), lr=0.1)
    for _ in range(2):
        packed(torch.ones(4, 64, device="cuda")).sum().backward()
        optimizer.step()
    oracle.module("packed", packed)
    oracle.flat("parameter", "packed.1.(flat of 4)", whole)
    oracle.flat("gradient", "packed.1.(flat of 4)", gradient)
    oracle.mark("flat")
    return packed, optimizer


def scripted(oracle):
    """TorchScript."""
    traced = torch.jit.script(nn.Sequential(nn.Linear(40, 41), nn.BatchNorm1d(41)).cuda())
    optimizer = torch.optim.Adam(traced.parameters())
    train(traced, optimizer, torch.ones(4, 40, device="cuda"))
    oracle.module("traced", traced)
    oracle.optimizer(optimizer, traced=traced)
    oracle.mark("scripted")
    return traced, optimizer


def main():
    oracle = names_oracle.Oracle(sys.argv[1])
    for case in odd, several, outermost, changing, loose, flat, scripted:
        _kept.append(case(oracle))
    oracle.finish()


if __name__ == "__main__":
    main()
