# SPDX-License-Identifier: Apache-2.0
"""Processes that die by SIGKILL: every committed record is in the report."""

import os
import random
import signal
import struct
import subprocess
import sys
import time

from harness import Unmet, device, in_words

MOMENTS = 12
SEED = 20261121


def killed_by_itself(harness):
    """A process that dies by SIGKILL right after an allocation."""
    trace = harness.folder / "killed.bin"
    truth = harness.run_python("die.py", trace=trace, status=-signal.SIGKILL)
    report = harness.report(trace)
    harness.expect_equal("the report says that the run was killed", report["process"]["ended"], "killed")
    framework = device(report["devices"])["framework"]
    harness.score.number("kill -9", "allocated bytes at the kill", framework["live_bytes"], torch=truth["allocated"])
    harness.score.number("kill -9", "allocations until the kill", framework["alloc_count"], torch=truth["count"])
    harness.expect_equal("live bytes at the kill equal torch's", framework["live_bytes"], truth["allocated"])
    harness.expect_equal("allocations until the kill equal torch's", framework["alloc_count"], truth["count"])
    harness.expect("no record was lost", report["lost_records"] == 0, in_words(report))


def killed_at_random(harness):
    """Training killed at random moments: the trace has at least what the program had counted. The processes are forked off one that has torch loaded."""
    program = harness.root / "testdata" / "train" / "zygote.py"
    chance = random.Random(SEED)
    counted, missing, wrong = [], [], []
    with open(harness.folder / "zygote.log", "w") as log:
        zygote = harness.start([sys.executable, program], harness.folder / "random.%p.bin", stdin=subprocess.PIPE, stderr=log)
        try:
            for number in range(MOMENTS):
                count = harness.folder / f"counted.{number}"
                count.write_bytes(bytes(8))
                pid = _one_death(harness, zygote, count, chance.uniform(0, 0.7))
                told = struct.unpack("<Q", count.read_bytes())[0]
                _compare(harness, pid, told, counted, missing, wrong)
        finally:
            harness.end(zygote)
    harness.expect(f"{len(counted)} of {MOMENTS} kills: at least what the program counted is in the report", len(counted) == MOMENTS and not missing,
                   "; ".join(missing) or f"counted {min(counted, default=0)} to {max(counted, default=0)} allocations")
    harness.expect("each report says that its run was killed and lost nothing", not wrong, "; ".join(wrong))


def _compare(harness, pid, told, counted, missing, wrong):
    report = harness.report(harness.folder / f"random.{pid}.bin")
    counted.append(told)
    if report["framework"]["alloc_count"] < told:
        missing.append(f"pid {pid}: {report['framework']['alloc_count']} of {told}")
    if report["process"]["ended"] != "killed" or report["lost_records"]:
        wrong.append(f"pid {pid}: {report['process']['ended']}, {in_words(report)}")


def _one_death(harness, zygote, count, delay):
    """Has a child forked and kills it `delay` seconds after its first count; returns its pid."""
    zygote.stdin.write(f"{count}\n")
    zygote.stdin.flush()
    pid = int(harness.line(zygote, "zygote.py"))
    try:
        deadline = time.monotonic() + min(60, harness.seconds_left())
        while count.read_bytes() == bytes(8):
            if time.monotonic() > deadline:
                raise Unmet("the training did not count an allocation within 60 s; see zygote.log")
            time.sleep(0.02)
        time.sleep(delay)
    finally:
        os.kill(pid, signal.SIGKILL)
    harness.line(zygote, "zygote.py")
    return pid
