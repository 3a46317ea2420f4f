"""Trains testdata/train/gpt2.py with names switched on and off again in blocks of steps, and prints one JSON line: the blocks.

    switched.py LAYOUT PAIRS STEPS SETTLE

LAYOUT is where the library, as it was linked, keeps whether operators' numbers are known (mt_backward.layout): without it no block is given one. The adapter's call
after a step is taken off PyTorch's list of hooks and put back. The first SETTLE of a block's STEPS are not counted.
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

LAYOUT, PAIRS, STEPS, SETTLE = int(sys.argv[1], 0), *map(int, sys.argv[2:5])
SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "train" / "gpt2.py"
WARM_UP = 40  # steps: the allocator, the stacks, the first looks


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
        if on:
            self.hooks.update(self.kept)
        self.layout.value = self.known if on else 0


def thread_seconds(tasks):
    total = 0
    for task in tasks:
        with open(f"/proc/self/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def drainer():
    """Threads that the library started: they carry its name."""
    return [task for task in os.listdir("/proc/self/task") if pathlib.Path(f"/proc/self/task/{task}/comm").read_text().strip() == "memtrace"]


class Blocks:
    """Called at the beginning of each step. Blocks come in pairs: one on, one off, or both off, which tells what the measurement itself is worth."""

    def __init__(self, mark):
        self.mark, self.step, self.found, self.switch, self.began = mark, -WARM_UP, [], None, None
        order = random.Random(os.getpid())
        self.plan = []
        for number in range(PAIRS):
            pair = [("on", True), ("off", False)] if number % 2 else [("off again", False), ("off", False)]
            order.shuffle(pair)
            self.plan.extend((number, *block) for block in pair)

    def __call__(self):
        step, self.step = self.step, self.step + 1
        if step >= 0:
            self.within(step // STEPS, step % STEPS)
        self.mark()

    def within(self, block, at):
        if at == 0:
            if self.began:
                number, name, _ = self.plan[block - 1]
                self.found.append((number, name, *(end - begin for begin, end in zip(self.began, self.clocks()))))
            if block < len(self.plan):
                self.switch = self.switch or Switch()
                self.switch(self.plan[block][2])
        elif at == SETTLE and block < len(self.plan):
            self.began = self.clocks()

    def clocks(self):
        return time.perf_counter(), time.process_time(), time.thread_time(), thread_seconds(drainer())


def main():
    sys.path.insert(0, str(SCRIPT.parent))
    import oracle
    oracle.step = blocks = Blocks(oracle.step)
    sys.argv = [str(SCRIPT), "--steps", str(WARM_UP + 2 * PAIRS * STEPS + 2)]
    with contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    print(json.dumps({"blocks": blocks.found}), flush=True)


main()
