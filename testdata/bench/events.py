"""What one framework event costs its thread: by kind of stack and depth, by number of threads, with warm and with taken caches, and at first sight."""
import dataclasses
import statistics
import sys

from document import table
from measure import HERE, in_turns, quartiles, say, spread

CALLER, NATIVE, PYTHON, BOTH, FULL = "none", "native:64,python:0", "native:1,python:128", "native:64,python:128", "full"
THREADS = (1, 8)
TOUCHED = (256 << 10, 1 << 20)
NATIVE_ABOVE = 4  # levels in C, which with the interpreter's own and those of the call into C make 17 native frames


@dataclasses.dataclass(frozen=True)
class Shape:
    """A stack below which events are reported, and what of it is captured."""
    label: str
    stacks: str
    native: int = 0          # frames of a native program
    python: int = 0          # frames of a Python program, which then runs instead
    levels: int = -1         # native ones between Python and the report
    modules: bool = False
    random: bool = False     # the stacks come in no order

    def command(self, setup, threads, bursts, touched):
        if not self.python:
            return [setup.folder / "record", threads, bursts, self.native, touched, *(["random"] if self.random else [])]
        nested = ["modules"] if self.modules else []
        return [sys.executable, HERE / "pyrecord.py", setup.folder / "libburst.so", threads, bursts, self.python, touched, self.levels, *nested]

    def once(self, setup, bursts, threads=1, touched=0, traced=False):
        """Median (allocation, free) of the bursts, in ns."""
        lines = setup.run(*self.command(setup, threads, bursts, touched), traced=traced, extra={"MEMTRACE_STACKS": self.stacks}).splitlines()
        return tuple(statistics.median(column) for column in zip(*(map(float, line.split()) for line in lines)))


SHAPES = (
    Shape("caller only", CALLER),
    *(Shape(f"{n} native frames", NATIVE, native=n) for n in (10, 30, 60)),
    Shape("30 native frames, stacks in random order", NATIVE, native=30, random=True),
    *(Shape(f"{n} Python frames", PYTHON, python=n) for n in (10, 20, 40)),
    Shape("20 Python frames, of nested modules", PYTHON, python=20, modules=True),
    Shape("20 Python and some 17 native frames above them", BOTH, python=20, levels=NATIVE_ABOVE, modules=True),
    Shape("the same with `full`: native frames behind the interpreter too", FULL, python=20, levels=NATIVE_ABOVE, modules=True),
)


def added(plain, traced):
    """What the library adds to an event in each round: mean of allocation and free, allocation, free."""
    return [[mean(t) - mean(p) for p, t in zip(plain, traced)], [t[0] - p[0] for p, t in zip(plain, traced)], [t[1] - p[1] for p, t in zip(plain, traced)]]


def mean(kinds):
    return sum(kinds) / 2


def floor(setup, rounds, bursts):
    runs = [setup.run(setup.folder / "record", 1, bursts, "floor").split() for _ in range(rounds)]
    return [statistics.median(map(float, run)) for run in runs]


def hot_and_touched(setup, rounds, bursts):
    """The table of what events cost in bursts, as ns over a plain call of the same function."""
    rows = []
    conditions = [(threads, 0) for threads in THREADS] + [(1, touched) for touched in TOUCHED]
    for shape in SHAPES:
        say(f"framework events, {shape.label}")
        cells, kinds = [], None
        for threads, touched in conditions:
            def once(traced, shape=shape, threads=threads, touched=touched):
                return shape.once(setup, bursts, threads, touched, traced)
            both, *each = added(*in_turns(rounds, lambda: once(False), lambda: once(True)))
            kinds = kinds or each
            cells.append(spread(both, 0))
        rows.append([shape.label, *cells, *(spread(kind, 0) for kind in kinds)])
    least = spread(floor(setup, rounds, bursts), 1)
    head = ["captured with each event", *(f"{n} thread{'s'[:n - 1]}" for n in THREADS), *(f"{size >> 10} KiB written between" for size in TOUCHED), "alone: allocation", "free"]
    return table(head, rows) + f"\n\nNanoseconds over the plain call. A store of 64 bytes and a reading of the clock, the least that any recorder does: {least}."


def first_sight(setup, times):
    """The table of what is paid once."""
    libraries = []
    for number in range(min(times, 40)):
        copy = setup.folder / f"library-{number}.so"
        copy.write_bytes((setup.folder / "libburst.so").read_bytes())
        libraries.append(copy)
    burst, pycold, cold = setup.folder / "libburst.so", HERE / "pycold.py", setup.folder / "cold"
    cases = (
        ("of a thread, 30 native frames", NATIVE, [cold, "thread", times, 26]),
        ("from a new native stack, 30 frames of known functions", NATIVE, [cold, "stack", times, 26]),
        ("from a library just loaded, 30 frames of it", NATIVE, [cold, "library", 0, 26, *libraries]),
        ("below a new code object, 20 Python frames", PYTHON, [sys.executable, pycold, burst, "code", times, 20]),
        ("from a new Python stack, 20 frames of known code objects", PYTHON, [sys.executable, pycold, burst, "stack", times, 20]),
    )
    rows = []
    for label, stacks, command in cases:
        say(f"first event {label}")
        plain, traced = ([[float(x) for x in line.split()] for line in setup.run(*command, traced=traced, extra={"MEMTRACE_STACKS": stacks}).splitlines()] for traced in (False, True))
        base = [quartiles(column)[1] for column in zip(*plain)]
        rows.append([label, *(spread([x - base[i] for x in column], 0) for i, column in enumerate(zip(*traced)))])
    for copy in libraries:
        copy.unlink()
    return table(["first event", "ns", "the next one there, ns"], rows)


def section(setup, quick):
    rounds, bursts, times = (1, 20, 20) if quick else (5, 100, 300)
    return hot_and_touched(setup, rounds, bursts) + "\n\n" + first_sight(setup, times)
