# SPDX-License-Identifier: Apache-2.0
"""The package with the real library, on a driver of five functions: tags reach the trace. Needs a build (`make`), skips without one."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import PYTHON_FOLDER, run_program

BUILD = Path(os.environ.get("MEMTRACE_TEST_BUILD", PYTHON_FOLDER.parent / "build"))
LIBRARY, COMMAND = BUILD / "libmemtrace.so", BUILD / "memtrace"

pytestmark = pytest.mark.skipif(not (LIBRARY.exists() and COMMAND.exists()), reason=f"no build in {BUILD}")

DRIVER = """
#include <stdint.h>
#include <stdlib.h>
int cuInit(unsigned flags) { (void)flags; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuCtxGetDevice(int *device) { *device = 0; return 0; }
int cuMemAlloc_v2(uint64_t *out, size_t size) { *out = (uint64_t)aligned_alloc(512, (size + 511) / 512 * 512); return *out ? 0 : 2; }
int cuMemFree_v2(uint64_t address) { free((void *)address); return 0; }
"""

ALLOCATE = """
import ctypes, os, threading
driver = ctypes.CDLL(os.environ["TEST_DRIVER"])
def allocate(size):
    address = ctypes.c_uint64()
    assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
"""


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.c").write_text(DRIVER)
    library = folder / "libcuda.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(library), str(folder / "driver.c")], check=True)
    return library


def record(program, driver, tmp_path):
    """Runs a program under the library and returns the text forms of the traces that it left."""
    run_program(ALLOCATE + program, tmp_path, LIBRARY, {"MEMTRACE_OUTPUT": str(tmp_path / "%p.bin"), "TEST_DRIVER": str(driver)})
    return [subprocess.run([str(COMMAND), "dump", str(trace)], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
            for trace in sorted(tmp_path.glob("*.bin"))]


def tags_by_size(text):
    """The tag path of each allocation in a trace's text form, by the allocation's size."""
    names = dict(re.findall(r'^string id=(\d+) value="(.*)"$', text, re.M))
    tags = {}
    for line in re.findall(r"^alloc .*$", text, re.M):
        tag = re.search(r" tag=(\d+)", line)
        tags[int(re.search(r" size=(\d+)", line).group(1))] = names[tag.group(1)] if tag else ""
    return tags


def test_tags_reach_the_trace(driver, tmp_path):
    traces = record("""
with memtrace.tag("a"):
    allocate(1)
    with memtrace.tag("b.c"): allocate(2)
    allocate(3)
    thread = threading.Thread(target=lambda: [allocate(4), memtrace.tag("t").__enter__(), allocate(5)])
    thread.start(); thread.join()
allocate(6)
""", driver, tmp_path)
    assert [tags_by_size(text) for text in traces] == [{1: "a", 2: "a.b.c", 3: "a", 4: "", 5: "t", 6: ""}]


def test_tag_pushed_before_the_first_cuda_call(driver, tmp_path):
    """A thread that held a tag when recording began had state but no ring yet, and its first event crashed."""
    traces = record("""
with memtrace.tag("early"), memtrace.tag("earlier"):
    allocate(1)
allocate(2)
""", driver, tmp_path)
    assert [tags_by_size(text) for text in traces] == [{1: "early.earlier", 2: ""}]


def test_tagged_thread_ends_before_the_first_cuda_call(driver, tmp_path):
    """The end of such a thread retired a ring that it did not have."""
    traces = record("""
def work():
    with memtrace.tag("never"): pass
thread = threading.Thread(target=work)
thread.start(); thread.join()
""", driver, tmp_path)
    assert traces == [], "a process without a CUDA call left a trace"


def test_moments_reach_the_trace(driver, tmp_path):
    (text,) = record("""
memtrace.mark("before the first call")
allocate(1)
memtrace.step(); memtrace.step(7); memtrace.epoch(3); memtrace.mark("loaded")
""", driver, tmp_path)
    kinds = [(kind, re.search(r"count=(\d+)", rest)) for kind, rest in re.findall(r"^(step|epoch|mark) (.*)$", text, re.M)]
    assert [(kind, int(count.group(1)) if count else 0) for kind, count in kinds] == [("mark", 0), ("step", 0), ("step", 7), ("epoch", 3), ("mark", 0)]
    assert re.findall(r'^string id=\d+ value="(.*)"$', text, re.M) == ["before the first call", "loaded"]


def test_early_moments_are_bounded(driver, tmp_path):
    """Of what was said before the first CUDA call the latest is kept, in its order, by each of the processes that record."""
    traces = record("""
for i in range(100): memtrace.step()
memtrace.mark("loaded")
child = os.fork()
if child == 0:
    memtrace.mark("child")
    allocate(1)
    os._exit(0)
os.waitpid(child, 0)
allocate(1)
memtrace.mark("after")
""", driver, tmp_path)
    assert len(traces) == 2
    for text, marks in zip(sorted(traces, key=lambda text: "child" in text), (["loaded", "after"], ["loaded", "child"])):
        steps = [int(n) for n in re.findall(r"^step .*count=(\d+)", text, re.M)]
        assert steps == list(range(100 - (64 - marks.count("loaded") - marks.count("child")), 100))
        names = dict(re.findall(r'^string id=(\d+) value="(.*)"$', text, re.M))
        assert [names[i] for i in re.findall(r"^mark .*name=(\d+)", text, re.M)] == marks


def test_forked_child_keeps_its_tags(driver, tmp_path):
    """The child has a trace of its own; its blocks carry the tags that were open at the fork."""
    traces = record("""
with memtrace.tag("parent"):
    allocate(1)
    child = os.fork()
    if child == 0:
        with memtrace.tag("child"): allocate(2)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
""", driver, tmp_path)
    assert sorted(sorted(tags_by_size(text).items()) for text in traces) == [[(1, "parent")], [(2, "parent.child")]]
