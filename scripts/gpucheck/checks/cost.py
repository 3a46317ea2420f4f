# SPDX-License-Identifier: Apache-2.0
"""What the library costs: pairs of runs with and without it, the order alternating, since a machine is not the same a minute later."""

import sys
import time

from harness import Unmet

NO_TIMES = "kernels do nothing here, so a step is all host"
BUSY = "times of a machine without a GPU, which does other work besides, decide nothing"


def _pairs(harness, most, seconds, measure):
    """Calls measure(traced, number) for up to `most` pairs, as many as fit into the seconds (at least two); returns the results without and with the library."""
    plain, traced = [], []
    deadline = time.monotonic() + min(seconds, harness.seconds_left() - 5)
    for number in range(most):
        began = time.monotonic()
        for which in ((False, True) if number % 2 == 0 else (True, False)):
            (traced if which else plain).append(measure(which, number))
        if number >= 1 and time.monotonic() + (time.monotonic() - began) > deadline:
            break
    return plain, traced


def _timed(harness, argv, trace):
    began = time.perf_counter()
    finished = harness.run(argv, trace)
    if finished.returncode != 0:
        raise Unmet(f"{argv[0]} ended with status {finished.returncode}: {finished.stderr.strip()[-300:]}")
    return (time.perf_counter() - began) * 1e3


def start_cost(harness):
    """Processes from start to end: one that makes no CUDA call, and one that makes a context, allocates once and ends."""
    for what, argv, most in (("process without CUDA", ["true"], 40), ("process with one CUDA allocation", [sys.executable, harness.guests / "start.py"], 12)):
        plain, traced = _pairs(harness, most, 30, lambda traced, number, argv=argv: _timed(harness, argv, harness.folder / "start.bin" if traced else None))
        row = harness.score.cost(f"{what}, start to end", "ms", plain, traced, ratio=False)
        harness.note(f"{what}: {row['compared']['median']:+.2f} ms")
        if argv == ["true"]:
            harness.expect_hardware(f"{what}: at most 0.2 ms more", row["compared"]["median"] <= 0.2, f"{row['compared']['median']:+.2f} ms", BUSY)


def event_cost(harness):
    """A block of torch's taken and given back, which the driver never hears of; and the same from the driver."""
    results = {}

    def measure(traced, number):
        return harness.run_python("events.py", trace=harness.folder / "events.bin" if traced else None)

    plain, traced = _pairs(harness, 5, 60, measure)
    for key, what, unit in (("framework", "torch.empty and its free, cached", "ns"), ("driver", "cuMemAlloc and cuMemFree of 2 MiB", "us")):
        results[key] = harness.score.cost(what, unit, [one[key] for one in plain], [one[key] for one in traced], ratio=False)
        harness.note(f"{what}: {results[key]['compared']['median']:+.1f} {unit} for two events")
    harness.expect_hardware("a framework event costs at most 300 ns", results["framework"]["compared"]["median"] <= 600,
                            f"{results['framework']['compared']['median'] / 2:.0f} ns", BUSY)


def step_cost(harness):
    """Training steps of GPT-2 small: short ones, which the CPU bounds (they allocate all the time and compute little), and long ones, which the GPU bounds."""
    plain, traced = _pairs(harness, 10, max(60, harness.seconds_left() - 60), lambda traced, number: harness.run_python(
        "steps.py", "20" if harness.null_gpu else "60", trace=harness.folder / "steps.bin" if traced else None))
    for key, what in (("short", "GPT-2 small, training step of 64 tokens"), ("long", "GPT-2 small, training step of 2048 tokens")):
        row = harness.score.cost(what, "ms", [one[key] * 1e3 for one in plain], [one[key] * 1e3 for one in traced])
        ratio = row["compared"]
        harness.expect_hardware(f"{what}: at most 1.05 times as long", ratio["median"] <= 1.05,
                                f"ratio {ratio['median']:.3f} ({ratio['q1']:.3f} to {ratio['q3']:.3f}), {row['pairs']} pairs", NO_TIMES)
