"""What names cost a traced training step: GPT-2 small under the library with MEMTRACE_ADAPTERS=torch and with none, and without the library, in processes that train by turns.

    adapters_turns.py [--rounds 3]

Everything that the adapter causes is in it: its own calls after a step, what they write, and the number of the operator that every block then carries. Prints a table.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys

import gpt2
import turns
from document import table
from events import BOTH
from measure import ROOT, Failure, Setup, ratios, say, spread

WAYS = {
    "plain": gpt2.Way(),
    "memtrace, no adapter": gpt2.Way(stacks=BOTH, extra=(("MEMTRACE_ADAPTERS", "none"),)),
    "memtrace, names": gpt2.Way(stacks=BOTH, extra=(("MEMTRACE_ADAPTERS", "torch"),)),
}
BUDGET = 1.01


def measured(work, rounds):
    """Rows of the table: a round's figure is the median over its turns."""
    runs = [turns.once(work, list(WAYS.values()), number) for number in range(rounds)]
    rows = []
    for which, name in enumerate(WAYS):
        cells = [spread([statistics.median(run[which][0]) for run in runs])]
        for base in (0, 1):
            for kind in (0, 1):  # wall, processor time
                cells.append(spread([statistics.median(ratios(run[base][kind], run[which][kind])) for run in runs], 4) if which > base else "")
        rows.append([name, *cells])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build" / "libmemtrace.so")
    parser.add_argument("--command", type=pathlib.Path, default=ROOT / "build" / "memtrace")
    options = parser.parse_args()
    try:
        work = gpt2.Training(Setup(options.library.resolve(), options.command.resolve(), ROOT / "build" / "bench"), 0)
        say(f"training GPT-2 small by turns, {options.rounds} rounds of {', '.join(WAYS)}")
        head = ["GPT-2 small by turns", "step, ms", "ratio to plain", "of processor time", f"ratio to no adapter (budget {BUDGET})", "of processor time"]
        print(table(head, measured(work, options.rounds)))
    except (Failure, subprocess.SubprocessError) as failure:
        sys.exit(f"adapters_turns: {failure}")


if __name__ == "__main__":
    main()
