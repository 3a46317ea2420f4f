"""Reads a memory snapshot with PyTorch's own torch/cuda/_memory_viz.py, which needs nothing of PyTorch's compiled code, and prints as JSON what its functions made of it.

    memory_viz.py SITE_PACKAGES FILE
"""
import importlib.util
import json
import os
import pickle
import re
import sys

spec = importlib.util.spec_from_file_location("_memory_viz", os.path.join(sys.argv[1], "torch", "cuda", "_memory_viz.py"))
viz = importlib.util.module_from_spec(spec)
spec.loader.exec_module(viz)
with open(sys.argv[2], "rb") as file:
    snapshot = pickle.load(file)


def added(text, state):
    """Bytes of the folded lines of a state: what was asked for, and in lines of their own what blocks are larger."""
    return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines() if f";{state};" in line and ";<gaps> " not in line)




def cut(pieces, start, end):
    """Takes a range out of the one piece that holds it."""
    (first, last), = [piece for piece in pieces if piece[0] <= start and end <= piece[1]]
    pieces.remove((first, last))
    pieces += [piece for piece in ((first, start), (end, last)) if piece[0] < piece[1]]


def take_back(device, history):
    """What the viewer in the browser does: from the state at the end to any event before it. Each allocation must be there, each segment whole, and each block in one."""
    pieces = [(s["address"], s["address"] + s["total_size"]) for s in snapshot["segments"] if s["device"] == device]
    blocks = {b["address"] for s in snapshot["segments"] if s["device"] == device for b in s["blocks"] if b["state"] == "active_allocated"}
    for entry in reversed(history):
        start, end = entry["addr"], entry["addr"] + entry["size"]
        if entry["action"] in ("segment_alloc", "segment_map"):
            assert not any(start <= block < end for block in blocks), entry
            cut(pieces, start, end)
        elif entry["action"] in ("segment_free", "segment_unmap"):
            assert not any(first < end and start < last for first, last in pieces), entry
            pieces.append((start, end))
            pieces[:] = joined(pieces) if entry["action"] == "segment_unmap" else pieces
        elif entry["action"] == "alloc":
            blocks.remove(start)
        elif entry["action"] == "free_completed":
            assert start not in blocks and any(first <= start and end <= last for first, last in pieces), entry
            blocks.add(start)
    assert not blocks and not pieces, (blocks, pieces)


def joined(pieces):
    """Neighbours as one."""
    whole = []
    for first, last in sorted(pieces):
        if whole and whole[-1][1] == first:
            whole[-1] = (whole[-1][0], last)
        else:
            whole.append((first, last))
    return whole


for number, entries in enumerate(snapshot["device_traces"]):
    take_back(number, entries)
folded, by_line = viz.segments(snapshot, lambda text: text), viz.memory(snapshot, lambda text: text)
assert added(by_line, "active_allocated") == added(folded, "active_allocated")
history = viz.trace(snapshot)
plots = [viz.trace_plot(snapshot), viz.trace_plot(snapshot, plot_segments=True), viz.segment_plot(snapshot)]
assert all("snapshot.pickle" in plot for plot in plots)
json.dump({
    "used": added(folded, "active_allocated"), "idle": sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines() if ";inactive;<gaps> " in line),
    "segments": int(re.search(r"^segments: (\d+)$", viz.segsum(snapshot), re.M)[1]),
    "mallocs": len(re.findall(r" = cudaMalloc\(", history)), "frees": len(re.findall(r"^cudaFree\(", history, re.M)),
    "blocks": len(re.findall(r"^\S+ = \S+\[", history, re.M)), "deleted": len(re.findall(r"^del ", history, re.M)),
    "beside": [segment["total_size"] for segment in snapshot["segments"] if any(block.get("memtrace_driver") for block in segment["blocks"])],
    "lines": [line for line in by_line.splitlines() if "beside.py" in line],
}, sys.stdout)
