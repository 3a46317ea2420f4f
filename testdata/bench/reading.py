"""How fast traces are read and written: Go's own benchmarks, three times each, compiled by the profile of the command."""
import re
import subprocess

from document import table
from measure import ROOT, Failure, say, spread

BENCHMARKS = [
    ("./trace", "BenchmarkRead", 1, "decode, million events per second and core"),
    ("./trace", "BenchmarkWrite", 1, "encode with compression, million events per second and core"),
    ("./analyzer", "BenchmarkHeap", 1, "replay alone, million events per second and core"),
    ("./analyzer", "BenchmarkSummarizeFile", 1, "read a file and replay with one grouping, million events per second and core"),
    ("./analyzer", "BenchmarkSummarizeFile", 2, "the same with two cores, million events per second"),
    ("./analyzer", "BenchmarkSummarizeTraining", 1, "read a file twice and replay with names and iterations, million events per second and core"),
    ("./analyzer", "BenchmarkSummarizeTraining", 2, "the same with two cores, million events per second"),
]
BUDGETS = {"BenchmarkWrite": "at least 17 (60 ns an event)", "BenchmarkSummarizeTraining": ""}


def rate(line):
    """Million events per second of one line of go's output."""
    found = re.search(r"([\d.]+) Mevents/s", line)
    if found:
        return float(found[1])
    found = re.search(r"([\d.]+) ns/event", line)
    if not found:
        raise Failure(f"no rate in {line!r}")
    return 1e3 / float(found[1])


def section(quick):
    rows = []
    for package, name, cores, what in BENCHMARKS:
        say(f"{name} of {package}")
        done = subprocess.run(["go", "test", f"-pgo={ROOT}/cmd/memtrace/reports.pgo", "-run", "^$", "-bench", f"^{name}$", "-count", "1" if quick else "3", "-cpu", str(cores), package], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise Failure(f"go test -bench {name} {package} failed\n{done.stdout}")
        for variant in sorted(set(re.findall(rf"^({name}\S*)\s", done.stdout, re.M))):
            rates = [rate(line) for line in done.stdout.splitlines() if line.split()[:1] == [variant]]
            label = variant.removeprefix(name).removesuffix(f"-{cores}").lstrip("/")
            rows.append([what + (f" ({label})" if label else ""), spread(rates, 1), BUDGETS.get(name, "at least 20")])
    return table(["what", "value", "budget"], rows)
