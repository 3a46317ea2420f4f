"""Programs that run out of memory, and that do what is to be tried then:

    refused.py CASE [--followed] [--stop N]

Each goes on from point to point. Where memory runs out, it prints how many points it passed and what PyTorch holds;
with --stop it prints that at point N and ends. So the difference between the two is what following the advice gives.
"""
import argparse
import contextlib
import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile

import torch
from torch import nn

MB = 1 << 20
passed, stop = 0, -1


def tell():
    print(json.dumps({"points": passed, "allocated": torch.cuda.memory_allocated(), "reserved": torch.cuda.memory_reserved(),
                      "peak": torch.cuda.max_memory_allocated()}))


def point():
    global passed
    passed += 1
    if passed == stop:
        tell()
        sys.stdout.flush()
        os._exit(0)


class Point(nn.Module):
    """A point between two layers."""

    def forward(self, x):
        point()
        return x


def model(layers, width=1024):
    return nn.Sequential(*(part for _ in range(layers) for part in (Point(), nn.Linear(width, width), nn.GELU()))).cuda()


def step(net, optimizer, rows):
    loss = net(torch.randn(rows, 1024, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def validation(followed):
    """Outputs of a validation are kept with their graphs."""
    net = model(6)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    kept = []
    while True:
        for _ in range(6):
            step(net, optimizer, 512)
        with torch.set_grad_enabled(not followed):
            kept.extend(net(torch.randn(512, 1024, device="cuda")).sum() for _ in range(4))


def losses(followed):
    """A validation adds up losses and not their values."""
    net = model(6)
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(5):
        step(net, optimizer, 512)
    total, loss_of = 0, nn.CrossEntropyLoss()
    while True:
        x, y = torch.randn(512, 1024, device="cuda"), torch.zeros(512, dtype=torch.long, device="cuda")
        loss = loss_of(net(x), y)
        total += loss.item() if followed else loss


def unstepped(followed):
    """Nothing is trained at all, and no_grad is missing."""
    net, kept = model(6).eval(), []
    while True:
        with torch.set_grad_enabled(not followed):
            kept.append(net(torch.randn(512, 1024, device="cuda"))[0, 0])


def results(followed):
    """Results stay on the device."""
    net, kept = model(2).eval(), []
    with torch.no_grad():
        while True:
            out = net(torch.randn(2048, 1024, device="cuda"))
            kept.append(out.cpu() if followed else out)


def state(followed):
    """What a step ends with is what the next one begins with, graph and all."""
    net, hidden, kept = nn.GRUCell(512, 512).cuda(), torch.zeros(2048, 512, device="cuda"), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    while True:
        point()
        hidden = net(torch.randn(2048, 512, device="cuda"), hidden.detach())
        hidden.sum().backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad()
        kept.append(hidden.detach().cpu() if followed else hidden)


class Result:
    """Refers to itself."""

    def __init__(self, values):
        self.values, self.owner = values, self


def cycles(followed):
    """Results are dropped, but lie in reference cycles, and the collector is off."""
    net = model(2).eval()
    gc.disable()
    with torch.no_grad():
        while True:
            Result(net(torch.randn(2048, 1024, device="cuda")))
            if followed:
                gc.collect()


def undetached(followed):
    """The state of a recurrent network goes from one step to the next with its graph."""
    net, hidden = nn.GRUCell(512, 512).cuda(), torch.zeros(2048, 512, device="cuda")
    while True:
        point()
        hidden = net(torch.randn(2048, 512, device="cuda"), hidden.detach() if followed else hidden)


def resident(followed):
    """Outputs of a validation on data that stays on the device are kept with their graphs."""
    net, data, kept = model(6), torch.randn(512, 1024, device="cuda"), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(5):
        step(net, optimizer, 512)
    while True:
        kept.append(net(data[: 256 if followed else 512]))


class Activated(nn.Module):
    """Layers that share one activation function."""

    def __init__(self):
        super().__init__()
        self.layers, self.activation = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(40)), nn.GELU()

    def forward(self, x):
        for layer in self.layers:
            point()
            x = self.activation(layer(x))
        return x


def shared(followed):
    """A batch that is too large, for layers of which each calls the same activation function."""
    net = Activated().cuda()
    net(torch.randn(4096 if followed else 8192, 1024, device="cuda")).sum().backward()


def batch(followed):
    """A batch that is too large."""
    net = model(40)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    while True:
        step(net, optimizer, 4096 if followed else 8192)


class Returning(torch.autograd.Function):
    """A point in a backward pass."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        point()
        return gradient


class Joined(nn.Module):
    """Many layers side by side, whose results are one large activation."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4096, 4096, bias=False)
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(4096, 1024, bias=False), nn.GELU()) for _ in range(40))
        self.register_buffer("scale", torch.ones(40 * 1024))

    def forward(self, x):
        x = self.first(x)
        loss = nn.functional.gelu(x.repeat(1, 10)).sum()
        return loss + (torch.cat([Returning.apply(layer(x)) for layer in self.layers], 1) * self.scale).sum()


def backward(followed):
    """A batch that is too large in the backward pass, while that holds the gradient of a large activation."""
    net = Joined().cuda()
    net(torch.randn(512 if followed else 1024, 4096, device="cuda")).backward()


def longer(followed):
    """One batch is longer than the others."""
    net = model(8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for rows in (4096, 3500, 4096, 4000, 4096, 4096 if followed else 40000):
        step(net, optimizer, rows)


def stages(followed):
    """A second stage of training, on larger images."""
    net = model(8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(5):
        step(net, optimizer, 512)
    step(net, optimizer, 20000 if followed else 40000)


def weights(followed):
    """A model that is too large."""
    net = model(80, 2048).half() if followed else model(80, 2048)
    with torch.no_grad():
        x = torch.randn(8192, 2048, device="cuda", dtype=next(net.parameters()).dtype)
        net(x)
        torch.empty(1024 * MB, dtype=torch.uint8, device="cuda")


def copies(followed):
    """Half-precision copies of weights."""
    net = model(90, 2048)
    with torch.no_grad(), torch.autocast("cuda", torch.float16, cache_enabled=not followed):
        net(torch.randn(64, 2048, device="cuda"))


def graphs(followed):
    """Graphs with pools of their own."""
    net, pool, kept = model(2), None, []
    for size in sorted(range(1, 9), reverse=followed):
        static = torch.zeros(size * 2048, 1024, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph, pool=pool):
            out = net(static).sum()
        if followed:
            pool = graph.pool()
        kept.append((graph, static, out))
    point()
    torch.empty(600 * MB, dtype=torch.uint8, device="cuda")


def holes(_):
    """What is read is larger than what is kept of it; followed by a setting."""
    keep = []
    while True:
        raw = torch.empty(530 * MB, dtype=torch.uint8, device="cuda")
        point()
        keep.append(torch.empty(530 * MB, dtype=torch.uint8, device="cuda"))
        del raw
        keep.append(torch.empty(270 * MB, dtype=torch.uint8, device="cuda"))


def attempts(followed):
    """Exceptions of failed attempts are kept, and with them what these made."""
    net, errors = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8))).cuda(), []
    for rows in (65536, 32768, 16384, 8192):
        point()
        try:
            net(torch.randn(rows, 2048, device="cuda")).sum().backward()
        except torch.cuda.OutOfMemoryError as error:
            errors.append(repr(error) if followed else error)
    tell()


def limit(followed):
    """A limit that the program sets itself."""
    if not followed:
        torch.cuda.set_per_process_memory_fraction(0.1)
    kept = torch.empty(600 * MB, dtype=torch.uint8, device="cuda")
    torch.empty(600 * MB, dtype=torch.uint8, device="cuda")
    del kept


def accumulated(followed):
    """Gradients of several batches, of which the last is too large."""
    net = model(20)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for rows in (1024, 1024, 1024, 8192 if followed else 16384):
        net(torch.randn(rows, 1024, device="cuda")).sum().backward()
    optimizer.step()


class Recurrent(nn.Module):
    """One module that runs again and again within a pass."""

    def __init__(self):
        super().__init__()
        self.point, self.cell = Point(), nn.GRUCell(512, 512)

    def forward(self, x):
        hidden = x[0]
        for row in x:
            hidden = self.cell(self.point(row), hidden)
        return hidden


def recurrent(followed):
    """A batch that is too large for so many steps of a recurrent network."""
    net = Recurrent().cuda()
    net(torch.randn(64, 1024 if followed else 2048, 512, device="cuda")).sum().backward()


class EightBit(torch.optim.Optimizer):
    """Keeps what Adam keeps in a byte for each number, with a scale for each 256 of them."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            for name in () if state else ("exp_avg", "exp_avg_sq"):
                state[name] = torch.zeros(p.numel(), dtype=torch.uint8, device=p.device)
                state[name + "_scale"] = torch.zeros((p.numel() + 255) // 256, device=p.device)


def adam(followed, dtype=torch.float32):
    """An optimizer with much state, and at last a batch that is too large."""
    net = model(40).to(dtype)
    optimizer = EightBit(net.parameters()) if followed else torch.optim.Adam(net.parameters())
    for rows in (512, 512, 512, 20000):
        net(torch.randn(rows, 1024, device="cuda", dtype=dtype)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def half_adam(followed):
    """The same, in half precision."""
    adam(followed, torch.bfloat16)


def multi_tensor(followed):
    """The step of an optimizer makes temporaries for all parameters at once."""
    net = model(40)
    stepped(net, torch.optim.Adam(net.parameters(), fused=followed or None), followed)


def multi_tensor_rms(followed):
    """The same of an optimizer that has no fused step."""
    net = model(40)
    stepped(net, torch.optim.RMSprop(net.parameters(), foreach=not followed), followed)


def stepped(net, optimizer, followed):
    """As many points before a step that is refused as after the same step that is not."""
    for _ in range(3):
        net(torch.randn(64, 1024, device="cuda")).sum().backward()
        if not followed:
            point()
        optimizer.step()
        if followed:
            point()
        optimizer.zero_grad()


def first_step(_):
    """The first step of an optimizer makes its state, which is not all there when memory runs out; not to be followed."""
    net = model(40)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(512, 1024, device="cuda")).sum().backward()
    optimizer.step()


def shard(followed):
    """A model in half precision that is too large; followed by half of its parameters, as each of two GPUs has them."""
    net = model(40 if followed else 80, 2048).to(torch.bfloat16)
    with torch.no_grad():
        net(torch.randn(64, 2048, device="cuda", dtype=torch.bfloat16))
        if followed:
            tell()
        torch.empty(1024 * MB, dtype=torch.uint8, device="cuda")


class Attention(nn.Module):
    """Attention that caches keys and values."""

    def __init__(self, width):
        super().__init__()
        self.project, self.cache = nn.Linear(width, 3 * width), None

    def forward(self, x):
        q, k, v = self.project(x).chunk(3, -1)
        if self.cache is not None:
            k, v = torch.cat((self.cache[0], k), 1), torch.cat((self.cache[1], v), 1)
        self.cache = k, v
        return x + nn.functional.scaled_dot_product_attention(q, k, v)


def generation(followed):
    """A cache of keys and values that grows with each token."""
    net = nn.Sequential(*(Attention(512) for _ in range(8))).cuda().eval()
    with torch.no_grad():
        x = torch.randn(16 if followed else 32, 128, 512, device="cuda")
        while True:
            point()
            x = net(x)[:, -1:]


def outside(followed):
    """Another library asks the driver for what PyTorch has cached."""
    kept = torch.empty(100 * MB, dtype=torch.uint8, device="cuda")
    cached = torch.empty(600 * MB, dtype=torch.uint8, device="cuda")
    del cached
    if followed:
        torch.cuda.empty_cache()
    tell()
    cudart = "libcudart.so." + torch.version.cuda.split(".")[0]
    ctypes.CDLL(cudart).cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(500 * MB))
    del kept


def beside(followed):
    """Another process has a part of the device."""
    os.environ["NULLCUDA_SHARED"] = os.path.abspath("device")
    with contextlib.ExitStack() as ends:
        if not followed:
            source = "import sys, torch; kept = torch.empty(600 << 20, dtype=torch.uint8, device='cuda'); print(flush=True); sys.stdin.read()"
            environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
            child = subprocess.Popen([sys.executable, "-c", source], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            ends.enter_context(child).stdout.readline()
        kept = []
        while True:
            kept.append(torch.empty(20 * MB, dtype=torch.uint8, device="cuda"))


def twice(followed):
    """A checkpoint on the device beside the model that it is for."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        torch.save(model(64).state_dict(), path)
        net = model(64)
        state = torch.load(path, map_location="cpu" if followed else "cuda", weights_only=True)
        net.load_state_dict(state)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for rows in (1024, 1024, 1024, 8192):
            step(net, optimizer, rows)


def replaced(followed):
    """A result is made anew while the variable has the one before."""
    data = torch.empty(300 * MB, dtype=torch.uint8, device="cuda")
    while passed < 4:
        point()
        mixed = data.flip(0)
        if followed:
            del mixed
    tell()


class Averaging(torch.optim.Optimizer):
    """Makes its state at points of its own."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self):
        for p in (p for group in self.param_groups for p in group["params"]):
            for name in () if self.state[p] else ("exp_avg", "exp_avg_sq"):
                point()
                self.state[p][name] = torch.zeros_like(p)


def orphans(followed):
    """A model is replaced by another, and its optimizer goes on with both."""
    net = model(20)
    optimizer = Averaging(net.parameters())
    while True:
        for _ in range(3):
            step(net, optimizer, 64)
        net = model(20)
        if followed:
            optimizer = Averaging(net.parameters())
        else:
            optimizer.add_param_group({"params": list(net.parameters())})


class Sessions:
    """A server of a recurrent network that keeps a state for each user."""

    def __init__(self):
        self.cells, self.states = nn.ModuleList(nn.GRUCell(512, 512) for _ in range(4)).cuda().eval(), {}

    @torch.inference_mode()
    def answer(self, user, x, most):
        point()
        states = self.states.get(user, [None] * 4)
        for n, cell in enumerate(self.cells):
            x = states[n] = cell(x, states[n])
        self.states[user] = states
        if len(self.states) > most:
            del self.states[next(iter(self.states))]
        return x.cpu()


def sessions(followed):
    """States of users who do not come back are kept; followed by dropping those that are no longer needed."""
    server = Sessions()
    for user in range(10000):
        server.answer(user, torch.randn(64, 512, device="cuda"), 10 if followed else 10000)


def main():
    global stop
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case")
    parser.add_argument("--followed", action="store_true")
    parser.add_argument("--stop", type=int, default=-1)
    options = parser.parse_args()
    stop = options.stop
    try:
        globals()[options.case](options.followed)
    except torch.cuda.OutOfMemoryError:
        tell()


main()
