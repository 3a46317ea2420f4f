# SPDX-License-Identifier: Apache-2.0
"""What the checks share: running guests with and without the library, each under a time limit, and reading reports."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from score import FAIL, PASS, SKIP


class Unmet(Exception):
    """A check cannot go on: the message says why."""


class Skipped(Exception):
    """A check's own precondition (a second GPU, nvcc, CuPy) is missing on this machine."""


class Harness:
    """One run of the checks.

    folder holds traces and logs; library and command are the build under test. All checks together end within `budget` seconds: what has not
    started by then fails.
    """

    def __init__(self, root, folder, score, budget):
        self.root = root
        self.folder = folder
        self.score = score
        self.library = root / "build" / "libmemtrace.so"
        self.command = root / "build" / "memtrace"
        self.guests = Path(__file__).resolve().parent / "guests"
        self._deadline = time.monotonic() + budget

    @property
    def null_gpu(self):
        """There is no hardware: kernels do nothing, so times and the contents of memory say nothing."""
        return self.score.machine.get("gpu") == "Null GPU"

    # --- score

    def expect(self, claim, holds, detail=""):
        """Scores one claim. detail is printed either way."""
        self.score.claim(PASS if holds else FAIL, claim, detail)
        return bool(holds)

    def expect_equal(self, claim, ours, theirs):
        """Scores one claim of equality; the line shows both numbers when they differ."""
        detail = f"{ours}" if ours == theirs else f"memtrace {ours}, expected {theirs}"
        return self.expect(claim, ours == theirs, detail)

    def expect_hardware(self, claim, holds, detail, why):
        """Scores a claim that means something on hardware only; `why` says so where there is none."""
        if self.null_gpu:
            self.skip(claim, f"{why}; {detail}" if detail else why)
        else:
            self.expect(claim, holds, detail)

    def skip(self, claim, reason):
        self.score.claim(SKIP, claim, reason)

    def note(self, text):
        self.score.note(text)

    def attempt(self, name, check):
        """Runs one check function; whatever stops it is a failure, a missing precondition is a skip. Nothing but an interrupt stops the others."""
        self.score.begin(name)
        began = time.monotonic()
        if self.seconds_left() < 10:
            self.expect(name, False, "not started: the time for all checks is spent; name fewer with --only, or give more with --budget")
            return
        try:
            check(self)
        except Skipped as reason:
            self.skip(name, str(reason))
        except subprocess.TimeoutExpired as error:
            self.expect(name, False, f"{_words(error.cmd)} took more than {error.timeout:.0f} s and was ended")
        except Unmet as error:
            self.expect(name, False, f"stopped: {error}")
        except Exception as error:  # a fault of the check itself must not cost the results of the others
            self.expect(name, False, f"stopped by {type(error).__name__}: {error}")
        self.score.end(time.monotonic() - began)

    def seconds_left(self):
        return self._deadline - time.monotonic()

    # --- guests

    def environment(self, trace=None, **variables):
        """Environment of a guest; with a trace path the library is preloaded and writes there."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("MEMTRACE_") and key != "LD_PRELOAD"}
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(self.root / "python"), env.get("PYTHONPATH")]))
        if trace is not None:
            env.update(LD_PRELOAD=str(self.library), MEMTRACE_OUTPUT=str(trace), MEMTRACE_FORCE="1")
        env.update(variables)
        return env

    def start(self, argv, trace=None, stdin=None, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **variables):
        """Starts a guest in a process group of its own, which end() ends as a whole."""
        return subprocess.Popen([str(part) for part in argv], env=self.environment(trace, **variables), cwd=self.folder, stdin=stdin or subprocess.DEVNULL,
                                stdout=stdout, stderr=stderr, universal_newlines=True, start_new_session=True)

    @staticmethod
    def end(guest):
        """Ends a guest and whatever it started."""
        try:
            os.killpg(guest.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        guest.wait()
        for stream in (guest.stdin, guest.stdout, guest.stderr):
            if stream:
                stream.close()

    @contextlib.contextmanager
    def second_process(self, amount, **variables):
        """Another process on the device, which has so many bytes of it, or with a minus sign all but so many, as long as the block runs."""
        holder = self.start([sys.executable, self.guests / "holder.py", amount], **variables)
        try:
            self.line(holder, "the second process")
            yield
        finally:
            self.end(holder)

    def run(self, argv, trace=None, seconds=120, **variables):
        """Runs a guest to its end and returns the finished process, its output as text."""
        guest = self.start(argv, trace, **variables)
        try:
            out, err = guest.communicate(timeout=max(1, min(seconds, self.seconds_left())))
        finally:
            self.end(guest)
        return subprocess.CompletedProcess(guest.args, guest.returncode, out, err)

    def run_python(self, name, *arguments, trace=None, status=0, seconds=120, **variables):
        """Runs guests/NAME and returns the JSON object that it printed as its last line.

        A guest that fails under the library is tried without it: where it fails then, too, the machine lacks something and the check is skipped.
        """
        argv = [sys.executable, self.guests / name, *arguments]
        finished = self.run(argv, trace, seconds, **variables)
        if finished.returncode != status:
            words = f"{name} ended with status {finished.returncode}: {finished.stderr.strip()[-600:]}"
            if trace is None:
                raise Unmet(words)
            plain = self.run(argv, None, seconds, **variables)
            if plain.returncode != status:
                raise Skipped(f"{name} fails here without the library, too: {plain.stderr.strip()[-300:]}")
            raise Unmet(f"{words}; without the library it ends with status {status}")
        return last_object(finished.stdout)

    def line(self, guest, what, seconds=60):
        """The next line that a running guest prints, or Unmet if it ends or says nothing for so long. For guests that answer line by line."""
        ready, _, _ = select.select([guest.stdout], [], [], max(1, min(seconds, self.seconds_left())))
        line = guest.stdout.readline() if ready else ""
        if not line:
            raise Unmet(f"{what} " + (f"ended with status {guest.wait(5)}" if ready else f"said nothing for {seconds} s"))
        return line.strip()

    def has_module(self, module):
        return self.run([sys.executable, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec('{module}') is None)"]).returncode == 0

    # --- reports

    def report(self, trace, *arguments):
        """The trace's JSON report."""
        finished = subprocess.run([str(self.command), "report", "--json", *arguments, str(trace)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  universal_newlines=True, timeout=60)
        if finished.returncode != 0:
            raise Unmet(f"memtrace report ended with status {finished.returncode}: {finished.stderr.strip()[-600:]}")
        report = json.loads(finished.stdout)
        return report[0] if isinstance(report, list) else report

    def expect_sound(self, report, run=""):
        """No record is missing or in the wrong place."""
        health = report["health"]
        self.expect("no record was lost, cut or out of order" + run, report["lost_records"] == 0 and not health["truncated"]
                    and health["sequence_gaps"] == 0 and health["unmatched_frees"] == 0, in_words(report))


def last_object(text):
    """The JSON object in the last line of a guest's output."""
    lines = text.strip().splitlines()
    if not lines:
        raise Unmet("the guest printed nothing")
    return json.loads(lines[-1])


def in_words(report):
    """What a report's health says beyond zeros."""
    shown = {key: value for key, value in report["health"].items() if value and key not in ("complete", "bytes_read", "events", "reserved_from")}
    return f"{report['health']['events']} events, lost {report['lost_records']}" + (f", {shown}" if shown else "")


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


def _words(command):
    return " ".join(Path(part).name for part in command[:2])
