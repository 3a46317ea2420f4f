# SPDX-License-Identifier: Apache-2.0
"""What the checks share: running guests with and without the library, reading reports, and keeping the score."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

# All checks together end within this many seconds; what has not started by then fails.
BUDGET = 460


class Unmet(Exception):
    """A check cannot go on: the message says why."""


class Skipped(Exception):
    """A check's own precondition (nvcc, CuPy, JAX) is missing on this machine."""


class Harness:
    """One run of the checks.

    folder holds traces and logs; library and command are the build under test.
    """

    def __init__(self, root, folder):
        self.root = root
        self.folder = folder
        self.library = root / "build" / "libmemtrace.so"
        self.command = root / "build" / "memtrace"
        self.guests = Path(__file__).resolve().parent / "guests"
        self.passed = 0
        self.failed = 0
        self.skipped = 0
        self._deadline = time.monotonic() + BUDGET

    # --- score

    def expect(self, claim, holds, detail=""):
        """Scores one claim. detail is printed either way."""
        self.passed += bool(holds)
        self.failed += not holds
        self._say("PASS" if holds else "FAIL", claim, detail)
        return holds

    def expect_equal(self, claim, ours, theirs):
        """Scores one claim of equality; the line shows both numbers when they differ."""
        detail = f"{ours}" if ours == theirs else f"memtrace {ours}, expected {theirs}"
        return self.expect(claim, ours == theirs, detail)

    def note(self, text):
        self._say("    ", text, "")

    def attempt(self, name, check):
        """Runs one check function; whatever stops it is a failure, a missing precondition is a skip."""
        print(f"--- {name}", flush=True)
        if self.seconds_left() < 20:
            self.expect(name, False, "not started: the time for all checks is spent")
            return
        try:
            check(self)
        except Skipped as reason:
            self.skipped += 1
            self._say("SKIP", name, str(reason))
        except (Unmet, subprocess.TimeoutExpired, OSError, KeyError, IndexError, ValueError, TypeError) as error:
            self.expect(name, False, f"stopped by {type(error).__name__}: {error}")

    def seconds_left(self):
        return self._deadline - time.monotonic()

    @staticmethod
    def _say(verdict, claim, detail):
        print(f"{verdict} {claim}" + (f": {detail}" if detail else ""), flush=True)

    # --- guests

    def environment(self, trace=None, **variables):
        """Environment of a guest; with a trace path the library is preloaded and writes there."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("MEMTRACE_") and key != "LD_PRELOAD"}
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(self.root / "python"), env.get("PYTHONPATH")]))
        if trace is not None:
            env.update(LD_PRELOAD=str(self.library), MEMTRACE_OUTPUT=str(trace), MEMTRACE_FORCE="1")
        env.update(variables)
        return env

    def run(self, argv, trace=None, seconds=150, **variables):
        """Runs a guest to its end and returns the finished process, its output as text."""
        return subprocess.run([str(part) for part in argv], env=self.environment(trace, **variables), cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                              timeout=max(1, min(seconds, self.seconds_left())))

    def start(self, argv, trace, **variables):
        """Starts a guest with the library and returns the running process; its output goes to a file beside the trace."""
        with open(f"{trace}.log", "w") as log:
            return subprocess.Popen([str(part) for part in argv], env=self.environment(trace, **variables), cwd=self.folder, stdout=log,
                                    stderr=subprocess.STDOUT)

    def run_python(self, name, *arguments, trace=None, status=0, **variables):
        """Runs guests/NAME and returns the JSON object that it printed as its last line."""
        finished = self.run([sys.executable, self.guests / name, *arguments], trace, **variables)
        if finished.returncode != status:
            raise Unmet(f"{name} ended with status {finished.returncode}: {finished.stderr.strip()[-600:]}")
        return json.loads(finished.stdout.strip().splitlines()[-1])

    def has_module(self, module):
        return self.run([sys.executable, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec('{module}') is None)"]).returncode == 0

    # --- reports

    def report(self, trace, *arguments):
        """The trace's JSON report."""
        finished = subprocess.run([str(self.command), "report", "--json", *arguments, str(trace)], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, universal_newlines=True, timeout=60)
        if finished.returncode != 0:
            raise Unmet(f"memtrace report ended with status {finished.returncode}: {finished.stderr.strip()[-600:]}")
        report = json.loads(finished.stdout)
        return report[0] if isinstance(report, list) else report


def rows(report, by, level):
    """The rows of one grouping of a report, by key."""
    for group in report["groups"]:
        if group["by"] == by and group["level"] == level:
            return {row["key"]: row for row in group["rows"]}
    raise Unmet(f"the report has no rows by {by} of the {level} level")


def device(entries, index=0):
    """The entry of one device in a list of devices."""
    for entry in entries:
        if entry["index"] == index:
            return entry
    raise Unmet(f"the report does not know device {index}")
