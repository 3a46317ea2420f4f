"""`make bench`: what memtrace costs, against plain runs and PyTorch's own memory history in the same minutes. Prints the tables of docs/measurements.md.

Every number is a median with its quartiles. Ratios are taken between runs of the same round. A loaded machine widens the quartiles and lengthens all
absolute times; the load is printed with the tables.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

from measure import ROOT, Failure, Setup, finished_after, forget, in_turns, quartiles, ratios, say, spread

DOCUMENT = ROOT / "docs" / "measurements.md"
TORCH = "torch==2.7.1"
EXIT_EVENTS = 72_000
STEPS = 40


def table(head, rows):
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head)] + [f"| {' | '.join(row)} |" for row in rows])


def startup(setup, pairs):
    say(f"starting /bin/true {pairs} times with and without the library")
    lines = [[float(x) for x in line.split()] for line in setup.run(setup.folder / "startup", pairs, setup.library, "/bin/true").splitlines()]
    plain, traced = [line[0] / 1e3 for line in lines], [line[2] / 1e3 for line in lines]
    added = [b - a for a, b in zip(plain, traced)]
    return ["process without a CUDA call, start to end, ms", spread(plain), spread(traced), f"+{spread(added)}", "at most +0.2"]


def record(setup, rounds):
    """The cost of a framework event over an empty function, and the least it could be."""
    rows = []
    for threads in (1, 2):
        say(f"recording framework events on {threads} thread{'s'[:threads - 1]}")

        def once(traced=False, *more, threads=threads):
            return quartiles(setup.numbers(setup.folder / "record", threads, 200, *more, traced=traced))[1]

        floor, plain, traced = in_turns(rounds, lambda: once(False, "floor"), once, lambda: once(True))
        over = [c - b - a for a, b, c in zip(floor, plain, traced)]
        rows.append([f"one framework event, {threads} thread{'s'[:threads - 1]}, ns", spread(plain, 1), spread(traced, 1),
                     f"{spread(over, 1)} over the floor of {spread(floor, 1)}", "at most 25 over the floor"])
    return rows


def alloc(setup, rounds):
    rows = []
    for threads in (1, 8):
        say(f"cuMemAlloc and cuMemFree on {threads} thread{'s'[:threads - 1]}")

        def once(traced, threads=threads):
            return quartiles(setup.numbers(setup.folder / "alloc", threads, 10_000, traced=traced))[1] / 1e3

        plain, traced = in_turns(rounds, lambda: once(False), lambda: once(True))
        rows.append([f"`cuMemAlloc` and `cuMemFree` on the null GPU, {threads} thread{'s'[:threads - 1]}, a pair, us",
                     spread(plain), spread(traced), spread(ratios(plain, traced)), ""])
    return rows


def ending(setup, rounds):
    say(f"ending a process after {EXIT_EVENTS} events")
    program = setup.folder / "exit"
    plain, traced = in_turns(rounds, lambda: finished_after(setup, program, EXIT_EVENTS, traced=False), lambda: finished_after(setup, program, EXIT_EVENTS, traced=True))
    added = [b - a for a, b in zip(plain, traced)]
    return [f"end of the run, after the last of {EXIT_EVENTS:,} events, ms", spread(plain, 1), spread(traced, 1), f"+{spread(added, 1)}", "at most +50"]


class Training:
    """GPT-2 under every way of recording."""

    def __init__(self, setup, steps):
        self.setup, self.steps = setup, steps
        self.trace, self.snapshot = setup.folder / "gpt2.bin", setup.folder / "snapshot.pickle"
        found = subprocess.run([sys.executable, ROOT / "testdata" / "nullcuda" / "venv.py", TORCH], stdout=subprocess.PIPE, text=True)
        if found.returncode:
            raise Failure(f"no environment with {TORCH}")
        self.start = pathlib.Path(found.stdout.strip()) / "bin" / "nullcuda-run"

    def once(self, mode="plain", traced=False, through=(), extra=None):
        script = pathlib.Path(__file__).resolve().parent / "training.py"
        said = self.setup.run(self.start, "python", *through, script, mode, self.steps, self.snapshot, traced=traced, trace=self.trace, extra=extra)
        result = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        forget(self.snapshot)
        if traced:
            info = json.loads(self.setup.run(self.setup.command, "info", "--json", self.trace))
            info = info[0] if isinstance(info, list) else info
            result.update(bytes=self.trace.stat().st_size, events=info["events"], lost=info["lost"]["records"])
            forget(self.trace)
        return result

    def memray(self, *flags):
        """memray around the same program; it is installed for the bench alone."""
        where = self.setup.folder / "memray"
        if not where.exists():
            subprocess.run([self.start, "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-conflicts", "--target", where, "memray==1.20.0"], check=True)
        out = self.setup.folder / "memray.bin"
        forget(out)
        return self.once(through=("-m", "memray", "run", "--quiet", *flags, "--output", str(out)), extra={"PYTHONPATH": str(where)})

    def ways(self, memray):
        ways = {"plain": self.once, "memtrace": lambda: self.once(traced=True), "PyTorch's history, Python stacks": lambda: self.once("python"),
                "PyTorch's history, all stacks": lambda: self.once("all")}
        if memray:
            ways["memray (host memory)"] = self.memray
            ways["memray --native (host memory)"] = lambda: self.memray("--native")
        return ways


def pairs_of_training(work, pairs):
    """The step's cost from pairs of runs alone: a few rounds of everything spread too widely on a shared machine to decide about one twentieth."""
    say(f"training GPT-2 small on PyTorch, {pairs} pairs, plain and traced")
    plain, traced = in_turns(pairs, work.once, lambda: work.once(traced=True))
    step = [[run["step_ms"] for run in runs] for runs in (plain, traced)]
    busy = [[run["cpu_s"] for run in runs] for runs in (plain, traced)]
    return [[f"GPT-2 small, eager training step, PyTorch, ms; {pairs} pairs of runs", spread(step[0]), spread(step[1]), spread(ratios(*step), 3), "at most 1.05"],
            ["the same, processor time of the whole run with the drainer's, s", spread(busy[0]), spread(busy[1]), spread(ratios(*busy), 3), ""]]


def training(work, rounds, memray):
    """The row of the drainer, the comparison with peers and the table of sizes."""
    ways = work.ways(memray)
    say(f"training GPT-2 small on PyTorch, {rounds} rounds of {', '.join(ways)}")
    found = dict(zip(ways, in_turns(rounds, *ways.values())))
    steps_of = {name: [run["step_ms"] for run in runs] for name, runs in found.items()}
    plain, ours = steps_of["plain"], found["memtrace"]
    peers, sizes = [], []
    for name, runs in found.items():
        size = spread([run["bytes"] / run["events"] for run in runs], 1) if "events" in runs[0] else ""
        dump = spread([run["dump_s"] * 1e3 for run in runs], 0) if "dump_s" in runs[0] else ""
        busy = ratios([run["cpu_s"] for run in found["plain"]], [run["cpu_s"] for run in runs])
        peers.append([name, spread(steps_of[name]), spread(ratios(plain, steps_of[name]), 3), spread(busy, 3), size, dump])
    sizes.append(["GPT-2 small, PyTorch", str(ours[0]["events"]), spread([run["bytes"] / run["events"] for run in ours]), str(sum(run["lost"] for run in ours)), "at most 5"])
    drain = ["drainer, share of one core during the training, %", "", spread([100 * run["drainer_s"] / run["wall_s"] for run in ours], 1), "", ""]
    return drain, peers, sizes


BENCHMARKS = [
    ("./trace", "BenchmarkRead", "decode, million events per second and core"),
    ("./trace", "BenchmarkWrite", "encode with compression, million events per second and core"),
    ("./analyzer", "BenchmarkHeap", "replay alone, million events per second and core"),
    ("./analyzer", "BenchmarkSummarizeFile", "read a file and replay with one grouping, million events per second and core"),
]


def reading():
    """Go's own benchmarks, three times each."""
    rows = []
    for package, name, what in BENCHMARKS:
        say(f"{name} of {package}")
        done = subprocess.run(["go", "test", "-run", "^$", "-bench", f"^{name}$", "-count", "3", "-cpu", "1", package], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise Failure(f"go test -bench {name} {package} failed\n{done.stdout}")
        for variant in sorted(set(re.findall(rf"^({name}\S*)\s", done.stdout, re.M))):
            lines = [line for line in done.stdout.splitlines() if line.split()[:1] == [variant]]
            rates = [rate(line) for line in lines]
            label = variant.removeprefix(name).lstrip("/")
            rows.append([what + (f" ({label})" if label else ""), spread(rates, 1), "at least 20" if name != "BenchmarkWrite" else "at least 17 (60 ns an event)"])
    return rows


def rate(line):
    """Million events per second of one line of go's output."""
    found = re.search(r"([\d.]+) Mevents/s", line)
    if found:
        return float(found[1])
    found = re.search(r"([\d.]+) ns/event", line)
    if not found:
        raise Failure(f"no rate in {line!r}")
    return 1e3 / float(found[1])


def machine():
    kind = "virtual machine" if "hypervisor" in pathlib.Path("/proc/cpuinfo").read_text() else "machine"
    return f"{os.cpu_count()}-core {platform.machine()} {kind}, load average {os.getloadavg()[0]:.1f} at the start"


def replace_section(text, title, body):
    """The document with the section's body replaced, up to the next heading of its level."""
    pattern = re.compile(rf"(?ms)^## {re.escape(title)}\n.*?(?=^## |\Z)")
    if not pattern.search(text):
        raise Failure(f"{DOCUMENT} has no section '{title}'")
    return pattern.sub(lambda _: f"## {title}\n\n{body}\n\n", text).rstrip("\n") + "\n"


def measure(options):
    """(title, body) of the sections of the document."""
    setup = Setup(options.library.resolve(), options.command.resolve(), ROOT / "build" / "bench")
    date = f"Date: {datetime.date.today()}. Machine: {machine()}."
    quick = options.quick
    costs = [startup(setup, 50 if quick else 500), *record(setup, 2 if quick else 7), *alloc(setup, 2 if quick else 7)]
    sections = []
    parts = []
    if options.no_torch:
        costs.append(ending(setup, 3 if quick else 9))
    else:
        work = Training(setup, 10 if quick else STEPS)
        costs += pairs_of_training(work, 2 if quick else options.pairs)
        drain, peers, sizes = training(work, 1 if quick else options.rounds, options.memray)
        costs += [drain, ending(setup, 3 if quick else 9)]
        parts = [table(["trace", "events", "bytes per event", "records lost", "budget"], sizes),
                 table([f"GPT-2 small, {STEPS} steps, recorded by", "step, ms", "ratio to plain", "ratio of processor time", "bytes per event", "dump at the end, ms"], peers)]
    head = f"{date} Command: `make bench`. Medians, in brackets the quartiles; ratios and differences between runs of the same round."
    sections.append(("Null GPU", "\n\n".join([head, table(["what", "plain", "traced", "ratio or difference", "budget"], costs), *parts])))
    head = f"{date} Command: `make bench`, which runs `go test -bench . -cpu 1 ./trace ./analyzer`."
    sections.append(("Reading traces", f"{head}\n\n" + table(["what", "value", "budget"], reading())))
    return sections


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds: to see that everything runs, not to quote")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of training in the comparison (default %(default)s)")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of training runs, plain and traced (default %(default)s)")
    parser.add_argument("--no-torch", action="store_true", help="leave out what needs PyTorch")
    parser.add_argument("--memray", action="store_true", help="compare with memray, too")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {DOCUMENT.relative_to(ROOT)}")
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build" / "libmemtrace.so")
    parser.add_argument("--command", type=pathlib.Path, default=ROOT / "build" / "memtrace")
    options = parser.parse_args()
    try:
        sections = measure(options)
        for title, body in sections:
            print(f"## {title}\n\n{body}\n")
        if options.write:
            text = DOCUMENT.read_text()
            for title, body in sections:
                text = replace_section(text, title, body)
            DOCUMENT.write_text(text)
    except Failure as failure:
        sys.exit(f"bench: {failure}")


if __name__ == "__main__":
    main()
