"""How long PyTorch's adapter looks at a large model after a step, without spreading: a model of so many modules with two parameters each, all of which have gradients.

    adapters_looks.py [--rounds 5] [--modules 1000,10000] [--optimizers SGD,Adam] [--library FILE]...

Each round is a process per library, model and optimizer, by turns. The time is that of the call that PyTorch makes after a step: the first one finds the modules and names
everything, the third is between, and the fifth of an optimizer with few parameters says its gradients' addresses. Prints a table of medians and quartiles.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from document import table
from measure import ROOT, say, spread

STEPS = 16
SHOWN = 1, 2, 5, 6, 8
BUDGET_MS = 100


def inside(modules, kind):
    import torch
    from torch.optim import optimizer as place
    torch.cuda.init()
    kept = torch.zeros(1, device="cuda")  # wakes the adapter
    end = time.monotonic() + 60
    while not place._global_optimizer_post_hooks:
        if time.monotonic() > end:
            sys.exit("adapters_looks.py: the adapter did not begin; is it switched off?")
        time.sleep(0.01)
    (key, adapter), = place._global_optimizer_post_hooks.items()
    times = []

    def timed(*arguments):
        begin = time.perf_counter(), time.process_time()
        adapter(*arguments)
        times.append(((time.perf_counter() - begin[0]) * 1e3, (time.process_time() - begin[1]) * 1e3))

    class Trainer(torch.nn.Module):
        """While it is being made no look comes between, so that the first step's is the first."""

        def __init__(self):
            super().__init__()
            self.many = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(modules)).cuda()
            optimizer = getattr(torch.optim, kind)(self.many.parameters(), lr=0.1, foreach=True)
            gradients = [torch.zeros_like(p) for p in self.many.parameters()]
            for _ in range(STEPS):
                for p, g in zip(self.many.parameters(), gradients):
                    p.grad = g
                optimizer.step()

    place._global_optimizer_post_hooks[key] = timed
    trainer = Trainer()
    print(json.dumps(times))
    del kept, trainer


def measured(venv, library, modules, kind):
    output = ROOT / "build" / "bench" / "adapters_looks.bin"
    output.parent.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ, LD_PRELOAD=str(library), MEMTRACE_OUTPUT=str(output), MEMTRACE_FORCE="1")
    command = [f"{venv}/bin/nullcuda-run", "python", __file__, "--inside", "--modules", str(modules), "--optimizers", kind]
    text = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=600).stdout
    output.unlink(missing_ok=True)
    return json.loads(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--modules", default="1000,10000")
    parser.add_argument("--optimizers", default="SGD,Adam")
    parser.add_argument("--framework", default="torch==2.7.1")
    parser.add_argument("--library", type=pathlib.Path, action="append")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return inside(int(options.modules), options.optimizers)
    libraries = [library.resolve() for library in options.library or [ROOT / "build" / "libmemtrace.so"]]
    ways = [(library, int(modules), kind) for kind in options.optimizers.split(",") for modules in options.modules.split(",") for library in libraries]
    venv = subprocess.run([sys.executable, ROOT / "testdata" / "nullcuda" / "venv.py", options.framework], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    found = {way: [] for way in ways}
    for number in range(options.rounds):
        say(f"round {number + 1} of {options.rounds}")
        for way in ways:
            found[way].append(measured(venv, *way))
    rows = []
    for (library, modules, kind), runs in found.items():
        for clock, what in enumerate(("wall", "processor time")):
            cells = [spread([run[step - 1][clock] for run in runs], 2) for step in SHOWN]
            rows.append([f"{modules} modules, {kind}" + (f", {library.name}" if len(libraries) > 1 else ""), what, *cells,
                         f"{statistics.median(max(step[clock] for step in run[1:]) for run in runs):.2f}"])
    print(table(["the call after a step, ms", "clock", *(f"step {step}" + (f" (budget {BUDGET_MS})" if step == 1 else "") for step in SHOWN), "longest later one"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
