# SPDX-License-Identifier: Apache-2.0
"""What a user types after `pip install` into an empty environment, on the oldest Python and on the newest."""

import re
import subprocess

import pytest
from conftest import ROOT, highest_total

MIB = 1 << 20
# Allocates by the CUDA runtime, under a tag; says where the package thinks the library is, and whether that one records.
PROGRAM = """
import ctypes, memtrace
runtime, block = ctypes.CDLL("libcudart.so.12"), ctypes.c_void_p()
with memtrace.tag("encoder"):
    assert runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(48 << 20)) == 0
print(memtrace.active(), memtrace.library_path() in open("/proc/self/maps").read())
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    return path


def test_version(environment, tmp_path):
    installed = environment.run("python", "-c", "import memtrace; print(memtrace.__version__)", cwd=tmp_path).strip()
    assert environment.run("memtrace", "--version", cwd=tmp_path).startswith(f"memtrace {installed} (go")


@pytest.mark.parametrize("command", [("memtrace",), ("python", "-m", "memtrace")], ids=" ".join)
def test_run(environment, program, tmp_path, command):
    said = environment.on_null_gpu(*command, "run", "-q", "-o", "run.bin", "--", "python", program, cwd=tmp_path)
    assert said == "True True\n"
    report = environment.report(tmp_path / "run.bin")
    assert report["driver"]["peak_bytes"] == 48 * MIB
    tags, = (group for group in report["groups"] if group["by"] == "tag" and group["level"] == "driver")
    assert [(row["key"], row["peak_bytes"]) for row in tags["rows"]] == [("encoder", 48 * MIB)]


def test_without_recorder(environment, program, tmp_path):
    assert environment.on_null_gpu("python", program, cwd=tmp_path) == "False False\n"
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_exit_status(environment, tmp_path):
    """The entry point becomes the command, which becomes the program's status."""
    done = subprocess.run([environment.bin / "memtrace", "run", "--", "sh", "-c", "exit 7"], env=environment.variables(), cwd=tmp_path, stderr=subprocess.PIPE)
    assert done.returncode == 7


def test_demo(environment, tmp_path):
    """It needs no GPU, no framework and no compiler; its report has what the null driver counted."""
    text = environment.run("memtrace", "demo", "-o", "demo.bin", cwd=tmp_path, NULLCUDA_LOG=tmp_path / "null.log")
    assert "Null GPU" in text and "complete: " in text
    for owner in ("optimizer", "forward", "model", "losses"):
        assert re.search(rf"^  {owner} +\d+\.\d MiB", text, re.MULTILINE), text
    assert re.search(r"Memory grows by .*demo/train\.c:\d+ keep_loss", " ".join(text.split())), text
    peak, left = highest_total(tmp_path / "null.log")
    driver = environment.report(tmp_path / "demo.bin")["driver"]
    assert (driver["peak_bytes"], driver["live_bytes"]) == (peak, left)
    assert peak > left > 0


def test_header(environment, tmp_path):
    """C programs find the header of the tag API."""
    header = environment.files / "include/memtrace.h"
    assert header.read_bytes() == (ROOT / "cshim/include/memtrace.h").read_bytes()


def test_other_distribution(environment, tmp_path):
    """The tool of others with modules of the same name, in the same environment: a sentence says so, and the command works."""
    other = environment.package.parent / "memtrace-0.2.6.dist-info"
    other.mkdir()
    try:
        done = subprocess.run([environment.bin / "memtrace", "--version"], env=environment.variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    finally:
        other.rmdir()
    assert done.returncode == 0 and done.stdout.startswith("memtrace ")
    assert re.fullmatch(r"memtrace: warning: memtrace-0\.2\.6\.dist-info .*pip uninstall memtrace.*\n", done.stderr)
