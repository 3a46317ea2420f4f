"""What names cost a traced training step, by the clock: GPT-2 small under the library, with names switched on and off from step to step within one process.

    adapters_switched.py [--processes 4] [--pairs 1000] [--blocks 20]

Two processes that do the same differ by more than names cost, and so do two minutes of a shared machine; steps that follow each other hardly do. What names change for good
(memory, other code in the caches) is in all of them: that is counted by adapters_instructions.py. Nor is the drainer in a step's time, which runs behind: its processor time is
compared between blocks of steps. Needs a library with symbols, which it builds.
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

CUT = 0.1  # of the pairs at either end: where the machine did something else
LIMIT = 3600


def library(folder):
    """Builds the library with its symbols; its path, and where it keeps whether operators are known."""
    command = ["make", "-s", "-C", ROOT, "lib", "STRIP=", f"BUILD={folder.relative_to(ROOT)}"]
    if subprocess.run(command).returncode:
        raise Failure("the library was not built")
    path = folder / "libmemtrace.so"
    symbols = subprocess.run(["nm", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    start = next((line.split()[0] for line in symbols.splitlines() if line.endswith(" mt_backward")), None)
    if start is None:
        raise Failure(f"{path} has no symbol mt_backward")
    return path, int(start, 16)  # it begins with that (cshim/adapters/backward.h)


def once(work, layout, pairs, blocks):
    setup, trace = work.setup, work.trace
    values = setup.environment(True, trace)
    values.update(MEMTRACE_STACKS=BOTH, MEMTRACE_ADAPTERS="torch")
    command = [work.start, "python", HERE / "switched.py", hex(layout), pairs, blocks]
    done = subprocess.run([str(part) for part in command], env=values, cwd=setup.folder, stdout=subprocess.PIPE, text=True, timeout=LIMIT)
    if done.returncode:
        raise Failure(f"the training ended with status {done.returncode}")
    setup.check_recorded(trace, 2000 * pairs)
    forget(trace)
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def log_ratios(said, name, kind):
    """[log of a pair's ratio]: the step of this name to the one that is off."""
    found, plan, times = [], said["plan"], said[kind]
    for at in range(0, len(plan), 2):
        pair = dict(zip(plan[at:at + 2], times[at:at + 2]))
        if name in pair:
            found.append(math.log(pair[name] / pair["off"]))
    return found


def middle(values):
    """The mean without the ends."""
    values, cut = sorted(values), int(len(values) * CUT)
    return statistics.fmean(values[cut:len(values) - cut])


def interval(values):
    """'ratio (its 95 % interval)', by drawing again from the logs of ratios."""
    draw = random.Random(1)
    drawn = sorted(middle(draw.choices(values, k=len(values))) for _ in range(1000))
    return "{:.4f} ({:.4f} to {:.4f})".format(*(math.exp(value) for value in (middle(values), drawn[25], drawn[974])))


def rows(runs):
    found = []
    for name, text in (("on", "names, to no names"), ("off again", "no names, to no names")):
        kinds = [[value for said in runs for value in log_ratios(said, name, kind)] for kind in ("wall_ms", "cpu_ms")]
        found.append([text, str(len(kinds[0])), *map(interval, kinds)])
    return found


def drainer(runs):
    """Milliseconds of a step, without names and with them."""
    return [statistics.median(value for said in runs for value in said["drainer_ms"][first::2]) for first in (1, 0)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=1000, help="of steps in a process, half of them on and off (default %(default)s)")
    parser.add_argument("--blocks", type=int, default=20, help="of steps in a process, by turns on and off (default %(default)s)")
    options = parser.parse_args()
    try:
        path, layout = library(ROOT / "build" / "bench" / "symbols")
        work, runs = Training(Setup(path, ROOT / "build" / "memtrace", ROOT / "build" / "bench"), 0), []
        for number in range(options.processes):
            say(f"training GPT-2 small with names on and off, process {number + 1} of {options.processes}")
            runs.append(once(work, layout, options.pairs, options.blocks))
        print(table(["GPT-2 small, a step", "pairs of steps", "time", "processor time of the training thread"], rows(runs)))
        step = statistics.median(value for said in runs for value in said["wall_ms"])
        without, names = drainer(runs)
        print(f"\nThe step {step:.1f} ms; the drainer's processor time {without:.3f} ms a step without names, {names:.3f} ms with them.")
    except (Failure, subprocess.SubprocessError) as failure:
        sys.exit(f"adapters_switched: {failure}")


if __name__ == "__main__":
    main()
