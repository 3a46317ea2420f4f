# SPDX-License-Identifier: Apache-2.0
"""memtrace.start() with the real library, on a driver of a few functions, in programs that were started without it."""

import re
import subprocess

from conftest import run_program
from test_recorder import ALLOCATE, COMMAND, driver, pytestmark  # noqa: F401 (the fixture, and the skip without a build)

START = """
import warnings
def start(**arguments):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        memtrace.start(**arguments)
    for warning in caught: print(warning.category.__name__, warning.message)
"""
FREE = """
def allocate_and_free(size):
    address = ctypes.c_uint64()
    assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
    assert driver.cuMemFree_v2(address) == 0
"""


def run(program, driver, tmp_path, **environment):  # noqa: F811
    variables = {"MEMTRACE_OUTPUT": str(tmp_path / "%p.bin"), "TEST_DRIVER": str(driver), **environment}
    return run_program(program, tmp_path, None, variables).output


def sizes(tmp_path):
    """The sizes of the allocations in each trace."""
    dumps = [subprocess.run([str(COMMAND), "dump", str(trace)], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout for trace in sorted(tmp_path.glob("*.bin"))]
    return [[int(size) for size in re.findall(r"^alloc .*? size=(\d+)", text, re.M)] for text in dumps]


def test_before_the_driver_is_loaded(driver, tmp_path):  # noqa: F811
    assert run(START + "start()\n" + ALLOCATE + "allocate(1)\nwith memtrace.tag('t'): allocate(2)\nassert memtrace.active()", driver, tmp_path) == ""
    assert sizes(tmp_path) == [[1, 2]]


def test_after_the_driver_was_loaded(driver, tmp_path):  # noqa: F811
    """ctypes looks functions up by dlsym, of which _ctypes has kept the C library's address until then."""
    assert run(ALLOCATE + START + "start()\nallocate(3)", driver, tmp_path) == "RuntimeWarning CUDA was in use before memtrace.start(): what was allocated by then is not recorded\n"
    assert sizes(tmp_path) == [[3]]


def test_again_is_nothing(driver, tmp_path):  # noqa: F811
    assert run(START + "start(); start(output='/other.bin')\n" + ALLOCATE + "allocate(4)\nstart()\nallocate(5)", driver, tmp_path) == ""
    assert sizes(tmp_path) == [[4, 5]]


def test_names_the_trace_and_leaves_the_environment(driver, tmp_path):  # noqa: F811
    output = tmp_path / "named.bin"
    program = START + f"import os\nstart(output={str(output)!r})\n" + ALLOCATE + "allocate(6)\nprint(os.environ['MEMTRACE_OUTPUT'])"
    assert run(program, driver, tmp_path, MEMTRACE_OUTPUT="before") == "before\n"
    assert output.exists()
    assert sizes(tmp_path) == [[6]]


def test_frees_and_forked_children(driver, tmp_path):  # noqa: F811
    program = START + "import os\nstart()\n" + ALLOCATE + FREE + "allocate_and_free(7)\nif os.fork() == 0:\n    allocate(8)\n    os._exit(0)\nos.wait()\n"
    assert run(program, driver, tmp_path) == ""
    assert sorted(sizes(tmp_path)) == [[7], [8]]


def test_refusals(driver, tmp_path):  # noqa: F811
    program = """
try:
    memtrace.start()
except RuntimeError as problem:
    print(problem)
print(memtrace.active())
"""
    assert "MEMTRACE_DISABLE" in run(program, driver, tmp_path, MEMTRACE_DISABLE="1")
    program = """
import memtrace._start
def nowhere(): raise FileNotFoundError("no library")
memtrace._start.library_path = nowhere
try:
    memtrace.start()
except FileNotFoundError as problem:
    print(problem, memtrace.active())
"""
    assert run(program, driver, tmp_path) == "no library False\n"
