"""What the training programs share: their options, and the framework's own
account of its memory, written at the moment that a trace is compared with.

The order at the end of a program is the contract: collect garbage, wait for the
device, read the counters, set the mark "stats", write the file. The caller's
objects stay alive until `finish` returns, so a trace's state at mark:stats is the
state that the counters describe. Python frees memory while it exits; with
--exit-now the process ends at once and the trace's last state is that one, too.
"""
import argparse
import contextlib
import gc
import json
import os
import pathlib
import sys

try:
    import memtrace
except ImportError:
    memtrace = None


def parser(description, steps=3):
    """A parser with the options that every program takes."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--steps", type=positive, default=steps, help="training steps (default %(default)s)")
    made.add_argument("--memory-stats", type=pathlib.Path, metavar="FILE",
                      help="write the framework's memory counters per device as JSON at the end")
    made.add_argument("--exit-now", action="store_true", help="end without freeing anything first")
    return made


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return value


def tag(name):
    """A context in which memory belongs to `name`."""
    return memtrace.tag(name) if memtrace else contextlib.nullcontext()


def step():
    """An iteration begins."""
    if memtrace:
        memtrace.step()


def mark(name):
    """A moment with a name."""
    if memtrace:
        memtrace.mark(name)


def need_devices(count, have):
    """Ends the program with status 2 where there are too few GPUs."""
    if have < count:
        print(f"needs {count} GPUs, found {have}; on the null GPU set NULLCUDA_DEVICES={count}", file=sys.stderr)
        raise SystemExit(2)


def torch_counters():
    """{device: counters} of PyTorch's caching allocator, and what each device reports as free and total."""
    import torch
    counters = {}
    for device in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(device)
        counters[str(device)] = {**torch.cuda.memory_stats(device), "device_free": free, "device_total": total}
    return counters


def synchronize_torch():
    import torch
    for device in range(torch.cuda.device_count()):
        torch.cuda.synchronize(device)


def finish(options, *alive, synchronize=synchronize_torch, counters=torch_counters):
    """Writes the counters as `options` say. Everything in `alive` is still allocated then."""
    gc.collect()
    synchronize()
    values = counters()
    mark("stats")
    if options.memory_stats:
        fresh = options.memory_stats.with_name(f"{options.memory_stats.name}.new")
        fresh.write_text(json.dumps(values, indent=1) + "\n")
        fresh.replace(options.memory_stats)
    if options.exit_now:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    del alive
