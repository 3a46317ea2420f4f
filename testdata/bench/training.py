"""Runs testdata/train/gpt2.py under one way of recording its memory and prints one JSON line about it.

    training.py plain|python|all STEPS SNAPSHOT

`plain` is also what runs under memtrace and other tools: they come from outside. `python` and `all` are PyTorch's own memory history, with Python stacks or
all stacks, dumped to SNAPSHOT at the end.

BENCH_TURNS=READ,WRITE,STEPS, two pipes' descriptors, makes it train by turns with other processes: after so many steps it says so and waits for a word.
"""
import contextlib
import ctypes
import io
import json
import os
import pathlib
import re
import runpy
import statistics
import sys
import time

import drainer

MODE, STEPS, SNAPSHOT = sys.argv[1], int(sys.argv[2]), sys.argv[3]
SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "train" / "gpt2.py"
WARM_UP = 3  # steps in which the caching allocator still grows, and every stack is new


class Turns:
    """The time of each turn, in milliseconds a step, without the turn's first step, which finds the caches as the others left them."""

    def __init__(self):
        given = os.environ.get("BENCH_TURNS")
        self.read, self.write, self.length = map(int, given.split(",")) if given else (0, 0, 0)
        self.step, self.wall_ms, self.cpu_ms, self.began = -WARM_UP, [], [], None

    def __call__(self):
        at = self.step % self.length if self.length and self.step >= 0 else None
        self.step += 1
        if at == 0:
            self.wait()
        elif at == 1:
            self.began = time.perf_counter(), time.process_time()

    def wait(self):
        ended = time.perf_counter(), time.process_time()
        if self.began:
            for values, end, begin in zip((self.wall_ms, self.cpu_ms), ended, self.began):
                values.append((end - begin) * 1e3 / (self.length - 1))
        os.write(self.write, b"!")
        os.read(self.read, 1)


class Clock:
    """Takes the time at the beginning of every step, in place of the program's own mark, which it passes on."""

    def __init__(self, oracle):
        self.wall, self.busy, self.mark, self.turns = [], [], oracle.step, Turns()
        self.probe = getattr(ctypes.CDLL(None), "bench_step", lambda: None)

    def __call__(self):
        self.wall.append(time.perf_counter())
        self.busy.append(time.process_time())
        self.turns()
        self.probe()
        self.mark()

    def steps(self):
        """Milliseconds of the steps after the first ones, whole steps only: (wall of each, processor time of each)."""
        return [[(after - before) * 1e3 for before, after in zip(times[WARM_UP:], times[WARM_UP + 1:])] for times in (self.wall, self.busy)]


def resident():
    """Bytes of memory that are resident: in the library's own mappings, with what it keeps right behind them, and in the spool; the process's anonymous memory; the
    spool's room on disk."""
    found, spool, owner = {"library_rss": 0, "spool_rss": 0, "anonymous": 0, "spool_disk": 0}, None, None
    for line in pathlib.Path("/proc/self/smaps").read_text().splitlines():
        head = re.match(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+\s*(.*)", line)
        if head:
            follows = owner == "library_rss" and not head[1]  # zeroed data has no name
            owner = "spool_rss" if ".spool" in head[1] else "library_rss" if "libmemtrace" in head[1] or follows else None
            spool = head[1] if owner == "spool_rss" else spool
        name, size = line.split()[:2]
        if name == "Rss:" and owner:
            found[owner] += int(size) * 1024
        elif name == "Anonymous:":
            found["anonymous"] += int(size) * 1024
    if spool:
        with contextlib.suppress(OSError):
            found["spool_disk"] = os.stat(spool).st_blocks * 512
    return found


def snapshot(torch):
    """Writes what the history holds; seconds, bytes and entries of it."""
    entries = sum(len(trace) for trace in torch.cuda.memory._snapshot()["device_traces"])
    begin = time.monotonic()
    torch.cuda.memory._dump_snapshot(SNAPSHOT)
    return {"dump_s": time.monotonic() - begin, "bytes": os.path.getsize(SNAPSHOT), "events": entries}


def main():
    import torch
    if MODE != "plain":
        torch.cuda.memory._record_memory_history(stacks=MODE, max_entries=10_000_000)
    sys.path.insert(0, str(SCRIPT.parent))
    import oracle
    oracle.step = clock = Clock(oracle)
    sys.argv = [str(SCRIPT), "--steps", str(STEPS)]
    said, begin, busy = io.StringIO(), time.monotonic(), time.process_time()
    with contextlib.redirect_stdout(said):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    wall_s, cpu_s = time.monotonic() - begin, time.process_time() - busy
    wall, steps_busy = clock.steps()
    peak = int(re.search(r"peak (\d+)", said.getvalue())[1])
    result = {"step_ms": statistics.median(wall), "step_min_ms": min(wall), "step_cpu_ms": statistics.fmean(steps_busy), "peak": peak, "wall_s": wall_s,
              "cpu_s": cpu_s, "drainer_s": drainer.seconds(), **resident()}
    result.update(turn_ms=clock.turns.wall_ms, turn_cpu_ms=clock.turns.cpu_ms)
    if MODE != "plain":
        result.update(snapshot(torch))
    result["ended_ns"] = time.monotonic_ns()
    print(json.dumps(result), flush=True)


main()
