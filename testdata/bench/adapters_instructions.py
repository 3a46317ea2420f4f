"""What names cost a training step, counted instead of timed: GPT-2 small under callgrind with MEMTRACE_ADAPTERS=torch and with none, every step for itself, all threads of the program.

    adapters_instructions.py

Repeatable where times are not. The estimate in cycles is callgrind's own: an instruction one, what misses the first cache ten, what misses the last one a hundred more. The
library's drainer, which is no thread of the program's, is kept out of it: Go does not run under valgrind. Needs valgrind, the built library and the null GPU; takes some minutes.
"""
import argparse
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

from document import table
from events import BOTH
from gpt2 import Training
from measure import HERE, ROOT, SHARED, Failure, Setup, forget, say

FROM, STEPS = 20, 28    # the first ones have their gradients named each (docs/names.md)
OFTEN = 16              # later every sixteenth one
CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64")
FEW_FILES = "ulimit -S -n 31; exec \"$@\""  # one too few for a Go runtime (cshim/process/boot.c)
BUDGET, LIMIT = 1.01, 1200  # ratio; seconds
WEIGHTS = {"Ir": 1, "I1mr": 10, "D1mr": 10, "D1mw": 10, "ILmr": 100, "DLmr": 100, "DLmw": 100}


def count(setup, start, adapters):
    """{step: (instructions, estimated cycles)} of a training; steps are counted from 1, as the optimizer does."""
    out = setup.folder / "callgrind"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    trace = setup.folder / "counted.bin"
    values = setup.environment(traced=False, trace=trace)
    values.update(LD_PRELOAD=f"{setup.library}:{setup.folder / 'libcallsteps.so'}", MEMTRACE_ADAPTERS=adapters, MEMTRACE_STACKS=BOTH, MEMTRACE_NVML="0", PYTHONHASHSEED="0",
                  OMP_NUM_THREADS="1", BENCH_FROM=str(FROM), BENCH_STEPS=str(STEPS))
    command = ["sh", "-c", FEW_FILES, "sh", start, "valgrind", "-q", "--tool=callgrind", "--cache-sim=yes", *CACHES, "--instr-atstart=no", f"--callgrind-out-file={out}/out",
               "python", HERE / "training.py", "plain", FROM + STEPS + 2, setup.folder / "none"]
    done = subprocess.run([str(part) for part in command], env=values, cwd=setup.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
    if done.returncode:
        raise Failure(f"the training ended with status {done.returncode} under valgrind\n{done.stdout}")
    setup.check_recorded(trace, 1)
    forget(trace)
    return dict(filter(None, map(read, out.iterdir())))


def read(path):
    """(step, (instructions, estimated cycles)) of a dump, None of one that is no step's."""
    text = path.read_text()
    step, events, totals = (re.search(pattern, text, re.M) for pattern in (r"^desc: Trigger: Client Request: step (\d+)$", r"^events: (.*)$", r"^totals: (.*)$"))
    if not step:
        return None
    numbers = dict(zip(events[1].split(), map(int, totals[1].split())))
    return int(step[1]) + 1, (numbers["Ir"], sum(weight * numbers.get(name, 0) for name, weight in WEIGHTS.items()))


def sort(steps):
    """{what happens in it: [steps]}: a look at everything makes a step longer than any other does."""
    usual = statistics.median(counts[0] for counts in steps.values())
    found = {"between": [], "gradients": [], "states": [], "look": []}
    for step, (instructions, _) in steps.items():
        what = "look" if instructions > 1.3 * usual else "states" if not step & step - 1 else "gradients" if step % OFTEN == 0 else "between"
        found[what].append(step)
    return found


def rows(without, names):
    """Rows of the table, and the ratio that the budget is for: the mean of sixteen steps."""
    base = [statistics.median(counts[kind] for counts in without.values()) for kind in (0, 1)]
    kinds = sort(names)
    if not kinds["between"] or not kinds["gradients"]:
        raise Failure(f"only {len(names)} steps were counted")
    middle = {what: [statistics.median(names[step][kind] for step in steps) for kind in (0, 1)] for what, steps in kinds.items() if steps}
    mean = [((OFTEN - 1) * between + gradients) / OFTEN for between, gradients in zip(middle["between"], middle["gradients"])]
    result = [["no adapter", *cells(base), "", ""]]
    texts = {"between": "names, most steps", "gradients": "names, every sixteenth step, which names gradients", "states": "names, step 32, which looks at states", "look": "names, a look at everything"}
    for what, text in texts.items():
        if what in middle:
            result.append([text, *cells(middle[what]), *(f"{a / b:.4f}" for a, b in zip(middle[what], base))])
    ratios = [a / b for a, b in zip(mean, base)]
    return [*result, ["**names, the mean of sixteen steps**", *cells(mean), *(f"**{ratio:.4f}**" for ratio in ratios)]], ratios


def cells(counts):
    return [f"{number / 1e6:.2f}" for number in counts]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build" / "libmemtrace.so")
    options = parser.parse_args()
    try:
        if not shutil.which("valgrind"):
            raise Failure("valgrind is missing: apt-get install valgrind")
        setup = Setup(options.library.resolve(), ROOT / "build" / "memtrace", ROOT / "build" / "bench")
        setup.compile("libcallsteps.so", ["callsteps.c"], *SHARED)
        start = Training(setup, 0).start
        say("counting GPT-2 small without the adapter")
        without = count(setup, start, "none")
        say("counting it with names")
        lines, ratios = rows(without, count(setup, start, "torch"))
        print(table(["GPT-2 small, a step", "instructions, million", "estimated cycles, million", "ratio of instructions", "of estimated cycles"], lines))
        if max(ratios) > BUDGET:
            raise Failure(f"the budget is {BUDGET}")
    except (Failure, subprocess.SubprocessError) as failure:
        sys.exit(f"adapters_instructions: {failure}")


if __name__ == "__main__":
    main()
