"""What probe.c found: the time of every report in a running training step."""
import dataclasses
import statistics
import struct

from document import table
from events import BOTH, CALLER, FULL, NATIVE, PYTHON
from gpt2 import Way
from measure import Failure, forget, in_turns, say, spread

SKIPPED_STEPS = 3
PRIVATE = 0.001  # of the longest: what other programs and the machine's own interruptions put into them
KINDS = {0: "allocations", 1: "frees"}
THREADS = {1: "main thread", 2: "autograd threads", 3: "other threads"}


@dataclasses.dataclass(frozen=True)
class Times:
    """Of one kind of report in one run, in ns."""
    count: int
    mean: float
    undisturbed: float  # mean without the longest thousandth
    median: float
    tail: float         # 99 of 100 are shorter

    @classmethod
    def of(cls, ticks, ticks_per_ns):
        values = sorted(tick / ticks_per_ns for tick in ticks)
        kept = values[:len(values) - round(len(values) * PRIVATE)]
        return cls(len(values), statistics.fmean(values), statistics.fmean(kept), values[len(values) // 2], values[len(values) * 99 // 100])


def read(path):
    """{(kind, thread) or None for all: Times} of the steps after the first ones."""
    data = path.read_bytes()
    rate = struct.unpack_from("<d", data)[0] / 1e3
    groups = {None: []}
    for ticks, step, is_free, thread in struct.iter_unpack("<IHBB", data[8:]):
        if step > SKIPPED_STEPS:
            groups[None].append(ticks)
            groups.setdefault((is_free, thread), []).append(ticks)
    if not groups[None]:
        raise Failure("the probe saw no report: is it in front of the library?")
    return {group: Times.of(ticks, rate) for group, ticks in groups.items() if len(ticks) > 100}


def measure(work, way):
    setup, path = work.setup, work.setup.folder / "probe.bin"
    forget(path)
    # An empty function behind the library stands for PyTorch's own, which the library would not find for a caller outside of PyTorch.
    libraries = [setup.folder / "libprobe.so", *([setup.library] if way.stacks else []), setup.folder / "libreport.so"]
    extra = (("BENCH_PROBE", str(path)), ("LD_PRELOAD", " ".join(map(str, libraries))))
    work.once(Way(way.mode, way.stacks, extra=extra))
    found = read(path)
    forget(path)
    return found


def section(work, rounds):
    ways = {"both stacks": BOTH, "caller only": CALLER, "native only": NATIVE, "Python only": PYTHON, "`full`": FULL}
    say(f"timing reports in the training step, {rounds} rounds of plain, {', '.join(ways)}")
    plain, *traced = in_turns(rounds, lambda: measure(work, Way()), *(lambda stacks=stacks: measure(work, Way(stacks=stacks)) for stacks in ways.values()))
    rows = []
    for (name, _), runs in zip(ways.items(), traced):
        for group in sorted(runs[0], key=lambda group: group or (-1, -1)):
            if group and name != "both stacks" or any(group not in run for run in [*runs, *plain]):
                continue
            label = "all reports" if group is None else f"{KINDS[group[0]]}, {THREADS[group[1]]}"
            cells = [spread([getattr(t[group], what) - getattr(p[group], what) for p, t in zip(plain, runs)], 0) for what in ("mean", "undisturbed", "median", "tail")]
            rows.append([f"{name}: {label}", str(runs[0][group].count), *cells, "at most 300 (mean)" if group is None and name == "both stacks" else ""])
    base = spread([run[None].mean for run in plain], 0)
    head = ["captured, in the running step", "reports in a run", "mean, ns", "mean without the longest thousandth", "median", "99th percentile", "budget"]
    return table(head, rows) + f"\n\nNanoseconds over an empty function (mean {base}), steps {SKIPPED_STEPS + 1} and later; the probe adds a native frame."
