# SPDX-License-Identifier: Apache-2.0
"""Packages of the distributions: the wheel's files where a system has them, at work from a root folder of their own."""

import json
import os
import platform
import re
import shutil
import subprocess

import pytest
from conftest import ROOT, WHEELS, clean_environment, find_wheel, highest_total, output, unpack

DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}


def packages(machine):
    deb, = WHEELS.glob(f"memtrace-gpu_*_{DEBIAN[machine]}.deb")
    rpm, = WHEELS.glob(f"memtrace-gpu-*.{machine}.rpm")
    return deb, rpm


def extract(package, folder):
    """The files of a .deb or .rpm."""
    folder.mkdir()
    if package.suffix == ".deb":
        output("dpkg-deb", "-x", package, folder)
    else:
        # Its status compares the archive's length with a figure that nfpm leaves out; cpio finds out whether it is whole.
        archive = subprocess.run(["rpm2cpio", package], stdout=subprocess.PIPE, check=False).stdout
        subprocess.run(["cpio", "-idm", "--quiet", "--no-absolute-filenames"], input=archive, cwd=folder, check=True)
    return folder


def files(folder):
    return {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}


RPM_TOOLS = ("rpm", "rpm2cpio", "cpio")
KINDS = [pytest.param(0, id="deb", marks=pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb")),
         pytest.param(1, id="rpm", marks=pytest.mark.skipif(not all(map(shutil.which, RPM_TOOLS)), reason=f"not all of {', '.join(RPM_TOOLS)}"))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("machine", DEBIAN)
def test_contents(kind, machine, tmp_path):
    """Each executable of the wheel is there, byte by byte, and every verb but help has its page."""
    found = files(extract(packages(machine)[kind], tmp_path / "root"))
    wheel = files(unpack(find_wheel(machine), tmp_path / "wheel") / "memtrace/_bin")
    places = {name: {"memtrace": "usr/bin/memtrace", "include/memtrace.h": "usr/include/memtrace.h"}.get(name, f"usr/lib/memtrace/{name}") for name in wheel}
    for name, place in places.items():
        assert found[place].read_bytes() == wheel[name].read_bytes(), place
        assert os.access(found[place], os.X_OK) == os.access(wheel[name], os.X_OK), place
    verbs = re.findall(r"^  ([a-z]+)  +[A-Z]", output(unpack(find_wheel(platform.machine()), tmp_path / "own") / "memtrace/_bin/memtrace", "--help"), re.MULTILINE)
    assert len(verbs) > 10
    assert {f"usr/share/man/man1/memtrace-{verb}.1" for verb in verbs if verb != "help"} <= found.keys()
    assert {"usr/share/man/man1/memtrace.1", "usr/share/doc/memtrace-gpu/THIRD_PARTY.md", "usr/share/bash-completion/completions/memtrace"} <= found.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_demo(kind, tmp_path):
    """The command finds library, null GPU and demo where the package puts them."""
    root = extract(packages(platform.machine())[kind], tmp_path / "root")
    environment = clean_environment(NULLCUDA_LOG=tmp_path / "null.log")
    text = output(root / "usr/bin/memtrace", "demo", "--python", "/bin/false", "-o", "demo.bin", cwd=tmp_path, env=environment)
    assert "Null GPU" in text and "demo/train.c:" in text
    driver = json.loads(output(root / "usr/bin/memtrace", "report", "--json", tmp_path / "demo.bin"))["driver"]
    assert (driver["peak_bytes"], driver["live_bytes"]) == highest_total(tmp_path / "null.log")


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="no dpkg-deb")
def test_needs_of_deb():
    deb, _ = packages(platform.machine())
    assert output("dpkg-deb", "-f", deb, "Depends").strip() == "libc6 (>= 2.17)"


@pytest.mark.skipif(not shutil.which("rpm"), reason="no rpm")
def test_needs_of_rpm():
    _, rpm = packages(platform.machine())
    assert output("rpm", "-qp", "--nosignature", "--requires", rpm).strip() == "glibc >= 2.17"
    said = output("rpm", "-Kv", "--nosignature", rpm)
    assert re.search(r"Payload SHA256 digest: OK", said), said


def test_same_bytes(tmp_path):
    """Packed once more, they are the same."""
    for machine in DEBIAN:
        shutil.copy(find_wheel(machine), tmp_path)
    output(ROOT / "scripts/packages.sh", cwd=ROOT, env={**os.environ, "WHEEL_DIST": str(tmp_path)})
    made = sorted(path.name for path in tmp_path.iterdir() if path.suffix in (".deb", ".rpm"))
    assert made == sorted(path.name for machine in DEBIAN for path in packages(machine))
    assert [name for name in made if (tmp_path / name).read_bytes() != (WHEELS / name).read_bytes()] == []
