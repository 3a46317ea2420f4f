# SPDX-License-Identifier: Apache-2.0
"""The driver's interface without any framework: every kind of memory, contexts that end, graphs that allocate."""

import json
import os
import shutil

from harness import Skipped, Unmet, device, rows


def kinds(harness):
    """A known amount of every kind of memory, through ctypes, each under a tag of its own: to the byte."""
    trace = harness.folder / "kinds.bin"
    truth = harness.run_python("kinds.py", trace=trace)
    report = harness.report(trace, "--by", "tag", "--at", "mark:freed")
    driver, other = rows(report, "tag", "driver"), report["other_memory"]
    for tag, size in truth["driver"].items():
        # Rows are as of the level's peak, which only some kinds are part of; the sum over all allocations is each kind's own.
        harness.expect_equal(f"driver bytes allocated under {tag}", driver.get(tag, {}).get("alloc_bytes"), size)
    for kind, size in truth["other"].items():
        harness.expect_equal(f"{kind} memory, shown apart", other.get(kind, {}).get("alloc_bytes"), size)
    harness.expect_equal("driver bytes live once all is given back", report["at"]["driver"]["live_bytes"], 0)
    harness.expect_equal("bytes of other memory live at the end", sum(level["live_bytes"] for level in other.values()), 0)
    harness.expect_equal("refused frees", report["health"]["failed_frees"], 0)
    harness.expect_sound(report)


def contexts(harness):
    """Contexts destroyed, and the primary one reset, with live memory: the memory is gone, and counted as freed implicitly."""
    trace = harness.folder / "contexts.bin"
    truth = harness.run_python("contexts.py", trace=trace)
    report = harness.report(trace)
    for account, expected in truth["implicit"].items():
        found = report["implicit_frees"].get(account, {})
        harness.expect_equal(f"{account} blocks that ended with their context", found.get("count"), expected["count"])
        harness.expect_equal(f"{account} bytes that ended with their context", found.get("bytes"), expected["bytes"])
    harness.expect_equal("driver bytes live at the end", report["driver"]["live_bytes"], 0)
    harness.expect_equal("peak of driver bytes", report["driver"]["peak_bytes"], truth["peak"])
    harness.expect_equal("contexts alive at the end", report["objects"].get("context", {}).get("live_count"), 0)
    harness.expect_sound(report)
    freed, held = truth["free_after"], truth["free_held"]
    harness.expect("the device had the memory back", freed > held, f"{freed - held} bytes")


def graph_nodes(harness):
    """cuGraphAddMemAllocNode: bytes asked for by nodes, and the graph pool that the device holds for them."""
    trace = harness.folder / "graph-nodes.bin"
    truth = harness.run_python("graph_nodes.py", trace=trace)
    report = harness.report(trace)
    graph = report["other_memory"].get("graph", {})
    harness.expect_equal("allocation nodes", graph.get("alloc_count"), truth["count"])
    harness.expect_equal("bytes that the nodes ask for", graph.get("alloc_bytes"), truth["bytes"])
    harness.expect_equal("bytes of nodes not freed by the graph", graph.get("live_bytes"), truth["live"])
    harness.expect_equal("launches", report["graph_launches"], truth["launches"])
    pool = device(report["devices"])["sizes"]["at_end"]["graph_pool_bytes"]
    harness.expect_equal("graph pool, as the driver has it", pool, truth["reserved"])
    harness.expect_sound(report)


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
