"""What a thousand ranks take: their traces to tables, the recipes of docs/at-scale over these, and one report and page of their profiles."""
import os
import pathlib
import re
import subprocess
import sys
import time

from document import table
from measure import ROOT, Failure, forget, say

TORCH = "torch==2.7.1"
RANKS, FEW = 1000, 50
FAULTS = {9: "leak", 23: "batch", 42: "stray"}  # by rank; all others have none


class Costs:
    """Runs commands, and has a row for each: seconds of processor time, and the most memory that it had."""

    def __init__(self):
        self.rows = []

    def run(self, what, *command):
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise Failure(f"{what}: status {process.returncode}")
        self.rows.append([what, f"{used.ru_utime + used.ru_stime:.2f}", f"{used.ru_maxrss / 1024:.0f}", ""])


def recorded(setup, folder):
    """A dump of each kind of rank, as text."""
    found = subprocess.run([sys.executable, ROOT / "testdata/nullcuda/venv.py", TORCH], stdout=subprocess.PIPE, text=True)
    if found.returncode:
        raise Failure(f"no environment with {TORCH}")
    start, texts = pathlib.Path(found.stdout.strip()) / "bin/nullcuda-run", {}
    for fault in ["none", *FAULTS.values()]:
        trace = folder / f"{fault}.bin"
        setup.run(start, "python", ROOT / "testdata/train/faulty_rank.py", fault, traced=True, trace=trace, extra={"NULLCUDA_DEVICES": "2", "MEMTRACE_REFERRERS": "0"})
        texts[fault] = setup.run(setup.command, "dump", trace)
        forget(trace)
    return texts


def traces(setup, folder, count):
    """A trace for each rank."""
    texts, paths = recorded(setup, folder), []
    for rank in range(count):
        head, rest = texts[FAULTS.get(rank, "none")].split("\n", 1)
        text, path = folder / "rank.txt", folder / f"rank{rank}.bin"
        text.write_text(f'{head}\ninfo key="env.RANK" value="{rank}"\ninfo key="env.WORLD_SIZE" value="{count}"\n{rest}')
        setup.run(setup.command, "dump", "--encode", text, "-o", path)
        paths.append(path)
    return paths


def section(setup, quick):
    folder, count = setup.folder / "ranks", FEW if quick else RANKS
    forget(folder)
    folder.mkdir()
    say(f"traces of {count} ranks")
    paths, costs, begin = traces(setup, folder, count), Costs(), time.monotonic()
    events = setup.info(paths[0])["events"]
    tables, profiles = folder / "tables", folder / "profiles"
    costs.run(f"`memtrace export parquet` of {count:,} traces of {events:,} events", setup.command, "-q", "export", "parquet", "--run", "bench", "-o", tables, *paths)
    tools = subprocess.run([ROOT / "scripts/python-tools.sh", "internal/tools/duckdb-requirements.txt"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    for recipe in sorted((ROOT / "docs/at-scale").glob("*.sql")):
        costs.run(f"{recipe.name} on DuckDB, its start included", f"{tools}/python", ROOT / "testdata/python/at_scale.py", "duckdb", tables, recipe)
    profiles.mkdir()
    costs.run(f"`memtrace profile` of one trace, of {count:,}", setup.command, "-q", "profile", paths[0], "-o", profiles / "rank0.mtp")
    for rank, path in enumerate(paths[1:], 1):
        setup.run(setup.command, "-q", "profile", path, "-o", profiles / f"rank{rank}.mtp")
    costs.run(f"`memtrace report` of {count:,} profiles", setup.command, "report", profiles)
    page = folder / "ranks.html"
    costs.run(f"`memtrace html` of {count:,} profiles", setup.command, "-q", "html", profiles, "-o", page)
    costs.rows[-1][3] = f"{page.stat().st_size / 1e6:.2f} MB"
    said = re.sub(r"\s+", " ", setup.run(setup.command, "report", profiles))
    for rank in FAULTS:
        if f"rank {rank}" not in said:
            raise Failure(f"the report does not name rank {rank}")
    say(f"ranks took {time.monotonic() - begin:.0f} s without making their traces")
    forget(folder)
    return table(["what", "s of one core", "MiB", "file"], costs.rows)
