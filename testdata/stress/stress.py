"""Threads that do everything to their stacks that breaks profilers, while they allocate.

    stress.py --library DIR/libstress.so --seconds S | --actions N [--seed SEED] [--threads T]

Each thread draws its actions from a seed: C++ exceptions through many frames,
plug-ins loaded at the addresses of others that were unloaded, forks, signals on
other stacks, fibers, tiny threads, and all shapes of Python stacks through PyTorch.
What every thread computed is printed at the end, so two runs with the same seed
and --actions print the same. Daemon threads go on allocating while the interpreter
ends.
"""
import argparse
import ctypes
import os
import pathlib
import random
import sys
import threading
import time
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import shapes  # noqa: E402

# Shapes that speak for the whole process; only one thread at a time may be in them.
ALONE = threading.Lock()
NATIVE = {"stress_churn": range(90), "stress_throw": range(60), "stress_signal": range(1, 5), "stress_fibers": range(20), "stress_small_thread": range(1)}


class Worker:
    def __init__(self, number, options, native, plugins):
        self.random = random.Random(options.seed * 1000 + number)
        self.options, self.native, self.plugins = options, native, plugins
        self.done, self.digest, self.failure = 0, 0, None
        self.thread = threading.Thread(target=self.run, name=f"stress {number}")

    def run(self):
        try:
            end = time.monotonic() + self.options.seconds if self.options.seconds else None
            while self.done < self.options.actions if end is None else time.monotonic() < end:
                name, value = self.act()
                self.digest = (self.digest * 31 + sum(name.encode()) + value) % 1000000007
                self.done += 1
        except BaseException as failure:
            self.failure = failure
            raise

    def act(self):
        """One action: its name and what it computed."""
        kind = self.random.random()
        if kind < 0.45:
            name = self.random.choice(sorted(NATIVE))
            return name, getattr(self.native, name)(self.random.choice(NATIVE[name]))
        if kind < 0.60:
            return "plugin", self.native.stress_plugin(self.random.choice(self.plugins), self.random.randrange(12))
        if kind < 0.63:
            return "fork", self.native.stress_fork(self.random.randrange(6))
        if kind < 0.75:
            return "train", self.train()
        function = self.random.choice(shapes.SHAPES)
        if function is shapes.profiled:
            with ALONE:
                function()
        else:
            function()
        return function.__name__, 0

    def train(self):
        model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.zeros(4, 16, device="cuda")).sum().backward()
            optimizer.step()
        return len(optimizer.param_groups[0]["params"])


def linger(native):
    """Allocates for ever in a daemon thread, from Python and from C."""
    while True:
        native.stress_churn(3)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--actions", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=6)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of forks in a process with threads: they are the point
    torch.zeros(1, device="cuda")
    native = ctypes.CDLL(str(options.library))
    native.stress_prepare()
    plugins = [os.fsencode(path) for path in sorted(options.library.parent.glob("plugin*.so"))]
    shapes.gc.freeze()
    workers = [Worker(number, options, native, plugins) for number in range(options.threads)]
    for worker in workers:
        worker.thread.start()
    for worker in workers:
        worker.thread.join()
    for number, worker in enumerate(workers):
        print(number, worker.digest if not options.seconds else "ended", worker.failure)
    print("actions", sum(worker.done for worker in workers), flush=True)
    for _ in range(2):
        threading.Thread(target=linger, args=(native,), daemon=True).start()
    native.stress_leave_thread(0)
    time.sleep(0.05)
    if any(worker.failure for worker in workers):
        sys.exit(3)


if __name__ == "__main__":
    main()
