# SPDX-License-Identifier: Apache-2.0
"""Wheels that were built, and environments into which they were installed and nothing else. scripts/test-wheel.sh runs these tests."""

import functools
import json
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
WHEELS = Path(os.environ.get("WHEEL_DIST", ROOT / "dist"))
GLIBC = (2, 17)
MACHINES = ("x86_64", "aarch64")
# The oldest and the newest Python that the package is for; where the first cannot be had, the next.
PYTHONS = {"oldest": ("3.8", "3.9"), "newest": ("3.14",)}
NEEDED = ("PATH", "HOME", "TMPDIR", "MEMTRACE_CACHE", "XDG_CACHE_HOME", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "no_proxy")


# A test that only `make nightly` has, and `make test-wheel` by itself.
nightly = pytest.mark.skipif(os.environ.get("TIER") not in (None, "nightly"), reason="make nightly has it")


def clean_environment(**variables):
    """Variables of a user who has set nothing: what this test's process has for memtrace, the loader and Python is left out."""
    return {**{name: os.environ[name] for name in NEEDED if name in os.environ}, **{name: str(value) for name, value in variables.items()}}


def output(*command, **options):
    """What a command prints; the test fails with the command's own words if it does."""
    options.setdefault("env", clean_environment())
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace", **options)
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def find_wheel(machine):
    found = list(WHEELS.glob(f"memtrace_gpu-*-py3-none-manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}.whl"))
    assert len(found) == 1, f"{WHEELS} has {len(found)} wheels for {machine}: run make wheel"
    return found[0]


@functools.lru_cache(maxsize=None)
def interpreter(label):
    """Path of the oldest or newest interpreter that can be had."""
    problems = []
    for version in PYTHONS[label]:
        done = subprocess.run([sys.executable, ROOT / "testdata/python/interpreters.py", version], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        if done.returncode == 0:
            return done.stdout.strip()
        problems.append(done.stderr)
    raise AssertionError("".join(problems))


class Environment:
    """A virtual environment with the wheel in it."""

    def __init__(self, folder, python, wheel):
        self.folder, self.bin = folder, folder / "bin"
        output(python, "-m", "venv", folder)
        output(self.bin / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", wheel)
        self.package = Path(self.run("python", "-c", "import memtrace; print(memtrace.__path__[0])", cwd=folder).strip())
        self.files = self.package / "_bin"
        self.nullgpu = self.files / "nullgpu"

    def variables(self, **more):
        """Those of a shell in which the environment was activated."""
        return clean_environment(**{"PATH": f"{self.bin}:{os.environ['PATH']}", **more})

    def run(self, program, *arguments, cwd, **variables):
        return output(self.bin / program, *arguments, cwd=cwd, env=self.variables(**variables))

    def on_null_gpu(self, program, *arguments, cwd, **variables):
        """Runs a program on a machine whose driver is the null one."""
        return self.run(program, *arguments, cwd=cwd, LD_LIBRARY_PATH=self.nullgpu, NULLCUDA_SHARED="none", **variables)

    def report(self, trace):
        return json.loads(self.run("memtrace", "report", "--json", trace, cwd=trace.parent))


@pytest.fixture(scope="session", params=sorted(PYTHONS))
def environment(request, tmp_path_factory):
    return Environment(tmp_path_factory.mktemp(request.param) / "venv", interpreter(request.param), find_wheel(platform.machine()))


@pytest.fixture(scope="session", params=MACHINES)
def unpacked(request, tmp_path_factory):
    """The machine's name and the folder of its wheel's files, with their modes."""
    return request.param, unpack(find_wheel(request.param), tmp_path_factory.mktemp(request.param))


def unpack(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            path = Path(archive.extract(info, folder))
            path.chmod(info.external_attr >> 16 & 0o777)
    return folder


def copy_sources(folder):
    """The tree as git has it, with what is not committed yet."""
    names = output("git", "ls-files", "-co", "--exclude-standard", "-z", cwd=ROOT).split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def highest_total(log):
    """The most that was live at a time by the word of the null driver's log, and what was live at its end; bytes as the program asked for."""
    totals = [int(line.split()[8]) for line in log.read_text().splitlines()]
    return max(totals), totals[-1]
