"""Programs as people write them, of many kinds and small: kinds.py KIND.

Each prints what PyTorch's allocator had in blocks at its peak.
"""
import collections
import copy
import sys

import torch
from torch import nn
from torch.nn import functional

torch.backends.cudnn.enabled = False  # it finds no kernels on the null GPU
DEVICE = "cuda"


def rows(*sizes):
    return torch.randn(*sizes, device=DEVICE)


class Residual(nn.Module):
    """A block of a convolutional network, told what the time is."""

    def __init__(self, channels):
        super().__init__()
        self.norm, self.time = nn.GroupNorm(8, channels), nn.Linear(128, channels)
        self.first, self.second = nn.Conv2d(channels, channels, 3, padding=1), nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x, time):
        h = self.first(functional.silu(self.norm(x))) + self.time(time)[:, :, None, None]
        return x + self.second(functional.silu(h))


class Denoiser(nn.Module):
    def __init__(self, channels=64):
        super().__init__()
        self.into, self.out = nn.Conv2d(3, channels, 3, padding=1), nn.Conv2d(channels, 3, 3, padding=1)
        self.blocks = nn.ModuleList(Residual(channels) for _ in range(6))

    def forward(self, x, time):
        x = self.into(x)
        for block in self.blocks:
            x = block(x, time)
        return self.out(x)


def diffusion():
    """A diffusion model with an average of its weights, which is what pictures are drawn with."""
    net = Denoiser().to(DEVICE)
    average = copy.deepcopy(net).requires_grad_(False)
    optimizer = torch.optim.AdamW(net.parameters())
    for step in range(12):
        image, noise = rows(8, 3, 32, 32), rows(8, 3, 32, 32)
        loss = functional.mse_loss(net(image + noise, rows(8, 128)), noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for mean, p in zip(average.parameters(), net.parameters()):
                mean.lerp_(p, 0.01)
        if step % 6 == 5:
            with torch.no_grad():
                picture = rows(16, 3, 32, 32)
                for _ in range(4):
                    picture = picture - 0.1 * average(picture, rows(16, 128))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(512, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh())
        self.policy, self.value = nn.Linear(1024, 64), nn.Linear(1024, 1)

    def forward(self, x):
        x = self.body(x)
        return self.policy(x), self.value(x)


def reinforcement():
    """PPO: a buffer of observations that is filled by playing, and several passes over it."""
    net = Actor().to(DEVICE)
    optimizer = torch.optim.Adam(net.parameters())
    observations, returns = torch.empty(128, 256, 512, device=DEVICE), torch.empty(128, 256, device=DEVICE)
    for _ in range(3):
        for at in range(128):
            with torch.no_grad():
                observations[at] = rows(256, 512)
                _, value = net(observations[at])
                returns[at] = value[:, 0]
        flat, targets = observations.view(-1, 512), returns.view(-1)
        for part in torch.arange(len(flat)).split(8192):
            logits, value = net(flat[part.to(DEVICE)])
            loss = functional.mse_loss(value[:, 0], targets[part.to(DEVICE)]) - functional.log_softmax(logits, -1)[:, 0].mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


class Messages(nn.Module):
    """A layer of a graph network: what edges say, added up at the nodes."""

    def __init__(self, width):
        super().__init__()
        self.message, self.update = nn.Linear(2 * width, width), nn.Linear(2 * width, width)

    def forward(self, nodes, sources, targets):
        said = functional.relu(self.message(torch.cat((nodes[sources], nodes[targets]), 1)))
        heard = torch.zeros_like(nodes).index_add(0, targets, said)
        return functional.relu(self.update(torch.cat((nodes, heard), 1)))


def graph():
    """A graph network: messages along the edges take most of it."""
    layers = nn.ModuleList(Messages(64) for _ in range(3)).to(DEVICE)
    optimizer = torch.optim.Adam(layers.parameters())
    features = rows(20_000, 64)
    edges = torch.zeros(2, 100_000, dtype=torch.long, device=DEVICE)
    for _ in range(8):
        nodes = features
        for layer in layers:
            nodes = layer(nodes, edges[0], edges[1])
        nodes.pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


class Decoder(nn.Module):
    """A layer that generates, with its keys and values."""

    def __init__(self, width):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, cache):
        q, k, v = self.qkv(x).chunk(3, -1)
        if cache:
            k, v = torch.cat((cache[0], k), 1), torch.cat((cache[1], v), 1)
        cache[:] = k, v
        return x + self.out(functional.scaled_dot_product_attention(q, k, v))


def serving():
    """A server: a model in half precision, adapters by customer, and a cache of keys and values for each request."""
    width = 1024
    model = nn.ModuleList(Decoder(width) for _ in range(12)).to(DEVICE, torch.float16).eval()
    adapters = collections.OrderedDict()
    with torch.no_grad():
        for request in range(30):
            customer = request % 7
            if customer not in adapters:
                adapters[customer] = [torch.zeros(width, 16, device=DEVICE, dtype=torch.float16) for _ in range(24)]
                if len(adapters) > 4:
                    adapters.popitem(last=False)
            caches = [[] for _ in model]
            x = torch.zeros(4, 256, width, device=DEVICE, dtype=torch.float16)
            for _ in range(16):
                for layer, cache in zip(model, caches):
                    x = layer(x, cache)
                x = x[:, -1:]


def captured():
    """CUDA graphs for several sizes of batches."""
    net = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(8))).to(DEVICE)
    kept, pool = [], None
    for size in (4096, 2048, 1024, 512):
        static, recording = torch.zeros(size, 1024, device=DEVICE), torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(recording, pool=pool):
            out = net(static)
        pool = recording.pool()
        kept.append((recording, static, out))
    for recording, _, _ in kept:
        recording.replay()


def preference():
    """DPO: a policy and the model that it came from, and the logits of both over a large vocabulary."""
    policy = nn.Sequential(nn.Embedding(20_000, 256), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 20_000)).to(DEVICE)
    reference = copy.deepcopy(policy).eval().requires_grad_(False)
    optimizer = torch.optim.AdamW(policy.parameters())

    def score(model, tokens):
        return functional.log_softmax(model(tokens), -1).gather(-1, tokens[..., None]).sum((1, 2))

    for _ in range(6):
        chosen, rejected = (torch.zeros(8, 128, dtype=torch.long, device=DEVICE) for _ in range(2))
        with torch.no_grad():
            before = score(reference, chosen) - score(reference, rejected)
        loss = -functional.logsigmoid(score(policy, chosen) - score(policy, rejected) - before).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def truncated():
    """A recurrent network, trained through so many steps at a time; what it remembers goes on without its graph."""
    cell, head = nn.LSTMCell(256, 512).to(DEVICE), nn.Linear(512, 256).to(DEVICE)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
    state = torch.zeros(256, 512, device=DEVICE), torch.zeros(256, 512, device=DEVICE)
    for _ in range(10):
        loss, state = 0, tuple(part.detach() for part in state)
        for _ in range(35):
            state = cell(rows(256, 256), state)
            loss = loss + head(state[0]).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def notebook():
    """Cells of a notebook: a model is made anew, and the old one stays in the history of outputs."""
    cells, names, history = ["net = make()", "out = net(rows(4096, 1024))", "out.sum().backward()", "net"], dict(globals()), {}
    names["make"] = lambda: nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(6))).to(DEVICE)
    for number, cell in enumerate(cells * 3):
        code = compile(cell, f"<cell {number}>", "eval" if cell == "net" else "exec")
        value = eval(code, names)
        if value is not None:
            history[number] = value


def lengths():
    """Sentences in groups of like lengths, longest first."""
    layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
    net = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters())
    for length in (256, 256, 224, 192, 160, 128, 96, 64, 32) * 2:
        net(rows(16, length, 256)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def contrast():
    """Two encoders and the similarity of all pairs, with a memory of earlier batches."""
    image, text = (nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 512)).to(DEVICE) for _ in range(2))
    optimizer = torch.optim.AdamW([*image.parameters(), *text.parameters()])
    memory = torch.zeros(16_384, 512, device=DEVICE)
    for step in range(8):
        a, b = image(rows(2048, 512)), text(rows(2048, 512))
        (functional.cross_entropy(a @ torch.cat((b, memory)).T, torch.zeros(2048, dtype=torch.long, device=DEVICE))).backward()
        optimizer.step()
        optimizer.zero_grad()
        at = step * 2048 % len(memory)
        memory[at : at + 2048] = b.detach()


def parallel():
    """DistributedDataParallel, with gradients added up over several batches."""
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    net = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(1024, 1024), nn.ReLU()))).to(DEVICE)
    ddp = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(net.parameters())
    for step in range(12):
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = ddp(rows(1024, 1024)).pow(2).mean()
        loss.backward()
        if step % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    torch.cuda.synchronize()
    print(torch.cuda.max_memory_allocated())
