# SPDX-License-Identifier: Apache-2.0
"""Runs small programs with and without a recording library in the process.

The library of these tests is cshim/include/test/fake_memtrace.c: it follows memtrace.h and writes every call into a file.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PYTHON_FOLDER = Path(__file__).resolve().parent.parent
INCLUDE_FOLDER = PYTHON_FOLDER.parent / "cshim" / "include"

# What the programs of the tests begin with: path() is the tag path that the library sees, depth() its number of levels.
# In development mode asyncio also warns of what took longer than 0.1 s, as anything may on a busy machine.
PRELUDE = """
import ctypes
import logging
import memtrace

logging.getLogger("asyncio").addFilter(lambda record: " took " not in record.msg)

_process = ctypes.PyDLL(None)
if hasattr(_process, "fake_memtrace_path"):
    _process.fake_memtrace_path.restype = ctypes.c_char_p
    path = lambda: _process.fake_memtrace_path().decode()
    depth = lambda: _process.fake_memtrace_depth()
"""


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory):
    """Path of the compiled stand-in."""
    library = tmp_path_factory.mktemp("fake") / "libfake_memtrace.so"
    command = [os.environ.get("CC", "gcc"), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-shared", "-fPIC",
               "-I", str(INCLUDE_FOLDER), "-o", str(library), str(INCLUDE_FOLDER / "test" / "fake_memtrace.c")]
    subprocess.run(command, check=True)
    return library


class Result:
    """What a program printed and which calls reached the library, one 'verb argument' line each."""

    def __init__(self, output, calls):
        self.output = output
        self.calls = calls


def run_program(program, tmp_path, library=None, environment=None):
    """Runs a Python program and returns its Result; the test fails with the program's own error if it does."""
    log = tmp_path / "calls"
    unwanted = ("LD_PRELOAD", "FAKE_MEMTRACE_", "MEMTRACE_")
    variables = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
    variables["PYTHONPATH"] = str(PYTHON_FOLDER)
    variables["FAKE_MEMTRACE_LOG"] = str(log)
    if library is not None:
        variables["LD_PRELOAD"] = str(library)
    variables.update(environment or {})
    finished = subprocess.run([sys.executable, "-X", "dev", "-c", PRELUDE + textwrap.dedent(program)], env=variables, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True)
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == "", finished.stderr
    return Result(finished.stdout, log.read_text().splitlines() if log.exists() else [])


@pytest.fixture
def recorded(fake_library, tmp_path):
    """Function that runs a program with the library preloaded."""
    return lambda program, **environment: run_program(program, tmp_path, fake_library, environment)


@pytest.fixture
def unrecorded(tmp_path):
    """Function that runs a program without any library; no call may have been logged."""

    def run(program):
        result = run_program(program, tmp_path)
        assert result.calls == []
        return result

    return run
