"""GPT-2 small, trained on real PyTorch and the null GPU, under every way of recording memory."""
import dataclasses
import gzip
import json
import pathlib
import shutil
import subprocess
import sys
import time

from events import BOTH, CALLER
from measure import HERE, ROOT, Failure, forget, say
from sections import sizes

TORCH = "torch==2.7.1"
MEMRAY = "memray==1.20.0"
OURS = {"memtrace": BOTH, "memtrace, caller only": CALLER}


@dataclasses.dataclass(frozen=True)
class Way:
    """How a run is started."""
    mode: str = "plain"     # of training.py
    stacks: str = None      # MEMTRACE_STACKS of a traced run; None: not traced
    through: tuple = ()     # what stands between python and the script
    before: tuple = ()      # what stands before python
    extra: tuple = ()       # (name, value) of environment variables
    output: pathlib.Path = None  # the file that a peer writes


class Training:
    def __init__(self, setup, steps):
        self.setup, self.steps = setup, steps
        self.counts = {}
        self.trace, self.snapshot = setup.folder / "gpt2.bin", setup.folder / "snapshot.pickle"
        found = subprocess.run([sys.executable, ROOT / "testdata" / "nullcuda" / "venv.py", TORCH], stdout=subprocess.PIPE, text=True)
        if found.returncode:
            raise Failure(f"no environment with {TORCH}")
        self.start = pathlib.Path(found.stdout.strip()) / "bin" / "nullcuda-run"

    def once(self, way, before=()):
        """One run: what training.py says of itself, how long the process took to end, and what was recorded."""
        extra = dict(way.extra)
        if way.stacks:
            extra.update(MEMTRACE_STACKS=way.stacks)
        command = [*before, self.start, *way.before, "python", *way.through, HERE / "training.py", way.mode, self.steps, self.snapshot]
        said = self.setup.run(*command, traced=way.stacks is not None, trace=self.trace, extra=extra)
        ended = time.monotonic_ns()
        result = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        result["end_ms"] = (ended - result["ended_ns"]) / 1e6
        forget(self.snapshot)
        if way.stacks is not None:
            result.update(self.recorded())
        return result

    def recorded(self):
        """What the trace of the last run holds."""
        info = self.setup.info(self.trace)
        by_kind, whole = sizes(self.trace), self.trace.stat().st_size
        forget(self.trace)
        return {"bytes": whole, "events": info["events"], "lost": info["lost"]["records"] + info["lost"]["dictionary"], "dictionary": by_kind["dictionary"],
                "event_bytes": by_kind["events"], "stacks": info.get("stacks", {})}

    def ours(self):
        return {name: Way(stacks=stacks) for name, stacks in OURS.items()}

    def torch_history(self):
        return {"PyTorch's history, Python stacks": Way("python"), "PyTorch's history, all stacks": Way("all")}

    def peers(self):
        """Tools that record host memory; memray is installed for the bench alone, heaptrack must be there."""
        where, out = self.setup.folder / "memray", self.setup.folder / "peer.memray"
        if not where.exists():
            say(f"installing {MEMRAY}")
            command = [self.start, "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-conflicts", "--target", where, MEMRAY]
            subprocess.run(command, check=True)
        ways = {}
        for name, flags in (("memray (host memory)", ()), ("memray --native (host memory)", ("--native",))):
            ways[name] = Way(through=("-m", "memray", "run", "--quiet", "--force", *flags, "--output", str(out)), extra=(("PYTHONPATH", str(where)),), output=out)
        if shutil.which("heaptrack"):
            out = self.setup.folder / "peer.heaptrack"
            ways["heaptrack (host memory)"] = Way(before=("heaptrack", "-o", str(out)), output=out)
        else:
            say("heaptrack is missing and left out: apt-get install heaptrack")
        return ways

    def once_peer(self, way):
        result = self.once(way)
        written = next(path for path in (way.output, *way.output.parent.glob(way.output.name + ".*")) if path.exists())
        result.update(bytes=written.stat().st_size, events=self.peer_events(way, written))
        forget(written)
        return result

    def peer_events(self, way, written):
        """Allocations and frees in a peer's file. Counted once for each peer: runs differ by a few of millions, and reading takes longer than the run."""
        if way not in self.counts:
            self.counts[way] = self.count_heaptrack(written) if way.before else self.count_memray(written)
        return self.counts[way]

    def count_heaptrack(self, written):
        if written.suffix == ".gz":
            with gzip.open(written) as lines:
                return sum(line[:1] in (b"+", b"-") for line in lines)
        with subprocess.Popen(["zstd", "-dc", written], stdout=subprocess.PIPE) as unpack:
            return sum(line[:1] in (b"+", b"-") for line in unpack.stdout)

    def count_memray(self, written):
        count = "import memray, sys; print(sum(1 for _ in memray.FileReader(sys.argv[1]).get_allocation_records()))"
        return int(self.setup.run(self.start, "python", "-c", count, written, extra={"PYTHONPATH": str(self.setup.folder / "memray")}))


def instructions_can_be_counted():
    """Whether the machine lets programs read its instruction counter; most virtual ones do not."""
    if not shutil.which("perf"):
        return False
    done = subprocess.run(["perf", "stat", "-x", ",", "-e", "instructions:u", "true"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return done.returncode == 0 and counted(done.stderr) is not None


def counted(text):
    """The number in perf's output, None if it has none."""
    for line in text.splitlines():
        field = line.split(",")[0]
        if field.replace(".", "", 1).isdigit():
            return float(field)
    return None
