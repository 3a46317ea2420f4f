"""What names cost a traced training step, by the clock: GPT-2 small under the library, with names switched on and off within one process.

    adapters_switched.py [--processes 4] [--pairs 200]

Two processes that do the same differ by more than names cost, and so do two minutes of a shared machine; two blocks of steps that follow each other in one process hardly
do. What names change for good (memory, other code in the caches) is in both: that is counted by adapters_instructions.py. Needs a library with symbols, which it builds.
"""
import argparse
import json
import math
import random
import statistics
import subprocess
import sys

from document import table
from events import BOTH
from gpt2 import Training
from measure import HERE, ROOT, Failure, Setup, forget, say

STEPS, SETTLE = 10, 2  # of a block, and how many of them are not counted: the drainer is behind by as much
KINDS = ("time", "processor time", "processor time of the training thread", "drainer's processor time")
CUT = 0.1  # of the pairs at either end: where the machine did something else
LIMIT = 1800


def library(folder):
    """Builds the library with its symbols; its path, and where it keeps whether operators are known."""
    command = ["make", "-s", "-C", ROOT, "lib", "STRIP=", f"BUILD={folder.relative_to(ROOT)}"]
    if subprocess.run(command).returncode:
        raise Failure("the library was not built")
    path = folder / "libmemtrace.so"
    symbols = subprocess.run(["nm", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    start = next((int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" mt_backward")), None)
    if start is None:
        raise Failure(f"{path} has no symbol mt_backward")
    return path, start + LAYOUT_OFFSET


LAYOUT_OFFSET = 4 * 8  # behind four pointers (cshim/backward.h)


def once(work, layout, pairs):
    setup, trace = work.setup, work.trace
    values = setup.environment(True, trace)
    values.update(MEMTRACE_STACKS=BOTH, MEMTRACE_ADAPTERS="torch")
    command = [work.start, "python", HERE / "switched.py", hex(layout), pairs, STEPS, SETTLE]
    done = subprocess.run([str(part) for part in command], env=values, cwd=setup.folder, stdout=subprocess.PIPE, text=True, timeout=LIMIT)
    if done.returncode:
        raise Failure(f"the training ended with status {done.returncode}")
    setup.check_recorded(trace, pairs * STEPS * 2 * 1000)
    forget(trace)
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def log_ratios(said, name):
    """[[log of a pair's ratio] of each kind]: the block of this name to the one that is off."""
    pairs = {}
    for number, block, *times in said["blocks"]:
        pairs.setdefault(number, {})[block] = times
    return [[math.log(pair[name][kind] / pair["off"][kind]) for pair in pairs.values() if name in pair] for kind in range(len(KINDS))]


def middle(values):
    """The mean without the ends."""
    values, cut = sorted(values), int(len(values) * CUT)
    return statistics.fmean(values[cut:len(values) - cut])


def interval(values):
    """(ratio, the ends of its 95 % interval), by drawing again from the pairs."""
    draw = random.Random(1)
    drawn = sorted(middle(draw.choices(values, k=len(values))) for _ in range(1000))
    return [math.exp(value) for value in (middle(values), drawn[25], drawn[974])]


def rows(runs):
    """Of the table: the pairs of which one block has names, and those of which none has."""
    found = []
    for name, text in (("on", "names, to no names"), ("off again", "no names, to no names")):
        pairs = [list(kind) for kind in zip(*(log_ratios(said, name) for said in runs))]
        every = [[value for run in kind for value in run] for kind in pairs]
        found.append([text, str(len(every[0])), *("{:.4f} ({:.4f} to {:.4f})".format(*interval(values)) for values in every)])
    return found


def usual(runs, name):
    """Milliseconds a step, of each kind, as a row."""
    blocks = [block[2:] for said in runs for block in said["blocks"] if block[1] == name]
    return [f"{statistics.median(block[kind] for block in blocks) * 1e3 / (STEPS - SETTLE):.3f}" for kind in range(len(KINDS))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=200, help="of blocks in a process, half of them on and off (default %(default)s)")
    options = parser.parse_args()
    try:
        path, layout = library(ROOT / "build" / "bench" / "symbols")
        work, runs = Training(Setup(path, ROOT / "build" / "memtrace", ROOT / "build" / "bench"), 0), []
        for number in range(options.processes):
            say(f"training GPT-2 small with names on and off, process {number + 1} of {options.processes}")
            runs.append(once(work, layout, options.pairs))
        print(table(["GPT-2 small, a step", "pairs", *KINDS], [*rows(runs), *([f"{text}, ms", "", *usual(runs, name)] for name, text in (("off", "no names"), ("on", "names")))]))
    except (Failure, subprocess.SubprocessError) as failure:
        sys.exit(f"adapters_switched: {failure}")


if __name__ == "__main__":
    main()
