"""What an adapter costs the program: steps of testdata/train/gpt2.py with and without PyTorch's adapter by turns, in one process, and how long it looks at a model.

    adapters.py [--turns 40] [--modules 10000] [--framework torch==2.7.1]

Needs the built library and the null GPU. The turns with and without differ in whether PyTorch calls the adapter after a step, and in nothing else.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUDGET_STEP, BUDGET_FIRST_MS = 1.01, 100
STEPS = 3  # of a turn, the first of which is not counted: it finds the caches as the other way left them


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return low, middle, high


class Hooks:
    """PyTorch's list of what it calls after a step: the adapter's function, with a clock around it."""

    def __init__(self, listed):
        self.listed, self.times = listed, []
        end = time.monotonic() + 60
        while not listed:
            if time.monotonic() > end:
                sys.exit("adapters.py: the adapter did not begin; is it switched off?")
            time.sleep(0.01)
        (self.key, self.adapter), = listed.items()
        self.on()

    def timed(self, *arguments):
        begin = time.perf_counter()
        self.adapter(*arguments)
        self.times.append((time.perf_counter() - begin) * 1e3)

    def on(self):
        self.listed[self.key] = self.timed

    def off(self):
        self.listed.clear()

    def take(self):
        times, self.times = self.times, []
        return times


def say_times(what, times):
    print(f"{what}: the steps' looks took {', '.join(f'{t:.2f}' for t in times)} ms, the longest {max(times):.2f} (budget {BUDGET_FIRST_MS})")


def train_by_turns(torch, hooks, step, turns):
    """Ratios of the turns with the adapter to those without it, one behind the other: (wall, processor time)."""
    def turn(enter):
        enter()
        step()
        begin = time.perf_counter(), time.process_time()
        for _ in range(STEPS - 1):
            step()
        return time.perf_counter() - begin[0], time.process_time() - begin[1]
    ratios = []
    for number in range(turns):
        order = (hooks.on, hooks.off) if number % 2 else (hooks.off, hooks.on)
        first, second = turn(order[0]), turn(order[1])
        with_it, without = (first, second) if order[0] == hooks.on else (second, first)
        ratios.append([a / b for a, b in zip(with_it, without)])
    hooks.on()
    return list(zip(*ratios))


def inside(options):
    sys.path.insert(0, str(ROOT / "testdata" / "train"))
    import torch
    import gpt2
    torch.backends.cudnn.enabled = False
    torch.cuda.init()
    kept = torch.zeros(1, device="cuda")  # wakes the adapter
    from torch.optim import optimizer as place
    hooks = Hooks(place._global_optimizer_post_hooks)

    model = gpt2.GPT2(gpt2.LAYERS, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=False)
    tokens = torch.zeros(1, 64, dtype=torch.long, device="cuda")

    def step():
        loss = torch.nn.functional.cross_entropy(model(tokens).view(-1, gpt2.VOCABULARY), tokens.view(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    for _ in range(18):
        step()
    say_times("GPT-2 small", hooks.take())
    wall, busy = train_by_turns(torch, hooks, step, options.turns)
    calls = hooks.take()
    for what, ratios in ("wall", wall), ("processor time", busy):
        low, middle, high = quartiles(ratios)
        print(f"GPT-2 small, a step with the adapter to one without, {what}: {middle:.4f} ({low:.4f} to {high:.4f}; budget {BUDGET_STEP})")
    print(f"GPT-2 small, the call after a step, ms: {quartiles(calls)[1]:.3f} ({quartiles(calls)[0]:.3f} to {quartiles(calls)[2]:.3f}), of {len(calls)}")

    many = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(options.modules)).cuda()
    descend = torch.optim.SGD(many.parameters(), lr=0.1)
    for _ in range(9):
        many[0](torch.ones(1, 2, device="cuda")).sum().backward()
        descend.step()
    say_times(f"{options.modules} modules", hooks.take())
    del kept


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--modules", type=int, default=10_000)
    parser.add_argument("--framework", default="torch==2.7.1")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return inside(options)
    venv = subprocess.run([sys.executable, ROOT / "testdata" / "nullcuda" / "venv.py", options.framework], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    folder = ROOT / "build" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ, LD_PRELOAD=str(ROOT / "build" / "libmemtrace.so"), MEMTRACE_OUTPUT=str(folder / "adapters.bin"), MEMTRACE_FORCE="1")
    command = [f"{venv}/bin/nullcuda-run", "python", __file__, "--inside", "--turns", str(options.turns), "--modules", str(options.modules)]
    return subprocess.run(command, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
