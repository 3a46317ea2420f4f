"""Counts the instructions that the library adds to an event, under callgrind, and compares them with what was accepted last (instructions.txt).

Repeatable where times are not: the same library on the same machine differs by less than one instruction an event. Exit status 1 when an event got dearer by
more than a twentieth. A number belongs to a compiler and, below Python frames, to an interpreter: with another one it is printed and decides nothing.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

from measure import ROOT, Failure, Setup, say

ACCEPTED = pathlib.Path(__file__).resolve().parent / "instructions.txt"
TOLERANCE = 0.05
EVENTS = 10_000  # counted by libinstructions.c: 5000 pairs
HEAD = """\
# Instructions that the library adds to one event, the mean of an allocation and its free (or a push and its pop), counted under callgrind by
# scripts/callgrind-guard.sh. Accept a new number with: scripts/callgrind-guard.sh --accept "why it changed"
"""


@dataclasses.dataclass(frozen=True)
class Stretch:
    """Cases that one process counts."""
    stacks: str     # MEMTRACE_STACKS
    command: tuple  # with {python} and {library} to be filled in
    python: bool = False
    asleep: bool = False  # MEMTRACE_START=asleep: nothing is recorded


def python_stretch(stacks, name, frames, levels):
    return Stretch(stacks, ("{python}", "{here}/pyinstructions.py", "{library}", name, str(frames), str(levels)), python=True)


STRETCHES = (
    Stretch("none", ("{program}", "flat")),
    Stretch("native:64,python:0", ("{program}", "deep")),
    Stretch("native:64,python:0", ("{program}", "flat"), asleep=True),
    python_stretch("native:1,python:128", "framework, 10 Python frames", 10, -1),
    python_stretch("native:64,python:128", "framework, 10 Python and some 17 native frames", 10, 4),
)


@dataclasses.dataclass
class Accepted:
    """The committed numbers: case to (instructions, note), and what they depend on."""
    compiler: str = ""
    python: str = ""
    rows: dict = dataclasses.field(default_factory=dict)

    @classmethod
    def read(cls, path):
        found = cls()
        if not path.exists():
            return found
        for number, line in enumerate(path.read_text().splitlines(), 1):
            parts = line.split("\t")
            if not line or line.startswith("#"):
                continue
            if len(parts) == 2 and parts[0] in ("compiler", "python"):
                setattr(found, parts[0], parts[1])
            elif len(parts) == 3 and re.fullmatch(r"\d+(\.\d+)?", parts[1]):
                found.rows[parts[0]] = (float(parts[1]), parts[2])
            else:
                raise Failure(f"{path}:{number}: not 'case TAB instructions TAB note'")
        return found

    def write(self, path):
        lines = [f"compiler\t{self.compiler}", f"python\t{self.python}", *(f"{case}\t{count:.1f}\t{note}" for case, (count, note) in self.rows.items())]
        path.write_text(HEAD + "\n".join(lines) + "\n")


class Counter:
    """Runs stretches under callgrind."""

    def __init__(self, library):
        if not shutil.which("valgrind"):
            raise Failure("valgrind is missing: apt-get install valgrind")
        self.setup = Setup(library, ROOT / "build" / "memtrace", ROOT / "build" / "bench")
        self.setup.compile_instructions()
        self.python = subprocess.run([shutil.which("python3"), "-c", "import sys; print(sys.executable)"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        self.out = self.setup.folder / "callgrind"

    def count(self, stretch, traced):
        """Instructions per event of every case of the stretch."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir()
        places = {"program": self.setup.folder / "instructions", "library": self.setup.folder / "libinstructions.so", "python": self.python, "here": ACCEPTED.parent}
        environment = self.setup.environment(traced=False)
        # The hash seed decides about the interpreter's own tables, and with them about nothing here; the fixed one makes runs alike.
        environment.update(MEMTRACE_STACKS=stretch.stacks, MEMTRACE_NVML="0", PYTHONHASHSEED="0", PYTHONDONTWRITEBYTECODE="1")
        if traced:
            environment["LD_PRELOAD"] = str(self.setup.library)
        if stretch.asleep:
            environment["MEMTRACE_START"] = "asleep"
        command = ["valgrind", "-q", "--tool=callgrind", "--collect-atstart=no", "--instr-atstart=no", f"--callgrind-out-file={self.out}/out",
                   *(part.format(**places) for part in stretch.command)]
        done = subprocess.run(command, env=environment, cwd=self.setup.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        if done.returncode:
            raise Failure(f"{' '.join(map(str, command[6:]))} ended with status {done.returncode} under valgrind\n{done.stdout}")
        found = self.read()
        if stretch.asleep:
            return {f"{case}, asleep": count for case, count in found.items()}
        if traced:
            self.setup.check_recorded(environment["MEMTRACE_OUTPUT"], EVENTS)
        return found

    def read(self):
        found = {}
        for path in sorted(self.out.glob("out.*"), key=lambda path: int(path.suffix[1:])):
            text = path.read_text()
            case, total = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.M), re.search(r"^totals: (\d+)$", text, re.M)
            if case and total:
                found[case[1]] = int(total[1]) / EVENTS
        if not found:
            raise Failure("callgrind counted nothing")
        return found

    def added(self, stretch):
        plain, traced = self.count(stretch, False), self.count(stretch, True)
        return {case: traced[case] - plain[case] for case in plain}


def compiler():
    return "gcc " + subprocess.run([os.environ.get("CC", "gcc"), "-dumpfullversion"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def interpreter(path):
    return subprocess.run([path, "-c", "import platform; print('.'.join(platform.python_version_tuple()[:2]))"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def judge(case, count, accepted, differs):
    """(verdict, what to do)."""
    if case not in accepted.rows:
        return "new", "accept it"
    before = accepted.rows[case][0]
    change = count / before - 1
    if differs:
        return "ok", f"not compared: the accepted number is of {differs}"
    if change > TOLERANCE:
        return "dearer", f"{before:.1f} accepted, {change:+.1%}: make it cheaper, or accept it with the reason"
    if change < -TOLERANCE:
        return "cheaper", f"{before:.1f} accepted, {change:+.1%}: lower the number, or the next change may hide in the gap"
    return "ok", f"{before:.1f} accepted, {change:+.1%}"


def main():
    parser = argparse.ArgumentParser(prog="callgrind-guard.sh", description=__doc__.splitlines()[0])
    parser.add_argument("--accept", metavar="REASON", help="write the numbers that changed, with this as their note")
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build" / "libmemtrace.so", help="library to count (default: the one in build/)")
    options = parser.parse_args()
    if options.accept is not None and not options.accept.strip():
        parser.error("--accept wants a reason")
    try:
        verdicts = run(options)
    except (Failure, subprocess.TimeoutExpired) as failure:
        sys.exit(f"callgrind-guard: {failure}")
    good = sum(verdict in ("ok", "cheaper", "accepted") for verdict in verdicts)
    print(f"{good} passed, {len(verdicts) - good} failed")
    sys.exit(good != len(verdicts))


def run(options):
    counter = Counter(options.library.resolve())
    accepted, versions = Accepted.read(ACCEPTED), {"compiler": compiler(), "python": interpreter(counter.python)}
    if options.accept and not accepted.rows:
        accepted.compiler, accepted.python = versions["compiler"], versions["python"]
    verdicts = []
    for stretch in STRETCHES:
        depends = ("compiler", "python") if stretch.python else ("compiler",)
        differs = ", ".join(getattr(accepted, what) for what in depends if getattr(accepted, what) != versions[what])
        for case, count in counter.added(stretch).items():
            verdict, advice = judge(case, count, accepted, differs)
            if options.accept and not differs and verdict != "ok":
                accepted.rows[case] = (count, " ".join(options.accept.split()))
                verdict = "accepted"
            verdicts.append(verdict)
            print(f"{verdict:<9} {count:9.1f}  {case}: {advice}")
    if options.accept:
        if accepted.compiler != versions["compiler"]:
            say(f"nothing accepted: the numbers are of {accepted.compiler}, this is {versions['compiler']}; take that compiler, or remove {ACCEPTED.name} and accept all anew")
        accepted.write(ACCEPTED)
    return verdicts


if __name__ == "__main__":
    main()
