"""Optimizers in wrappers, copies of parameters, quantised states, tensors made of tensors, scalers, averages, optimizers inside of the backward pass."""
import sys
import warnings

import names_oracle
import torch
from torch import nn

warnings.simplefilter("ignore")
_kept = []


def net(*sizes):
    return nn.Sequential(*(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))).cuda()


class EightBit(torch.optim.Optimizer):
    """State as 8-bit optimizers keep it: bytes, a table that all parameters share, scales; one parameter's state is an object."""

    class State:
        __slots__ = "mean", "shadow", "hidden"

        def __init__(self, p):
            self.mean = torch.zeros_like(p)
            self.shadow = [torch.zeros_like(p), {"deep": torch.zeros_like(p)}]

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})
        self.table = torch.arange(256, device="cuda").float()
        self.pool = {"free": [torch.zeros(5000, device="cuda")]}

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for at, p in enumerate(group["params"]):
                if not self.state[p]:
                    self.state[p] = {"state1": torch.zeros(p.numel(), dtype=torch.uint8, device="cuda"), "qmap1": self.table,
                                     "absmax1": torch.zeros(1 + p.numel() // 256, device="cuda"), "step": 0} if at else {"object": self.State(p)}


def eightbit(oracle):
    small = net(70, 80, 90)
    optimizer = EightBit(small.parameters())
    for _ in range(2):
        small(torch.ones(2, 70, device="cuda")).sum().backward()
        optimizer.step()
    oracle.module("small", small)
    for at, (path, p) in enumerate(small.named_parameters()):
        state = optimizer.state[p]
        if not at:
            oracle.tensor("optimizer", f"object.mean:small.{path}", state["object"].mean)
            oracle.tensor("optimizer", f"object.shadow.0:small.{path}", state["object"].shadow[0])
            oracle.tensor("optimizer", f"object.shadow.1.deep:small.{path}", state["object"].shadow[1]["deep"])
            continue
        for key in "state1", "absmax1":
            oracle.tensor("optimizer", f"{key}:small.{path}", state[key])
        if at == 1:
            oracle.tensor("optimizer", f"qmap1:small.{path}", state["qmap1"])
    oracle.tensor("optimizer", "pool.free.0:EightBit", optimizer.pool["free"][0])
    oracle.mark("eightbit")
    return small, optimizer


class FlatOptimizer:
    """As sharded optimizers work: one full-precision copy of this rank's part, stepped by an optimizer inside."""

    def __init__(self, params, inner):
        self.half_groups = [list(params)]
        self.partitions = [torch.cat([p.detach().float().flatten() for p in self.half_groups[0]])]
        self.averaged_gradients = {0: [torch.zeros_like(p) for p in self.half_groups[0]]}
        self.optimizer = inner(self.partitions)

    def step(self):
        self.partitions[0].grad = torch.cat([p.grad.float().flatten() for p in self.half_groups[0]])
        self.optimizer.step()


def sharded(oracle):
    half = net(60, 61).half()
    outer = FlatOptimizer(half.parameters(), lambda params: torch.optim.Adam(params, lr=0.1))
    for _ in range(2):
        half(torch.ones(2, 60, device="cuda").half()).sum().backward()
        outer.step()
    oracle.module("half", half)
    part = outer.partitions[0]
    oracle.tensor("parameter", "outer.partitions.0", part)
    oracle.tensor("gradient", "outer.partitions.0", part.grad)
    for key, value in outer.optimizer.state[part].items():
        oracle.tensor("optimizer", f"{key}:outer.partitions.0", value)
    oracle.mark("sharded")
    return half, outer


class Lookahead(torch.optim.Optimizer):
    """An optimizer around another one, with a state of its own under the same parameters. Both step: that is one step."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        super().__init__([p for g in optimizer.param_groups for p in g["params"]], {})

    def step(self, closure=None):
        self.optimizer.step()
        for p in self.param_groups[0]["params"]:
            self.state[p].setdefault("slow", p.detach().clone())


def wrapped(oracle):
    fast = net(50, 51)
    optimizer = Lookahead(torch.optim.SGD(fast.parameters(), lr=0.1, momentum=0.9))
    for _ in range(4):
        fast(torch.ones(2, 50, device="cuda")).sum().backward()
        optimizer.step()
    oracle.module("fast", fast)
    oracle.optimizer(optimizer, fast=fast)
    oracle.optimizer(optimizer.optimizer, fast=fast)
    oracle.mark("wrapped")
    return fast, optimizer


class Pair(torch.Tensor):
    """Two tensors that look like one."""

    @staticmethod
    def __new__(cls, first, second):
        return torch.Tensor._make_wrapper_subclass(cls, first.shape, dtype=first.dtype, device=first.device, requires_grad=False)

    def __init__(self, first, second):
        self.first, self.second = first, second

    def __tensor_flatten__(self):
        raise AssertionError("nobody has asked for this")

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return cls(args[0].first.detach(), args[0].second.detach())
        raise AssertionError(f"nobody has asked for {func}")


class Tagged(nn.Parameter):
    """A parameter with memory of its own and tensors beside it."""


def pieces(oracle):
    made = nn.Linear(40, 41).cuda()
    made.packed = nn.Parameter(Pair(torch.ones(3000, device="cuda"), torch.ones(7, 100, device="cuda")), requires_grad=False)
    made.tagged = Tagged(torch.ones(600, device="cuda"))
    made.tagged.scales = {"row": torch.ones(601, device="cuda")}
    made.tagged.main_grad = torch.ones(602, device="cuda")
    optimizer = torch.optim.SGD([made.weight, made.bias, made.tagged], lr=0.1)
    for _ in range(2):
        (made(torch.ones(2, 40, device="cuda")).sum() + made.tagged.sum()).backward()
        optimizer.step()
    for name, p in ("weight", made.weight), ("bias", made.bias), ("tagged", made.tagged):
        oracle.tensor("parameter", f"made.{name}", p)
        oracle.tensor("gradient", f"made.{name}", p.grad)
    oracle.tensor("parameter", "made.packed.first", made.packed.first)
    oracle.tensor("parameter", "made.packed.second", made.packed.second)
    oracle.tensor("parameter", "made.tagged.scales.row", made.tagged.scales["row"])
    oracle.tensor("gradient", "made.tagged.main_grad", made.tagged.main_grad)
    oracle.mark("pieces")
    return made, optimizer


def mixed(oracle):
    """A scaler and averaged weights; the autocast cache is C++'s and has no names."""
    live = net(30, 31, 32)
    average = torch.optim.swa_utils.AveragedModel(live)
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0)
    optimizer = torch.optim.SGD(live.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = live(torch.ones(2, 30, device="cuda")).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        average.update_parameters(live)
    oracle.module("live", live)
    oracle.module("average", average)
    oracle.tensor("buffer", "scaler._scale", scaler._scale)
    oracle.tensor("buffer", "scaler._growth_tracker", scaler._growth_tracker)
    oracle.mark("mixed")
    return live, average, scaler, optimizer


def inside(oracle):
    """An optimizer for each parameter, stepped while the gradients of others are still to come."""
    eager = net(20, 21, 22, 23)
    optimizers = {p: torch.optim.Adam([p], lr=0.1, foreach=False) for p in eager.parameters()}

    def step(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in eager.parameters():
        p.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        eager(torch.ones(2, 20, device="cuda")).sum().backward()
    oracle.module("eager", eager)
    for optimizer in optimizers.values():
        oracle.optimizer(optimizer, eager=eager)
    oracle.mark("inside")
    return eager, optimizers


def main():
    oracle = names_oracle.Oracle(sys.argv[1])
    for case in eightbit, sharded, wrapped, pieces, mixed, inside:
        _kept.append(case(oracle))
    oracle.finish()


if __name__ == "__main__":
    main()
