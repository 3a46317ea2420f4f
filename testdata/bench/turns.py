"""The training step's cost from processes that train by turns, a few steps each: what a shared machine does to one it does to the others, too."""
import json
import os
import statistics
import subprocess

from document import table
from gpt2 import Way
from measure import HERE, Failure, forget, ratios, say, spread

LENGTH = 4  # steps of a turn
TURNS = 40
LIMIT = 120  # seconds


class Runner:
    """A process that trains when it is told to."""

    def __init__(self, work, way, number):
        setup = work.setup
        self.reports, theirs = os.pipe()
        orders, self.orders = os.pipe()
        self.trace = setup.folder / f"turns.{number}.bin"
        values = setup.environment(way.stacks is not None, self.trace)
        values.update(dict(way.extra), BENCH_TURNS=f"{orders},{theirs},{LENGTH}")
        if way.stacks:
            values.update(MEMTRACE_STACKS=way.stacks)
        # The steps of the warm-up, and a last one, which ends the last turn.
        command = [work.start, "python", HERE / "training.py", way.mode, 3 + LENGTH * TURNS + 1, work.snapshot]
        self.process = subprocess.Popen([str(part) for part in command], env=values, cwd=setup.folder, stdout=subprocess.PIPE, text=True, pass_fds=(orders, theirs))
        os.close(orders)
        os.close(theirs)
        self.wait()

    def wait(self):
        """Until it has done its turn."""
        if not os.read(self.reports, 1):
            raise Failure("a training that takes turns ended early")

    def turn(self):
        os.write(self.orders, b"!")
        self.wait()

    def end(self):
        """(milliseconds a step of each turn, the same in processor time)."""
        os.write(self.orders, b"!")
        text, _ = self.process.communicate(timeout=LIMIT)
        os.close(self.reports)
        os.close(self.orders)
        if self.process.returncode:
            raise Failure(f"a training that takes turns ended with status {self.process.returncode}")
        said = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
        return said["turn_ms"], said["turn_cpu_ms"]


def once(work, ways, turn):
    """[(wall, processor time) of each way], each a list over turns."""
    runners = [Runner(work, way, number) for number, way in enumerate(ways)]
    for i in range(TURNS):
        order = range(len(ways)) if (i + turn) % 2 else reversed(range(len(ways)))
        for which in order:
            runners[which].turn()
    found = [runner.end() for runner in runners]
    for path in (work.snapshot, *(runner.trace for runner in runners)):
        forget(path)
    return found


def section(work, rounds):
    """Rows: the ratio of a round is the median over its turns."""
    ways = {"plain": Way(), **work.ours(), **{name: way for name, way in work.torch_history().items() if "Python" in name}}
    say(f"training GPT-2 small by turns, {rounds} rounds of {', '.join(ways)}")
    runs = [once(work, list(ways.values()), turn) for turn in range(rounds)]
    rows = []
    for which, name in enumerate(ways):
        wall, cpu = ([run[which][kind] for run in runs] for kind in (0, 1))
        base_wall, base_cpu = ([run[0][kind] for run in runs] for kind in (0, 1))
        cells = [spread([statistics.median(values) for values in wall])]
        for base, other in ((base_wall, wall), (base_cpu, cpu)):
            cells.append(spread([statistics.median(ratios(a, b)) for a, b in zip(base, other)], 3) if which else "")
        rows.append([name, *cells, "at most 1.05" if name == "memtrace" else ""])
    return table(["GPT-2 small, by turns", "step, ms", "ratio to plain", "ratio of processor time", "budget"], rows)
