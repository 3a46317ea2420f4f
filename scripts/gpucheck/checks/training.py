# SPDX-License-Identifier: Apache-2.0
"""Training runs: the program is none the wiser, and memtrace's numbers are torch's."""

import json
import re
import subprocess
import sys

from harness import Unmet, device, in_words, rows


def train_command(harness, steps, stats=None):
    """The command line of a GPT-2 training."""
    program = harness.root / "testdata" / "train" / "gpt2.py"
    if not program.exists():
        raise Unmet(f"{program} is missing")
    command = [sys.executable, program, "--steps", str(steps)]
    return command + ["--memory-stats", str(stats)] if stats else command


def compare_with_torch(harness, run, report, counters):
    """torch's own counters are the oracle: every number to the byte. The report must be `--at` the moment of the counters."""
    whole, moment = device(report["devices"]), device(report["at"]["devices"])
    for what, ours, theirs in (
        ("peak of allocated bytes", whole["framework"]["peak_bytes"], counters["allocated_bytes.all.peak"]),
        ("allocated bytes at the end", moment["framework"]["live_bytes"], counters["allocated_bytes.all.current"]),
        ("allocations", whole["framework"]["alloc_count"], counters["allocation.all.allocated"]),
        ("bytes allocated in total", whole["framework"]["alloc_bytes"], counters["allocated_bytes.all.allocated"]),
        ("reserved bytes at the end", moment["reserved_bytes"], counters["reserved_bytes.all.current"]),
        ("peak of reserved bytes", whole["reserved_bytes_peak"], counters["reserved_bytes.all.peak"]),
    ):
        harness.score.number(run, what, ours, torch=theirs)
        harness.expect_equal(f"{what}: memtrace's are torch's", ours, theirs)
    harness.expect_sound(report)
    health = report["health"]
    harness.expect("the blocks agree with the framework's own count at every event", health["allocated_mismatches"] == 0,
                   f"{health['allocated_mismatches']} mismatches")
    harness.expect("the segments agree with the framework's own count at every event", health["reserved_mismatches"] == 0,
                   f"{health['reserved_mismatches']} mismatches, counted from {health['reserved_from']}")
    harness.expect_equal("the run is known to have ended by itself", report["process"]["ended"], "clean")


def _counters(path):
    """torch.cuda.memory_stats() of device 0, wherever the program put it in the file."""
    pending = [json.loads(path.read_text())]
    while pending:
        value = pending.pop(0)
        if isinstance(value, dict) and "allocated_bytes.all.current" in value:
            return value
        if isinstance(value, (dict, list)):
            pending.extend(value.values() if isinstance(value, dict) else value)
    raise Unmet(f"{path.name} holds no torch.cuda.memory_stats()")


def _train(harness, name, traced, **variables):
    """One training run; returns the finished process, torch's counters and the trace."""
    trace, stats = harness.folder / f"{name}.bin", harness.folder / f"{name}.json"
    finished = harness.run(train_command(harness, 6, stats), trace if traced else None, **variables)
    if finished.returncode != 0:
        raise Unmet(f"gpt2.py ended with status {finished.returncode}: {finished.stderr.strip()[-600:]}")
    return finished, _counters(stats), trace


def train(harness):
    """A training run is the same with and without the library, and memtrace's numbers are torch's."""
    plain, plain_counters, _ = _train(harness, "train-plain", traced=False)
    traced, counters, trace = _train(harness, "train", traced=True)
    harness.expect_equal("exit status with and without the library", traced.returncode, plain.returncode)
    said, expected = _without_numbers(traced.stderr), _without_numbers(plain.stderr)
    harness.expect("messages with and without the library are the same, numbers aside", said == expected, "" if said == expected else said[-300:])
    harness.expect_equal("torch's own peak with and without the library", counters["allocated_bytes.all.peak"],
                         plain_counters["allocated_bytes.all.peak"])
    report = harness.report(trace, "--at", "mark:stats")
    compare_with_torch(harness, "training", report, counters)
    events = report["health"]["events"]
    harness.note(f"{events} events, {trace.stat().st_size / max(events, 1):.1f} bytes each on disk")
    _text_report_opens(harness, trace)


def _without_numbers(text):
    """Warnings carry times and addresses."""
    return re.sub(r"0x[0-9a-f]+|\d+", "#", text)


def _text_report_opens(harness, trace):
    finished = subprocess.run([str(harness.command), "report", "--width", "100", str(trace)], stdout=subprocess.PIPE, universal_newlines=True, timeout=60)
    harness.expect("the text report is written", finished.returncode == 0 and len(finished.stdout.splitlines()) > 10)
    (harness.folder / "report.txt").write_text(finished.stdout)


def train_bind_now(harness):
    """The same with every symbol bound at start."""
    _, counters, trace = _train(harness, "bind-now", traced=True, LD_BIND_NOW="1")
    report = harness.report(trace, "--at", "mark:stats")
    harness.expect_equal("peak of allocated bytes: memtrace's is torch's", device(report["devices"])["framework"]["peak_bytes"],
                         counters["allocated_bytes.all.peak"])


def train_expandable(harness):
    """torch's allocator over virtual memory management."""
    setting = "expandable_segments:True"
    _, counters, trace = _train(harness, "expandable", traced=True, PYTORCH_CUDA_ALLOC_CONF=setting, PYTORCH_ALLOC_CONF=setting)
    report = harness.report(trace, "--at", "mark:stats")
    compare_with_torch(harness, "expandable segments", report, counters)
    harness.expect("address space is reserved and shown apart", report["other_memory"].get("address", {}).get("peak_bytes", 0) > 0,
                   f"{report['other_memory'].get('address', {}).get('peak_bytes', 0)} bytes")


def train_async(harness):
    """torch over the driver's own pools: torch reports no blocks then, so the driver level has to tell."""
    setting = "backend:cudaMallocAsync"
    _, counters, trace = _train(harness, "async", traced=True, PYTORCH_CUDA_ALLOC_CONF=setting, PYTORCH_ALLOC_CONF=setting)
    report = harness.report(trace, "--at", "mark:stats", "--by", "api")
    # What cuBLAS takes for itself by cudaMalloc is none of the pool's.
    ours = sum(row["peak_bytes"] for api, row in rows(report, "api", "driver").items() if "Async" in api)
    theirs = counters["allocated_bytes.all.peak"]
    harness.score.number("cudaMallocAsync", "peak of allocated bytes", ours, torch=theirs)
    # Pools differ in whether their count has the rounding of sizes in it; the program's requests lie a little below that.
    harness.expect("the peak of the pool's memory is the pool's own, less its rounding", 0.9 * theirs <= ours <= theirs,
                   f"memtrace {ours}, torch {theirs}, ratio {ours / max(theirs, 1):.4f}")
    harness.expect("the report says why there are no framework blocks", any("cudaMallocAsync" in note for note in report["notes"]),
                   " / ".join(report["notes"])[:200])
    harness.expect("no record was lost", report["lost_records"] == 0, in_words(report))
