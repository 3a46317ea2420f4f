"""Runs GPT-2's training into a device that is too small for it, or, with
--recover, only nearly.

At the moment at which PyTorch gives up it writes its own account: the cached
memory as torch.cuda.memory_snapshot() has it, and the live bytes by tag, which
come from PyTorch's history of allocations and from the `with` blocks that the
program was in. Nothing of it comes from what is being tested.
"""
import contextlib
import json
import pathlib
import sys

import torch

import gpt2
import oracle

tagged = oracle.tag
stack, changes = [], []


def history():
    return torch.cuda.memory._snapshot()["device_traces"][0]


@contextlib.contextmanager
def tag(name):
    """oracle.tag, noting at which length of the history the tag changed."""
    with tagged(name):
        stack.append(name)
        changes.append((len(history()), ".".join(stack)))
        try:
            yield
        finally:
            changes.append((len(history()), ".".join(stack[:-1])))
            stack.pop()


def live_by_tag(entries, sizes):
    """The history has what was asked for, the snapshot the blocks that were given for it: {address: bytes}."""
    live, at, name = {}, 0, ""
    for i, entry in enumerate(entries):
        while at < len(changes) and changes[at][0] <= i:
            name = changes[at][1]
            at += 1
        if entry["action"] == "alloc":
            live[entry["addr"]] = name
        elif entry["action"] == "free_requested":
            del live[entry["addr"]]
    sums = {}
    for address, name in live.items():
        sums[name] = sums.get(name, 0) + sizes[address]
    return sums


def account(path):
    """Writes PyTorch's account as JSON."""
    segments = torch.cuda.memory_snapshot()
    free = [b["size"] for s in segments for b in s["blocks"] if b["state"] == "inactive"]
    idle = [s["total_size"] for s in segments if all(b["state"] == "inactive" for b in s["blocks"])]
    sizes = {b["address"]: b["size"] for s in segments for b in s["blocks"] if b["state"] == "active_allocated"}
    path.write_text(json.dumps({
        "reserved": sum(s["total_size"] for s in segments), "allocated": sum(sizes.values()), "free": sum(free), "pieces": len(free), "largest": max(free, default=0),
        "whole": sum(idle), "tags": live_by_tag(history(), sizes),
    }) + "\n")


def recover():
    """Asks for more than is free, but not for more than the cache can give back; two times."""
    for _ in range(2):
        oracle.step()
        held = torch.empty(400 << 20, dtype=torch.uint8, device="cuda")
        del held
        large = torch.empty(800 << 20, dtype=torch.uint8, device="cuda")
        del large
        torch.cuda.empty_cache()
    print("went on")


def main():
    if "--recover" in sys.argv:
        recover()
        return
    path = pathlib.Path(sys.argv.pop(1))
    torch.cuda.memory._record_memory_history(context=None, max_entries=1 << 20)
    torch._C._cuda_attach_out_of_memory_observer(lambda *_: account(path))
    oracle.tag = tag
    gpt2.main()


if __name__ == "__main__":
    main()
