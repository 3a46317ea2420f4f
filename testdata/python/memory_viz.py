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
