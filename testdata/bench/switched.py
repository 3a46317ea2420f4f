"""Trains testdata/train/gpt2.py with names switched on and off again from step to step, and prints one JSON line.

    switched.py LAYOUT PAIRS BLOCKS

LAYOUT is where the library, as it was linked, keeps whether operators' numbers are known (mt_backward.layout): without it no block is given one. The adapter's call
after a step is taken off PyTorch's list of hooks and put back. First come PAIRS of steps, each timed, then BLOCKS of BLOCK steps, for what the drainer does.
"""
import contextlib
import ctypes
import io
import json
import os
import pathlib
import random
import runpy
import sys
import time

import drainer

LAYOUT, PAIRS, BLOCKS = int(sys.argv[1], 0), int(sys.argv[2]), int(sys.argv[3])
SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "train" / "gpt2.py"
WARM_UP = 40  # steps: the allocator, the stacks, the first looks
BLOCK, SETTLE = 50, 4  # steps of a block, and how many of them are not counted: the drainer is behind by as much


def library_base():
    return min(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if "libmemtrace" in line)


class Switch:
    """Has names on, or off: then the program is as with MEMTRACE_ADAPTERS=none."""

    def __init__(self):
        import torch.optim.optimizer as place
        self.layout = ctypes.c_uint32.from_address(library_base() + LAYOUT)
        self.hooks, self.known = place._global_optimizer_post_hooks, self.layout.value
        self.kept = dict(self.hooks)
        if not self.known or not self.kept:
            sys.exit(f"names are not on: layout {self.known}, {len(self.kept)} hooks")

    def __call__(self, on):
        self.hooks.clear()
        self.hooks.update(self.kept if on else {})
        self.layout.value = self.known if on else 0


class Steps:
    """Called at the beginning of each step. Every other pair has names off in both of its steps, which tells what the measurement is worth."""

    def __init__(self, mark):
        self.mark, self.step, self.switch, self.began = mark, -WARM_UP, None, None
        self.names, self.wall_ms, self.cpu_ms, self.drainer = [], [], [], []
        order = random.Random(os.getpid())
        self.plan = []
        for number in range(PAIRS):
            pair = [["on", "off"], ["off again", "off"]][number % 2]
            order.shuffle(pair)
            self.plan.extend(pair)

    def __call__(self):
        step, self.step = self.step, self.step + 1
        ended = time.perf_counter(), time.thread_time()
        if step >= 0:
            self.switch = self.switch or Switch()
        if 0 < step <= len(self.plan):
            for values, begin, end in zip((self.wall_ms, self.cpu_ms), self.began, ended):
                values.append((end - begin) * 1e3)
        if 0 <= step < len(self.plan):
            self.switch(self.plan[step] == "on")
        elif step >= 0:
            self.in_block(*divmod(step - len(self.plan), BLOCK))
        self.mark()
        self.began = time.perf_counter(), time.thread_time()

    def in_block(self, block, at):
        if at == 0 and block < BLOCKS:
            self.switch(block % 2 == 0)
        if at == SETTLE and block < BLOCKS:
            self.before = drainer.seconds()
        elif at == BLOCK - 1 and block < BLOCKS:
            self.drainer.append((drainer.seconds() - self.before) * 1e3 / (BLOCK - 1 - SETTLE))


def main():
    sys.path.insert(0, str(SCRIPT.parent))
    import oracle
    oracle.step = steps = Steps(oracle.step)
    sys.argv = [str(SCRIPT), "--steps", str(WARM_UP + 2 * PAIRS + BLOCKS * BLOCK + 1)]
    with contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    print(json.dumps({"plan": steps.plan, "wall_ms": steps.wall_ms, "cpu_ms": steps.cpu_ms, "drainer_ms": steps.drainer}), flush=True)


main()
