"""`make bench`: what memtrace costs, against plain runs, PyTorch's own memory history and host memory profilers in the same minutes. Prints the tables of
docs/measurements.md.

Every number is a median with its quartiles. Ratios are taken between runs of the same round, in which the order turns. A loaded machine widens the quartiles
and lengthens all absolute times; the load is printed with the tables.
"""
import argparse
import datetime
import os
import pathlib
import platform
import subprocess
import sys

import costs
import document
import events
import gpt2
import probe
import ranks
import reading
import storms
import training_tables as tables
import turns
from measure import ROOT, Failure, Setup, say

DOCUMENT = ROOT / "docs" / "measurements.md"
STEPS = 40
PARTS = ("costs", "events", "storms", "step", "training", "reading", "ranks")
ELSEWHERE = {"ranks": ROOT / "docs" / "at-scale.md"}  # parts that other documents have


def machine():
    kind = "virtual machine" if "hypervisor" in pathlib.Path("/proc/cpuinfo").read_text() else "machine"
    model = next((line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()}-core {platform.machine()} {kind} ({model}), load average {os.getloadavg()[0]:.1f} at the start"


def headed(body, command):
    return f"Date: {datetime.date.today()}. Machine: {machine()}. Command: `{command}`.\n\n{body}"


def training(work, options):
    pairs, rounds = (2, 1) if options.quick else (options.pairs, options.rounds)
    by_turns = turns.section(work, pairs)
    counted = tables.instructions(work, max(2, pairs // 5))
    peers, sizes, memory = tables.comparison(work, rounds, not options.no_peers)
    what = document.table(["GPT-2 small, eager training, PyTorch", "plain", "traced", "ratio or difference", "budget"], counted + memory)
    return "\n\n".join([by_turns, peers, what, sizes])


def measure(options):
    """{part: text} of the parts that are wanted; each is said as soon as it is there."""
    setup = Setup(options.library.resolve(), options.command.resolve(), ROOT / "build" / "bench")
    setup.compile_programs()
    work = gpt2.Training(setup, 10 if options.quick else STEPS) if {"step", "training"} & set(options.only) else None
    found = {}
    ways = {"costs": lambda: costs.section(setup, options.quick), "events": lambda: events.section(setup, options.quick), "storms": lambda: storms.section(setup, options.quick),
            "step": lambda: probe.section(work, 1 if options.quick else 5), "training": lambda: training(work, options), "reading": lambda: reading.section(options.quick), "ranks": lambda: ranks.section(setup, options.quick)}
    for part in options.only:
        begin = datetime.datetime.now()
        found[part] = headed(ways[part](), "make bench" if tuple(options.only) == PARTS else f"scripts/bench.sh --only {part}")
        print(f"## {part}\n\n{found[part]}\n", flush=True)
        say(f"{part} took {(datetime.datetime.now() - begin).seconds} s")
    return found


def parts(text):
    chosen = text.split(",")
    if unknown := [part for part in chosen if part not in PARTS]:
        raise argparse.ArgumentTypeError(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return [part for part in PARTS if part in chosen]


def main():
    parser = argparse.ArgumentParser(prog="bench.sh", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds: to see that everything runs, not to quote")
    parser.add_argument("--only", type=parts, default=list(PARTS), metavar="PARTS", help=f"some of {','.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=10, help="rounds of training in the comparison (default %(default)s)")
    parser.add_argument("--pairs", type=int, default=10, help="rounds of training by turns, plain, traced and with PyTorch's history (default %(default)s)")
    parser.add_argument("--no-peers", action="store_true", help="leave out memray and heaptrack")
    parser.add_argument("--no-torch", action="store_true", help="leave out what needs PyTorch")
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build" / "libmemtrace.so", help="library to measure (default: the one in build/)")
    parser.add_argument("--command", type=pathlib.Path, default=ROOT / "build" / "memtrace", help="command that belongs to it (default: the one in build/)")
    parser.add_argument("--write", action="store_true", help=f"put the tables between their markers in {DOCUMENT.relative_to(ROOT)} and at-scale.md")
    options = parser.parse_args()
    if options.no_torch:
        options.only = [part for part in options.only if part not in ("step", "training", "ranks")]
    try:
        print("Medians, in brackets the quartiles; ratios and differences are between runs of the same round.\n", flush=True)
        found = measure(options)
        if options.write:
            document.replace(DOCUMENT, {part: text for part, text in found.items() if part not in ELSEWHERE})
            for part, path in ELSEWHERE.items():
                document.replace(path, {part: found[part]} if part in found else {})
    except (Failure, subprocess.SubprocessError) as failure:
        sys.exit(f"bench: {failure}")


if __name__ == "__main__":
    main()
