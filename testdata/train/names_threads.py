"""Threads that train while another one has everything looked at, as often as it can.

    names_threads.py [--looks N] [--rounds N] [--threads T] [--seed S] [--only KIND]

An optimizer over a parameter that no module has makes the library look at what the
variables of all threads lead to: the main thread steps a new one all the time. The
others train, each models of its own, and replace what a look may be reading: gradients,
memory of parameters, modules, graphs, state. It ends after so many looks, when every
thread has had so many rounds.
"""
import argparse
import gc
import random
import sys
import threading
import warnings

import torch
from torch import nn

compiling = threading.Lock()  # TorchScript does not compile a class in two threads at once


class Net(nn.Module):
    def __init__(self, device, sparse=False):
        super().__init__()
        self.embedding = nn.EmbeddingBag(32, 8, mode="sum", sparse=sparse)
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(6)])
        self.norm = nn.BatchNorm1d(8)
        self.to(device)

    def forward(self, x):
        x = self.embedding(x)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.norm(x)


class Recurrent(nn.Module):
    """Its state is another tensor after every pass."""

    def __init__(self):
        super().__init__()
        self.register_buffer("hidden", torch.zeros(4))
        self.register_buffer("cell", torch.zeros(4))
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, n: int):
        for _ in range(n):
            self.hidden = self.cell + 1
            self.cell = self.hidden + 1
        return self.hidden * self.weight


class Trainer:
    """What a thread does: training steps in a kind of its own each."""

    def __init__(self, number, seed):
        self.random = random.Random(seed * 100 + number)
        self.device = ["cuda", "cpu"][number % 3 == 2]
        self.count = 0

    def batch(self):
        return torch.tensor([[self.random.randrange(32) for _ in range(3)] for _ in range(4)], device=self.device)

    def train(self, model, optimizer, steps=4, to_none=True):
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=to_none)
            output = model(self.batch())
            loss = (output * output).sum()
            loss.backward()
            optimizer.step()
            self.count += 1

    def plain(self):
        model = Net(self.device)
        self.train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), to_none=False)

    def adam(self):
        model = Net(self.device)
        self.train(model, torch.optim.Adam(model.parameters(), lr=0.1))

    def sparse(self):
        model = Net(self.device, sparse=True)
        self.train(model, torch.optim.SGD(model.parameters(), lr=0.1))

    def moved(self):
        model = Net("cpu")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for device in "cpu", self.device, "cpu", self.device:
            model.to(device)
            self.train(model, optimizer, 0)
        model.double().float()
        self.train(model, optimizer, 2)

    def replaced(self):
        """Parameters get other memory, as sharding does it."""
        model = Net(self.device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            for p in model.parameters():
                full = p.data
                with torch.no_grad():
                    p.set_(full.clone())
                    p.data = full.clone()
                    storage = (getattr(p, "untyped_storage", None) or p.storage)()
                    size = storage.size()
                    storage.resize_(0)
                    storage.resize_(size)
            self.train(model, optimizer, 1)

    def swapped(self):
        """Parameters are exchanged for others, and modules for modules."""
        model, other = Net(self.device), Net(self.device)
        if hasattr(torch.utils, "swap_tensors"):
            for a, b in zip(model.parameters(), other.parameters()):
                torch.utils.swap_tensors(a, b)
        for at in range(6):
            model.layers[at] = nn.Linear(8, 8, device=self.device)
            model.norm.weight = nn.Parameter(torch.ones(8, device=self.device))
            model.norm.running_mean = torch.zeros(8, device=self.device)
        self.train(model, torch.optim.SGD(model.parameters(), lr=0.1), 2)

    def kept(self):
        """Graphs whose tensors go while others of theirs are differentiated."""
        model = Net(self.device)
        x, held = torch.ones(4, 8, device=self.device, requires_grad=True), []
        for _ in range(4):
            y = x
            for layer in model.layers:
                y = layer(y)
                held.append(y)
                y = y * 2
            z = y.sum()
            z.backward()
            held, y, x = [], None, x.detach().requires_grad_()
            self.count += 1

    def hooked(self):
        """Hooks in backward passes, which run Python in the autograd engine's threads."""
        model, seen = Net(self.device), []

        def clear(parameter):
            seen.append(1)
            parameter.grad = None

        for p in model.parameters():
            p.register_hook(lambda g: g * 1)
            if hasattr(p, "register_post_accumulate_grad_hook"):
                p.register_post_accumulate_grad_hook(clear)
        for _ in range(2):
            model(self.batch()).sum().backward()
        self.count += len(seen)

    def generated(self):
        def batches():
            for _ in range(8):
                batch = self.batch()
                yield batch
        model, total = Net(self.device), 0
        for batch in batches():
            try:
                output = model(batch)
                if self.random.random() < 0.5:
                    raise ValueError(output)
                output.sum().backward()
            except ValueError as error:
                total += len(error.args)
            self.count += 1

    def inside(self):
        """Optimizers whose states are other tensors after every step."""
        model = Net(self.device)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(3):
            self.train(model, optimizer, 1)
            for state in optimizer.state.values():
                state["exp_avg"] = state["exp_avg"].clone()
            optimizer.load_state_dict(optimizer.state_dict())

    def flat(self):
        """Parameters and gradients lie in one piece of memory each, which is another one in every step."""
        model = Net(self.device)
        parameters = list(model.parameters())
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        count = sum(p.numel() for p in parameters)
        for _ in range(4):
            values, gradients, at = torch.ones(count, device=self.device), torch.zeros(count, device=self.device), 0
            for p in parameters:
                p.data = values[at : at + p.numel()].view(p.shape)
                p.grad = gradients[at : at + p.numel()].view(p.shape)
                at += p.numel()
            del values, gradients
            model(self.batch()).sum().backward()
            optimizer.step()
            self.count += 1

    def scripted(self):
        """A TorchScript module that replaces its buffers without the interpreter's lock."""
        with compiling:
            model = torch.jit.script(Recurrent().to(self.device))
        for _ in range(4):
            with torch.no_grad():
                model(500)
            self.count += 1

    KINDS = plain, adam, sparse, moved, replaced, swapped, kept, hooked, generated, inside, flat, *([scripted] if sys.version_info < (3, 14) else [])


class Worker(threading.Thread):
    """Trains in a kind that it draws, over and over, until it is told to end."""
    ending = False

    def __init__(self, trainer, only):
        super().__init__()
        self.trainer, self.only, self.rounds, self.failed = trainer, only, 0, False

    def run(self):
        watched = nn.Linear(8, 8, device=self.trainer.device)  # that the look finds it shows that it looks here
        try:
            while not Worker.ending:
                kind = self.trainer.random.choice(Trainer.KINDS)
                (getattr(Trainer, self.only) if self.only else kind)(self.trainer)
                watched(torch.ones(2, 8, device=self.trainer.device)).sum().backward()
                gc.collect(self.trainer.random.randrange(2))
                self.rounds += 1
        except BaseException:
            self.failed = True
            raise


def step_new_one():
    """A step of an optimizer whose parameter is in no module."""
    weight = nn.Parameter(torch.ones(4, device="cuda"))
    weight.grad = torch.ones_like(weight)
    torch.optim.SGD([weight], lr=0.1).step()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--looks", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # TorchScript is on its way out
    torch.zeros(1, device="cuda")
    workers = [Worker(Trainer(number, options.seed), options.only) for number in range(options.threads)]
    for worker in workers:
        worker.start()
    looks = 0
    while looks < options.looks or any(worker.rounds < options.rounds and not worker.failed for worker in workers):
        step_new_one()
        looks += 1
    Worker.ending = True
    for worker in workers:
        worker.join()
    if any(worker.failed for worker in workers):
        sys.exit(3)
    print("done")
    print(looks, "looks", [(worker.rounds, worker.trainer.count) for worker in workers], file=sys.stderr)


if __name__ == "__main__":
    main()
