# SPDX-License-Identifier: Apache-2.0
"""The magic of notebooks, in an IPython shell: a cell's report has the cell's peak."""

import json
import platform
import sys

import pytest
from conftest import clean_environment, find_wheel, output, unpack

MIB = 1 << 20
# A shell that runs cells and prints a line between them. The third cell allocates nothing, the fourth is no cell but the line magic.
SHELL = """
import ctypes
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
runtime = ctypes.CDLL("libcudart.so.12")
shell.user_ns.update(ctypes=ctypes, runtime=runtime)
shell.run_cell("%load_ext memtrace")
shell.run_cell('''def allocate(mebibytes):
    block = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(mebibytes << 20)) == 0
    return block
''', store_history=HISTORY)
for cell in ("%%memtrace FLAGS\\nkept = allocate(48)",
             "%%memtrace FLAGS\\nfor size in (100, 90):\\n    runtime.cudaFree(allocate(size))\\nmore = allocate(10)",
             "%%memtrace FLAGS\\npass",
             "%memtrace FLAGS"):
    print("----", flush=True)
    shell.run_cell(cell.replace("FLAGS", "GIVEN"), store_history=HISTORY)
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return unpack(find_wheel(platform.machine()), tmp_path_factory.mktemp("notebook"))


def run_shell(package, folder, *launcher, flags="--json", history=False):
    """What each cell printed."""
    (folder / "shell.py").write_text(SHELL.replace("GIVEN", flags).replace("HISTORY", str(history)))
    files = package / "memtrace/_bin"
    environment = clean_environment(PYTHONPATH=package, LD_LIBRARY_PATH=files / "nullgpu", NULLCUDA_SHARED="none", IPYTHONDIR=folder, NO_COLOR="1")
    said = output(*launcher, sys.executable, folder / "shell.py", cwd=folder, env=environment)
    return said.split("----\n")[1:]


def test_cells(package, tmp_path):
    cells = run_shell(package, tmp_path, package / "memtrace/_bin/memtrace", "run", "-q", "-o", "run.bin", "--")
    reports = [json.loads(cell) for cell in cells]
    assert [report["driver"]["peak_bytes"] for report in reports] == [48 * MIB, 148 * MIB, 58 * MIB, 148 * MIB]
    assert [report["driver"]["live_bytes"] for report in reports] == [48 * MIB, 58 * MIB, 58 * MIB, 58 * MIB]
    assert [report["filter"] for report in reports] == [["from mark:In[1] to the end"], ["from mark:In[1].2 to the end"], ["from mark:In[1].3 to the end"], []]


def test_answers(package, tmp_path):
    """Without flags a cell has six lines at most, in which its own lines have names that the reader knows."""
    cells = run_shell(package, tmp_path, package / "memtrace/_bin/memtrace", "run", "-q", "-o", "run.bin", "--", flags="", history=True)
    for cell in cells:
        lines = cell.split(": \n", 1)[1].strip("\n").split("\n")
        assert 2 <= len(lines) <= 6, cell
        assert lines[-1].startswith("More: memtrace report "), cell
    assert "peaked at 48.0 MiB" in cells[0] and "100.0%  In [1] line 3: assert runtime.cudaMalloc(ctypes.byref(block), " in cells[0]
    assert "--from 'mark:In[2]'" in cells[0] and "--from 'mark:In[3]'" in cells[1] and "--from" not in cells[3]


def test_kernel_that_was_started_without(package, tmp_path):
    """Recording begins with the first such cell."""
    cells = run_shell(package, tmp_path)
    reports = [json.loads(cell) for cell in cells]
    assert [report["driver"]["peak_bytes"] for report in reports] == [48 * MIB, 148 * MIB, 58 * MIB, 148 * MIB]
    assert len(list(tmp_path.glob("memtrace.*.bin"))) == 1


def test_kernel_that_cannot_be_recorded(package, tmp_path):
    """The cells run all the same, and each says why there is no report."""
    cells = run_shell(package, tmp_path, "env", "MEMTRACE_DISABLE=1")
    assert len(cells) == 4
    for cell in cells:
        assert cell.startswith("memtrace: this kernel cannot be recorded: recording is switched off (MEMTRACE_DISABLE)")
    assert list(tmp_path.glob("*.bin")) == []
