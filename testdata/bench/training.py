"""Runs testdata/train/gpt2.py under one way of recording its memory and prints one JSON line about it.

    training.py plain|python|all STEPS SNAPSHOT

`plain` is also what runs under memtrace and memray: they come from outside. `python` and `all` are PyTorch's own memory history, with Python stacks or all
stacks, dumped to SNAPSHOT at the end.
"""
import contextlib
import io
import json
import os
import pathlib
import re
import runpy
import sys
import time

MODE, STEPS, SNAPSHOT = sys.argv[1:]
SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "train" / "gpt2.py"


def drainer_seconds():
    """Processor time of the threads that the library started; they carry its name."""
    total = 0
    for task in pathlib.Path("/proc/self/task").iterdir():
        if (task / "comm").read_text().strip() == "memtrace":
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


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
    sys.argv = [str(SCRIPT), "--steps", STEPS]
    said, begin, busy = io.StringIO(), time.monotonic(), time.process_time()
    with contextlib.redirect_stdout(said):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    found = re.search(r"median ([\d.]+) ms, peak (\d+)", said.getvalue())
    result = {"step_ms": float(found[1]), "peak": int(found[2]), "wall_s": time.monotonic() - begin,
              "cpu_s": time.process_time() - busy, "drainer_s": drainer_seconds()}
    if MODE != "plain":
        result.update(snapshot(torch))
    print(json.dumps(result), flush=True)


main()
