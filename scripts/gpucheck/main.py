# SPDX-License-Identifier: Apache-2.0
"""Entry of scripts/gpu-check.sh: chooses the checks, runs them in order, prints the score."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import checks
from harness import Harness


def parse(arguments):
    parser = argparse.ArgumentParser(prog="gpu-check.sh", description="Check memtrace against a real GPU.")
    parser.add_argument("--root", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--only", metavar="NAME[,NAME...]", help="run these checks only")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave traces and logs in this folder")
    parser.add_argument("--list", action="store_true", help="print the names of the checks and stop")
    return parser.parse_args(arguments)


def describe_machine(harness):
    """Prints what the results were obtained on; returns False, saying why, where nothing can be checked."""
    for path in (harness.library, harness.command):
        if not path.exists():
            print(f"gpu-check: {path} is missing: run make first", file=sys.stderr)
            return False
    probe = ("import json, torch; p = torch.cuda.get_device_properties(0); "
             "print(json.dumps(dict(gpu=p.name, torch=torch.__version__, cuda=torch.version.cuda, bytes=p.total_memory)))")
    finished = harness.run([sys.executable, "-c", probe])
    if finished.returncode != 0:
        print(f"gpu-check: PyTorch cannot use a GPU here: {finished.stderr.strip()[-400:]}", file=sys.stderr)
        return False
    print(f"python {sys.version.split()[0]}, {os.uname().machine}, {finished.stdout.strip()}")
    version = subprocess.run([str(harness.command), "--version"], stdout=subprocess.PIPE, universal_newlines=True)
    print(version.stdout.strip(), flush=True)
    return True


def main(arguments):
    options = parse(arguments)
    if options.list:
        print("\n".join(checks.ALL))
        return 0
    wanted = options.only.split(",") if options.only else list(checks.ALL)
    unknown = [name for name in wanted if name not in checks.ALL]
    if unknown:
        print(f"gpu-check: no check named {', '.join(unknown)}; --list names them", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="memtrace-gpu-check.") as scratch:
        folder = options.keep.resolve() if options.keep else Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        harness = Harness(options.root, folder)
        if not describe_machine(harness):
            return 2
        for name in wanted:
            harness.attempt(name, checks.ALL[name])
    skipped = f", {harness.skipped} skipped" if harness.skipped else ""
    print(f"{harness.passed} passed, {harness.failed} failed{skipped}")
    return 0 if harness.failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
