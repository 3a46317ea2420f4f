# SPDX-License-Identifier: Apache-2.0
"""The wheel for 64-bit Arm under emulation: the library loads and records, the command reads. What it says about speed or threads is worth nothing."""

import json
import shutil

import pytest
from conftest import clean_environment, find_wheel, highest_total, output, unpack

EMULATOR = "qemu-aarch64"
SYSROOT = "/usr/aarch64-linux-gnu"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    assert shutil.which(EMULATOR), f"there is no {EMULATOR}; on Debian: apt-get install qemu-user libc6-dev-arm64-cross"
    return unpack(find_wheel("aarch64"), tmp_path_factory.mktemp("aarch64")) / "memtrace/_bin"


def emulated(*command, **variables):
    """Runs a program of the machine; the variables are the program's, not the emulator's."""
    settings = [part for name, value in variables.items() for part in ("-E", f"{name}={value}")]
    return output(EMULATOR, "-L", SYSROOT, *settings, *command, env=clean_environment())


def test_records(files, tmp_path):
    emulated(files / "demo/train", LD_PRELOAD=files / "libmemtrace.so", LD_LIBRARY_PATH=files / "nullgpu", MEMTRACE_OUTPUT=tmp_path / "run.bin",
             NULLCUDA_SHARED="none", NULLCUDA_LOG=tmp_path / "null.log")
    report = json.loads(emulated(files / "memtrace", "report", "--json", tmp_path / "run.bin"))
    assert report["health"]["complete"]
    assert (report["driver"]["peak_bytes"], report["driver"]["live_bytes"]) == highest_total(tmp_path / "null.log")
    tags, = (group for group in report["groups"] if group["by"] == "tag" and group["level"] == "driver")
    assert {row["key"] for row in tags["rows"]} == {"model", "forward", "backward", "optimizer", "losses"}


def test_asks_the_device(files, tmp_path):
    """NVML is bound by stand-ins in assembler, which this machine has its own of."""
    said = json.loads(emulated(files / "memtrace", "top", "--once", "--json", LD_LIBRARY_PATH=files / "nullgpu", NULLCUDA_SHARED="none"))
    assert [device["name"] for device in said["devices"]] == ["Null GPU"]
