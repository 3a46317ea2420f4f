# SPDX-License-Identifier: Apache-2.0
"""The wheel on glibc 2.31: that of Debian 11, out of its package, with its own loader. Its Python 3.9 comes from there, too."""

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, clean_environment, find_wheel, highest_total, nightly, output, unpack

GLIBC = "2.31"
TORCH = "torch==2.7.1"
SAYS_GLIBC = "import ctypes; libc = ctypes.CDLL(None); libc.gnu_get_libc_version.restype = ctypes.c_char_p; print(libc.gnu_get_libc_version().decode())"


@pytest.fixture(scope="session")
def python():
    """Debian 11's interpreter."""
    path = Path(output(sys.executable, ROOT / "testdata/python/interpreters.py", "--debian", "3.9", env=os.environ).strip())
    assert output(path, "-c", SAYS_GLIBC).strip() == GLIBC
    return path


@pytest.fixture(scope="session")
def libraries(python):
    """The folder of its C library."""
    found, = (python.parents[2] / "lib").glob(f"{platform.machine()}-linux-gnu")
    return found


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    return unpack(find_wheel(platform.machine()), tmp_path_factory.mktemp("wheel")) / "memtrace/_bin"


def read(files, libraries, trace):
    """The report, by the wheel's command on the old C library."""
    return json.loads(output(libraries / f"ld-{GLIBC}.so", "--library-path", libraries, files / "memtrace", "report", "--json", trace))


def test_guest(files, libraries, tmp_path):
    """A C program under the old loader: what the null driver counted is what the report says."""
    environment = clean_environment(LD_PRELOAD=files / "libmemtrace.so", MEMTRACE_OUTPUT=tmp_path / "run.bin", NULLCUDA_SHARED="none", NULLCUDA_LOG=tmp_path / "null.log")
    output(libraries / f"ld-{GLIBC}.so", "--library-path", f"{libraries}:{files / 'nullgpu'}", files / "demo/train", env=environment)
    report = read(files, libraries, tmp_path / "run.bin")
    assert report["health"]["complete"]
    assert (report["driver"]["peak_bytes"], report["driver"]["live_bytes"]) == highest_total(tmp_path / "null.log")


def torch_venv(python, *options):
    """Folder of an environment with PyTorch on the null GPU, for the Python of the interpreter; made once, in the cache."""
    done = subprocess.run([sys.executable, ROOT / "testdata/nullcuda/venv.py", TORCH, "--python", python, *options], stdout=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == 0, "venv.py failed; its words stand above"
    return Path(done.stdout.strip())


def train(python, packages, environment):
    """Trains GPT-2 small. Returns PyTorch's own count of the most bytes that were allocated and reserved."""
    said = output(python, ROOT / "testdata/train/gpt2.py", env={**environment, "PYTHONPATH": str(packages)})
    allocated, reserved = re.search(r"peak (\d+) allocated, (\d+) reserved", said).groups()
    return int(allocated), int(reserved)


def counted(report):
    device, = report["devices"]
    return report["framework"]["peak_bytes"], device["reserved_bytes_peak"]


@nightly  # an environment of its own, 2 GB
def test_torch(files, python, libraries, tmp_path):
    """PyTorch 2.7.1 on it: the report's figures are PyTorch's own, to the byte. The null GPU is the wheel's, for that of this machine's compiler needs a newer glibc."""
    venv = torch_venv(python, "--foreign", "--dir", python.parents[4] / "venvs" / f"{TORCH.replace('==', '-')}-glibc{GLIBC}")
    environment = clean_environment(LD_PRELOAD=files / "libmemtrace.so", MEMTRACE_OUTPUT=tmp_path / "run.bin", NULLCUDA_SHARED="none",
                                    LD_LIBRARY_PATH=f"{files / 'nullgpu'}:{venv / 'nullcuda'}")
    said = train(python, venv / "lib/python3.9/site-packages", environment)
    report = read(files, libraries, tmp_path / "run.bin")
    assert report["health"]["complete"]
    assert counted(report) == said


def test_torch_here(files, tmp_path):
    """The same on this machine's own C library."""
    venv = torch_venv(sys.executable)
    environment = clean_environment(LD_PRELOAD=files / "libmemtrace.so", MEMTRACE_OUTPUT=tmp_path / "run.bin", NULLCUDA_SHARED="none", LD_LIBRARY_PATH=venv / "nullcuda")
    said = train(venv / "bin/python", "", environment)
    report = json.loads(output(files / "memtrace", "report", "--json", tmp_path / "run.bin"))
    assert report["health"]["complete"]
    assert counted(report) == said
