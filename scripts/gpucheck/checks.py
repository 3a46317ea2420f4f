# SPDX-License-Identifier: Apache-2.0
"""The checks, in the order in which they run. Each takes a Harness, scores its claims and cleans up what it started."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

from harness import Skipped, Unmet, device, rows

MIB = 1 << 20


def quiet(harness):
    """A process that makes no CUDA call is left as it is, also where every symbol is bound at start."""
    status = ["grep", "-E", "^(Threads|SigCgt|SigBlk|SigIgn)", "/proc/self/status"]
    plain = harness.run(status)
    for binding in ({}, {"LD_BIND_NOW": "1"}):
        trace = harness.folder / "quiet.bin"
        traced = harness.run(status, trace, **binding)
        suffix = " under LD_BIND_NOW=1" if binding else ""
        harness.expect("threads and signal dispositions are untouched" + suffix, traced.stdout == plain.stdout and traced.returncode == 0,
                       traced.stderr.strip()[-200:])
        harness.expect("nothing is printed and no file is left" + suffix, traced.stderr == plain.stderr and not trace.exists())


def _train_command(harness, steps, stats=None):
    program = harness.root / "testdata" / "train" / "gpt2.py"
    if not program.exists():
        raise Unmet(f"{program} is missing")
    command = [sys.executable, program, "--steps", str(steps)]
    return command + ["--memory-stats", str(stats)] if stats else command


def _torch_counters(path):
    """The counters of torch.cuda.memory_stats() for device 0, wherever the program put them in the file."""
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
    finished = harness.run(_train_command(harness, 6, stats), trace if traced else None, **variables)
    if finished.returncode != 0:
        raise Unmet(f"gpt2.py ended with status {finished.returncode}: {finished.stderr.strip()[-600:]}")
    return finished, _torch_counters(stats), trace


def _compare_with_torch(harness, report, counters):
    """torch's own counters are the oracle: every number to the byte."""
    whole, moment = device(report["devices"]), device(report["at"]["devices"])
    for claim, ours, theirs in (
        ("peak of the framework's blocks", whole["framework"]["peak_bytes"], counters["allocated_bytes.all.peak"]),
        ("live bytes at the mark", moment["framework"]["live_bytes"], counters["allocated_bytes.all.current"]),
        ("number of allocations", whole["framework"]["alloc_count"], counters["allocation.all.allocated"]),
        ("bytes allocated in total", whole["framework"]["alloc_bytes"], counters["allocated_bytes.all.allocated"]),
        ("reserved bytes at the mark", moment["reserved_bytes"], counters["reserved_bytes.all.current"]),
        ("peak of reserved bytes", whole["reserved_bytes_peak"], counters["reserved_bytes.all.peak"]),
    ):
        harness.expect_equal(f"{claim} equals torch's", ours, theirs)
    health = report["health"]
    harness.expect("no record was lost, cut or out of order", report["lost_records"] == 0 and not health["truncated"]
                   and health["sequence_gaps"] == 0 and health["unmatched_frees"] == 0, _health_in_words(report))
    harness.expect("the blocks agree with the framework's own count at every event", health["allocated_mismatches"] == 0,
                   f"{health['allocated_mismatches']} mismatches")
    harness.expect("the segments agree with the framework's own count at every event", health["reserved_mismatches"] == 0,
                   f"{health['reserved_mismatches']} mismatches, counted from {health['reserved_from']}")
    harness.expect_equal("the run is known to have ended by itself", report["process"]["ended"], "clean")


def _health_in_words(report):
    interesting = {key: value for key, value in report["health"].items() if value and key not in ("complete", "bytes_read", "events", "reserved_from")}
    return f"{report['health']['events']} events, lost {report['lost_records']}" + (f", {interesting}" if interesting else "")


def train(harness):
    """A training run is the same with and without the library, and memtrace's numbers are torch's."""
    plain, plain_counters, _ = _train(harness, "train-plain", traced=False)
    traced, counters, trace = _train(harness, "train", traced=True)
    harness.expect_equal("exit status with and without the library", traced.returncode, plain.returncode)
    harness.expect_equal("torch's own peak with and without the library", counters["allocated_bytes.all.peak"],
                         plain_counters["allocated_bytes.all.peak"])
    report = harness.report(trace, "--at", "mark:stats")
    _compare_with_torch(harness, report, counters)
    events = report["health"]["events"]
    harness.note(f"{events} events, {trace.stat().st_size / max(events, 1):.1f} bytes each on disk")
    _text_report_opens(harness, trace)


def _text_report_opens(harness, trace):
    finished = subprocess.run([str(harness.command), "report", "--width", "100", str(trace)], stdout=subprocess.PIPE, universal_newlines=True)
    harness.expect("the text report is written", finished.returncode == 0 and len(finished.stdout.splitlines()) > 10)
    (harness.folder / "report.txt").write_text(finished.stdout)


def train_bind_now(harness):
    """The same with every symbol bound at start."""
    _, counters, trace = _train(harness, "bind-now", traced=True, LD_BIND_NOW="1")
    report = harness.report(trace, "--at", "mark:stats")
    harness.expect_equal("peak of the framework's blocks equals torch's", device(report["devices"])["framework"]["peak_bytes"],
                         counters["allocated_bytes.all.peak"])


def train_expandable(harness):
    """torch's allocator over virtual memory management."""
    setting = "expandable_segments:True"
    _, counters, trace = _train(harness, "expandable", traced=True, PYTORCH_CUDA_ALLOC_CONF=setting, PYTORCH_ALLOC_CONF=setting)
    _compare_with_torch(harness, harness.report(trace, "--at", "mark:stats"), counters)


def train_async(harness):
    """torch over the driver's own pools: torch reports no blocks then, so the driver level has to tell."""
    setting = "backend:cudaMallocAsync"
    _, counters, trace = _train(harness, "async", traced=True, PYTORCH_CUDA_ALLOC_CONF=setting, PYTORCH_ALLOC_CONF=setting)
    report = harness.report(trace, "--at", "mark:stats")
    ours, theirs = device(report["devices"])["driver"]["peak_bytes"], counters["allocated_bytes.all.peak"]
    # The pool rounds sizes up and counts its own rounding; the program's requests lie a little below that.
    harness.expect("driver peak is the pool's used peak, less its rounding", 0.9 * theirs <= ours <= 1.02 * theirs,
                   f"memtrace {ours}, torch {theirs}, ratio {ours / max(theirs, 1):.4f}")
    harness.expect("the report says why there are no framework blocks", any("cudaMallocAsync" in note for note in report["notes"]),
                   " / ".join(report["notes"])[:200])
    harness.expect("no record was lost", report["lost_records"] == 0, _health_in_words(report))


def killed_by_itself(harness):
    """A process that dies by SIGKILL right after an allocation: every committed record is in the report."""
    trace = harness.folder / "killed.bin"
    truth = harness.run_python("die.py", trace=trace, status=-signal.SIGKILL)
    report = harness.report(trace)
    harness.expect_equal("the report says that the run was killed", report["process"]["ended"], "killed")
    framework = device(report["devices"])["framework"]
    harness.expect_equal("live bytes at the kill equal torch's", framework["live_bytes"], truth["allocated"])
    harness.expect_equal("allocations until the kill equal torch's", framework["alloc_count"], truth["count"])
    harness.expect("no record was lost", report["lost_records"] == 0, _health_in_words(report))


def killed_from_outside(harness):
    """kill -9 in the middle of training."""
    trace = harness.folder / "shot.bin"
    guest = harness.start(_train_command(harness, 100000), trace)
    try:
        began = time.monotonic()
        while time.monotonic() - began < 60 and guest.poll() is None and not _has_spool(trace):
            time.sleep(0.2)
        time.sleep(8)
        if guest.poll() is not None:
            raise Unmet(f"gpt2.py ended with status {guest.returncode} before it could be killed")
    finally:
        guest.kill()
        guest.wait()
    report = harness.report(trace)
    framework = report["framework"]
    harness.expect_equal("the report says that the run was killed", report["process"]["ended"], "killed")
    harness.expect("the training is in it", framework["alloc_count"] > 1000 and framework["peak_bytes"] > 400 * MIB,
                   f"{framework['alloc_count']} allocations, peak {framework['peak_bytes']} bytes")
    harness.expect("no record was lost", report["lost_records"] == 0, _health_in_words(report))


def _has_spool(trace):
    return os.path.exists(f"{trace}.spool") and trace.exists()


def tags(harness):
    """Memory taken under a Python tag is reported under it, on both levels, and exit statuses pass through."""
    trace = harness.folder / "tags.bin"
    truth = harness.run_python("tagged.py", trace=trace, status=7)
    report = harness.report(trace, "--by", "tag")
    framework, driver = rows(report, "tag", "framework"), rows(report, "tag", "driver")
    for tag, size in truth.items():
        harness.expect_equal(f"framework bytes under {tag}", framework.get(tag, {}).get("peak_bytes"), size)
        harness.expect_equal(f"driver bytes under {tag}", driver.get(tag, {}).get("peak_bytes"), size)


def out_of_memory(harness):
    """torch raises its usual error, and the report has the failed request."""
    trace = harness.folder / "oom.bin"
    harness.run_python("exhaust.py", trace=trace)
    report = harness.report(trace)
    harness.expect("the failure of torch's allocator is in the report", report["oom"]["count"] >= 1, f"{report['oom']['count']} events")
    harness.expect("refused driver calls are counted", report["driver"]["failed_count"] >= 1, f"{report['driver']['failed_count']} calls")


def cuda_program(harness):
    """A CUDA C++ program with the runtime linked statically, nvcc's default: every kind of memory, to the byte."""
    nvcc = shutil.which("nvcc") or (os.access("/usr/local/cuda/bin/nvcc", os.X_OK) and "/usr/local/cuda/bin/nvcc")
    if not nvcc:
        raise Skipped("nvcc is not installed")
    for linking in ("static", "shared"):
        program, trace = harness.folder / f"kinds-{linking}", harness.folder / f"kinds-{linking}.bin"
        built = harness.run([nvcc, "-std=c++17", "-cudart", linking, "-I", harness.root / "cshim" / "include", harness.guests / "kinds.cu", "-o", program])
        if built.returncode != 0:
            raise Unmet(f"nvcc failed: {built.stderr.strip()[-600:]}")
        plain = harness.run([program])
        if plain.returncode != 0:
            harness.note(f"the program with the {linking} runtime does not start here without memtrace either: {plain.stderr.strip()[-200:]}")
            continue
        traced = harness.run([program], trace)
        harness.expect_equal(f"exit status and output, {linking} runtime", (traced.returncode, traced.stdout, traced.stderr),
                             (0, plain.stdout, plain.stderr))
        _compare_kinds(harness, harness.report(trace, "--by", "tag"), json.loads(plain.stdout), linking)


def _compare_kinds(harness, report, truth, linking):
    driver = device(report["devices"])["driver"]
    harness.expect_equal(f"driver peak, {linking} runtime", driver["peak_bytes"], truth["driver"])
    harness.expect_equal(f"driver allocations, {linking} runtime", driver["alloc_count"], truth["driver_count"])
    harness.expect_equal(f"driver bytes live at exit, {linking} runtime", driver["live_bytes"], 0)
    for kind in ("managed", "host"):
        harness.expect_equal(f"{kind} peak, {linking} runtime", report["other_memory"].get(kind, {}).get("peak_bytes"), truth[kind])
    harness.expect_equal(f"driver bytes under a C++ tag, {linking} runtime", rows(report, "tag", "driver").get("kinds.vmm", {}).get("peak_bytes"),
                         truth["vmm"])


def remainder(harness):
    """What the device counts beyond the driver level: context, code, the driver's own. A number to print, with sane bounds."""
    trace = harness.folder / "remainder.bin"
    truth = harness.run_python("device_view.py", trace=trace)
    moment = device(harness.report(trace, "--at", "mark:view")["at"]["devices"])
    used, tracked = truth["used"] - truth["used_before"], moment["driver"]["live_bytes"]
    rest = used - tracked
    harness.note(f"device used {used / MIB:.1f} MiB = driver level {tracked / MIB:.1f} MiB + remainder {rest / MIB:.1f} MiB")
    harness.expect("the remainder is not negative and below 2 GiB", 0 <= rest < 2048 * MIB, f"{rest} bytes")


def step_time(harness):
    """Step time with the library against without, interleaved; ratios, since absolute times belong to the machine."""
    sizes, rounds = ("small", "large"), 3
    times = {(size, traced): [] for size in sizes for traced in (False, True)}
    for number in range(rounds):
        for traced in (False, True):
            result = harness.run_python("steps.py", trace=harness.folder / f"steps-{number}.bin" if traced else None)
            for size in sizes:
                times[size, traced].append(result[size])
    for size in sizes:
        plain, traced = min(times[size, False]), min(times[size, True])
        spread = max(times[size, False]) / plain
        harness.note(f"{size} step: plain {plain * 1e3:.2f} ms (spread {spread:.2f}), traced {traced * 1e3:.2f} ms")
        harness.expect(f"the {size} step takes at most 1.05 times as long", traced <= 1.05 * plain, f"ratio {traced / plain:.3f}")


def cupy(harness):
    """CuPy loads the runtime itself and has a pool of its own."""
    if not harness.has_module("cupy"):
        raise Skipped("CuPy is not installed")
    trace = harness.folder / "cupy.bin"
    truth = harness.run_python("cupy_pool.py", trace=trace)
    moment = harness.report(trace, "--at", "mark:pool")["at"]
    harness.expect("the driver level holds at least what CuPy's pool holds", moment["driver"]["live_bytes"] >= truth["pool"],
                   f"driver {moment['driver']['live_bytes']}, pool {truth['pool']}")


def jax(harness):
    """JAX reaches the driver by dlopen and dlsym and takes its memory in one piece."""
    if not harness.has_module("jax"):
        raise Skipped("JAX is not installed")
    trace = harness.folder / "jax.bin"
    truth = harness.run_python("jax_pool.py", trace=trace, XLA_PYTHON_CLIENT_MEM_FRACTION="0.25")
    moment = harness.report(trace, "--at", "mark:pool")["at"]
    harness.expect("the driver level holds at least what JAX's pool may use", moment["driver"]["live_bytes"] >= truth["pool"],
                   f"driver {moment['driver']['live_bytes']}, pool {truth['pool']}")


ALL = {check.__name__: check for check in (quiet, train, train_bind_now, train_expandable, train_async, killed_by_itself, killed_from_outside, tags,
                                           out_of_memory, cuda_program, remainder, cupy, jax, step_time)}
