"""Every optimizer of torch.optim, in each of its kinds: what it keeps is called after the parameter."""
import sys

import names_oracle
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 300)
        self.inner = nn.Sequential(nn.ReLU(), nn.Linear(300, 200, bias=False), nn.ReLU())
        self.last = nn.Linear(200, 5)

    def forward(self, x):
        return self.last(self.inner(self.first(x)))


def kinds(cls):
    """Arguments for the implementations that a class has."""
    yield "plain", {}
    for kind in "foreach", "fused":
        try:
            probe = nn.Parameter(torch.zeros(2, 2, device="cuda"))
            probe.grad = torch.zeros_like(probe)
            cls([probe], lr=0.1, **{kind: True}).step()
        except (TypeError, RuntimeError):
            continue
        yield kind, {kind: True}


def build(name, cls, parameters, options):
    if name == "LBFGS":
        return cls(parameters, lr=0.1, history_size=3, max_iter=2)
    if name in ("SGD", "RMSprop"):
        return cls(parameters, lr=0.1, momentum=0.9, **options)
    if name in ("Adam", "AdamW"):
        return cls(parameters, lr=0.1, amsgrad=True, **options)
    return cls(parameters, lr=0.1, **options)


# To 1.13 sparse tensors are checked by reading their indices, which are any where no kernel runs.
without = () if hasattr(torch.sparse, "check_sparse_tensor_invariants") else ("SparseAdam",)


def train(oracle, name, cls, kind, options):
    model = Net().cuda()
    parameters = [p for p in model.parameters() if name != "Muon" or p.ndim == 2]
    optimizer = build(name, cls, parameters, options)
    x = torch.randn(8, 16, device="cuda")
    for _ in range(3):
        def closure():
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss

        if name == "SparseAdam":
            for p in parameters:
                p.grad = torch.sparse_coo_tensor(torch.tensor([[0]], device="cuda"), torch.ones(1, *p.shape[1:], device="cuda"), p.shape)
            optimizer.step()
        elif name == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    oracle.module("model", model, gradients=name != "SparseAdam")
    if name == "LBFGS":
        state = optimizer.state[parameters[0]]
        for key, value in state.items():
            for at, part in enumerate(value) if isinstance(value, (list, tuple)) else ((None, value),):
                oracle.tensor("optimizer", f"{key}{'' if at is None else f'.{at}'}:model.first.weight", part)
    else:
        oracle.optimizer(optimizer, model=model)
    if name == "SparseAdam":
        for path, p in model.named_parameters():
            oracle.tensor("gradient", f"model.{path}.values", p.grad._values())
    oracle.mark(f"{name}-{kind}")


def main():
    oracle = names_oracle.Oracle(sys.argv[1])
    for name, cls in sorted(vars(torch.optim).items()):
        if name not in without and isinstance(cls, type) and issubclass(cls, torch.optim.Optimizer) and cls is not torch.optim.Optimizer:
            for kind, options in kinds(cls):
                train(oracle, name, cls, kind, options)
    oracle.finish()


if __name__ == "__main__":
    main()
