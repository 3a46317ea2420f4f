"""Runs programs with and without the library and compares: pairs in turns, medians, quartiles."""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIMIT = 300  # seconds until a run counts as hanging
SHARED = ("-shared", "-fPIC")


class Failure(Exception):
    """Something the caller can act on; the message says what."""


class Setup:
    """Where things are: the library and the command under test, the null GPU, compiled guests, a folder for traces."""

    def __init__(self, library, command, folder):
        self.library, self.command, self.folder = library, command, folder
        self.null_gpu = ROOT / "build" / "nullcuda" / "lib"
        for path in (library, command, self.null_gpu / "libcuda.so.1"):
            if not path.exists():
                raise Failure(f"{path} is missing: run `make all nullcuda`")
        folder.mkdir(parents=True, exist_ok=True)
        self.report = [f"-L{folder}", "-Wl,-rpath,$ORIGIN"]
        self.driver = [self.null_gpu / "libcuda.so.1", f"-Wl,-rpath,{self.null_gpu}"]
        self.compile("libreport.so", ["report.c"], *SHARED)

    def compile_programs(self):
        """What the measurements of single events run."""
        self.compile("libburst.so", ["burst.c", "frames.c"], *SHARED, *self.report, "-lreport")
        for name in ("record", "cold", "exit"):
            self.compile(name, [f"{name}.c"], *self.report, "-lburst", "-lreport", "-ldl")
        self.compile("startup", ["startup.c"])
        self.compile("alloc", ["alloc.c"], *self.driver)
        self.compile("libprobe.so", ["probe.c"], *SHARED, "-ldl")

    def compile_instructions(self):
        """What the guard runs under callgrind."""
        self.compile("libinstructions.so", ["libinstructions.c", "frames.c"], *SHARED, *self.report, "-lreport")
        self.compile("instructions", ["instructions.c"], f"-I{ROOT / 'cshim' / 'include'}", *self.report, "-linstructions", "-lreport", *self.driver)

    def compile(self, name, sources, *flags):
        """Compiles into the folder, unless it is newer than what it is made of."""
        made, newest = self.folder / name, max(path.stat().st_mtime for path in [*HERE.glob("*.[ch]"), HERE / "measure.py"])
        if made.exists() and made.stat().st_mtime > newest:
            return
        command = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", made, *(HERE / source for source in sources), *flags, "-pthread"]
        if subprocess.run(command).returncode:
            raise Failure(f"{', '.join(sources)} did not compile")

    def environment(self, traced, trace=None):
        unwanted = ("LD_PRELOAD", "MEMTRACE_", "NULLCUDA_", "PYTHONPATH")
        values = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
        values.update(NULLCUDA_SHARED="none", MEMTRACE_OUTPUT=str(trace or self.folder / "trace.bin"), MEMTRACE_FORCE="1")
        if traced:
            values["LD_PRELOAD"] = str(self.library)
        return values

    def run(self, *command, traced=False, trace=None, extra=None):
        """Runs a command and returns its stdout; whatever else it says is shown."""
        values = self.environment(traced, trace)
        values.update(extra or {})
        done = subprocess.run([str(part) for part in command], env=values, cwd=self.folder, stdout=subprocess.PIPE, text=True, timeout=LIMIT)
        if done.returncode:
            raise Failure(f"{' '.join(str(part) for part in command[:4])} ended with status {done.returncode}")
        return done.stdout

    def info(self, trace):
        """What the command says of a trace."""
        found = json.loads(self.run(self.command, "info", "--json", trace))
        return found[0] if isinstance(found, list) else found

    def check_recorded(self, trace, least):
        """That a trace has so many events and lost none: a record that is dropped costs less than one that is written."""
        info = self.info(trace)
        if info["lost"]["records"] or info["lost"]["dictionary"] or info["events"] < least:
            raise Failure(f"{info['events']} events of at least {least}, {info['lost']} lost: what was counted is not the recording of events")

    def numbers(self, *command, **options):
        return [float(line) for line in self.run(*command, **options).split()]


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def quartiles(values):
    """(first, median, third)."""
    values = sorted(values)
    if len(values) < 3:
        return values[0], statistics.median(values), values[-1]
    first, middle, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, middle, third


def spread(values, digits=2):
    """'median [first quartile, third]'."""
    first, middle, third = quartiles(values)
    return f"{middle:.{digits}f} [{first:.{digits}f}, {third:.{digits}f}]"


def in_turns(rounds, *ways):
    """Runs each way once a round, in an order that turns from round to round; returns one list of results a way."""
    results = [[] for _ in ways]
    for turn in range(rounds):
        for i in range(len(ways)):
            which = (i + turn) % len(ways)
            results[which].append(ways[which]())
    return results


def ratios(base, other):
    """Of runs of the same round."""
    return [b / a for a, b in zip(base, other)]


def finished_after(setup, *command, traced):
    """Runs a command that prints its memory in bytes and, as its last act, the monotonic clock: (milliseconds from then until it is gone, MiB)."""
    values = setup.environment(traced)
    process = subprocess.Popen([str(part) for part in command], env=values, cwd=setup.folder, stdout=subprocess.PIPE, text=True)
    text, _ = process.communicate(timeout=LIMIT)
    ended = time.monotonic_ns()
    if process.returncode:
        raise Failure(f"{command[0]} ended with status {process.returncode}")
    memory, last = map(int, text.split())
    return (ended - last) / 1e6, memory / (1 << 20)


def forget(path):
    """Removes a file or folder that a measurement left."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
