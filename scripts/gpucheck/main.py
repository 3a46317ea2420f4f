# SPDX-License-Identifier: Apache-2.0
"""Entry of scripts/gpu-check.sh: chooses the checks, runs them in order, prints the tables and the score."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import checks
from harness import Harness
from score import FAIL, Score


def parse(arguments):
    parser = argparse.ArgumentParser(prog="gpu-check.sh", description="Check memtrace against a real GPU.")
    parser.add_argument("--root", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--only", metavar="NAME[,NAME...]", help="run these checks or groups of checks only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write claims, numbers and costs as JSON, too")
    parser.add_argument("--budget", type=int, default=540, metavar="SECONDS", help="time for all checks together (default %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave traces and logs in this folder")
    parser.add_argument("--list", action="store_true", help="print the names of the groups and their checks and stop")
    return parser.parse_args(arguments)


def choose(wanted):
    """The checks in their order; None, with a word on stderr, if a name is unknown."""
    if not wanted:
        return [name for group in checks.GROUPS for name in checks.GROUPS[group] if name not in checks.ON_REQUEST]
    asked = wanted.split(",")
    unknown = [name for name in asked if name not in checks.ALL and name not in checks.GROUPS]
    if unknown:
        print(f"gpu-check: no check or group named {', '.join(unknown)}; --list names them", file=sys.stderr)
        return None
    return [name for group in checks.GROUPS for name in checks.GROUPS[group] if name in asked or (group in asked and name not in checks.ON_REQUEST)]


def describe_machine(harness):
    """Notes what the results are obtained on; returns False, saying why, where nothing can be checked."""
    for path in (harness.library, harness.command):
        if not path.exists():
            print(f"gpu-check: {path} is missing: run make first, or bring it from a machine of the same kind", file=sys.stderr)
            return False
    try:
        finished = harness.run([sys.executable, harness.guests / "machine.py"])
    except subprocess.TimeoutExpired:
        print("gpu-check: PyTorch did not come up within 120 s", file=sys.stderr)
        return False
    if finished.returncode != 0:
        print(f"gpu-check: PyTorch cannot use a GPU here: {finished.stderr.strip()[-400:]}", file=sys.stderr)
        return False
    version = subprocess.run([str(harness.command), "--version"], stdout=subprocess.PIPE, universal_newlines=True, timeout=20)
    harness.score.machine = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "memtrace": version.stdout.strip(), "python": sys.version.split()[0],
                             "processors": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "architecture": os.uname().machine,
                             **json.loads(finished.stdout.strip().splitlines()[-1])}
    print(", ".join(f"{key} {value}" for key, value in harness.score.machine.items()), flush=True)
    return True


def main(arguments):
    options = parse(arguments)
    if options.list:
        for group, members in checks.GROUPS.items():
            print(f"{group}: " + ", ".join(name + (" (by name only)" if name in checks.ON_REQUEST else "") for name in members))
        return 0
    wanted = choose(options.only)
    if wanted is None:
        return 2
    score = Score()
    with tempfile.TemporaryDirectory(prefix="memtrace-gpu-check.") as scratch:
        folder = options.keep.resolve() if options.keep else Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        harness = Harness(options.root, folder, score, options.budget)
        if not describe_machine(harness):
            return 2
        for name in wanted:
            harness.attempt(name, checks.ALL[name])
            if options.json:
                score.write(options.json)  # after each, so that a run that is cut off leaves what it has
    tables = score.tables()
    if tables:
        print(tables + "\n")
    print(score.line())
    return 0 if score.count(FAIL) == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
