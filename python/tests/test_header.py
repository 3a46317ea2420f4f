# SPDX-License-Identifier: Apache-2.0
"""memtrace.h from C and C++: every way of linking, strict warnings, with the library preloaded and without it."""

import os
import shutil
import subprocess

import pytest
from conftest import INCLUDE_FOLDER

CC = os.environ.get("CC", "gcc")
CXX = os.environ.get("CXX", "g++")
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror", "-I", str(INCLUDE_FOLDER)]
PROGRAMS = INCLUDE_FOLDER / "test"

POOL_CALLS = ["pool arena on 1", "pool alloc 64", "pool free 7", "pool destroy 7"]
C_CALLS = [*POOL_CALLS, "push outer", "push outer.b.1", "step 18446744073709551615", "epoch 3", "pop outer",
           "push outer.scope", "push outer.scope.inner", "pop outer.scope", "mark in scope", "pop outer",
           "push outer.scope", "push outer.scope.inner", "pop outer.scope", "pop outer",
           "push outer", "pop outer", "pop ", "pop "]
CPP_CALLS = [*POOL_CALLS, "push layer.3", "step 1", "epoch 2", "pop ", "push outer", "push outer.scope", "mark throwing", "pop outer", "pop ", "mark caught"]

LINKING = {
    "pie": ["-fPIE", "-pie"],
    "pie-now": ["-fPIE", "-pie", "-Wl,-z,relro,-z,now"],
    "no-pie": ["-fno-pie", "-no-pie"],
    "no-pie-debug": ["-O0", "-g", "-fno-pie", "-no-pie"],
    "lto": ["-flto", "-fPIE", "-pie"],
}


def build(compiler, source, output, *options):
    # Warnings count in the link step of -flto too, so one command does both.
    subprocess.run([compiler, "-O2", *options, *STRICT, str(source), "-o", str(output)], check=True)


def run(program, log, library=None, launcher=()):
    """Returns what the program printed and the calls that reached the library."""
    variables = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    variables["FAKE_MEMTRACE_LOG"] = str(log)
    if library is not None:
        variables["LD_PRELOAD"] = str(library)
    finished = subprocess.run([*launcher, str(program)], env=variables, stdout=subprocess.PIPE, universal_newlines=True)
    assert finished.returncode == 0
    return finished.stdout.strip(), log.read_text().splitlines() if log.exists() else []


@pytest.mark.parametrize("linking", LINKING)
@pytest.mark.parametrize("standard", ["c99", "c11", "gnu11", "c17"])
def test_c(standard, linking, fake_library, tmp_path):
    program = tmp_path / "tags"
    build(CC, PROGRAMS / "tags.c", program, "-std=" + standard, *LINKING[linking])
    assert run(program, tmp_path / "plain") == ("0", [])
    assert run(program, tmp_path / "recorded", fake_library) == ("1", C_CALLS)


@pytest.mark.parametrize("linking", LINKING)
@pytest.mark.parametrize("standard", ["c++11", "c++14", "c++17", "c++20"])
def test_cpp(standard, linking, fake_library, tmp_path):
    program = tmp_path / "tags"
    build(CXX, PROGRAMS / "tags.cpp", program, "-std=" + standard, *LINKING[linking])
    assert run(program, tmp_path / "plain") == ("0", [])
    assert run(program, tmp_path / "recorded", fake_library) == ("1", CPP_CALLS)


def test_c_program_as_cpp(fake_library, tmp_path):
    program = tmp_path / "tags"
    build(CXX, PROGRAMS / "tags.c", program, "-std=c++11", "-xc++")
    assert run(program, tmp_path / "recorded", fake_library) == ("1", C_CALLS)


def test_shared_object(fake_library, tmp_path):
    """Tags inside a library of the program, the usual place for them in an extension module."""
    library, program, main = tmp_path / "libguest.so", tmp_path / "main", tmp_path / "main.c"
    main.write_text("int guest_main(void);\nint main(void) { return guest_main(); }\n")
    build(CC, PROGRAMS / "tags.c", library, "-std=c11", "-fPIC", "-shared", "-Dmain=guest_main", "-Wl,-z,defs")
    build(CC, main, program, f"-Wl,-rpath,{tmp_path}", str(library), "-Wl,--no-as-needed", str(library))
    assert run(program, tmp_path / "plain") == ("0", [])
    assert run(program, tmp_path / "recorded", fake_library) == ("1", C_CALLS)


def test_static_executable_does_nothing(fake_library, tmp_path):
    program = tmp_path / "tags"
    build(CC, PROGRAMS / "tags.c", program, "-std=c11", "-static")
    assert run(program, tmp_path / "recorded", fake_library) == ("0", [])


def test_linked_against_the_library(fake_library, tmp_path):
    program = tmp_path / "tags"
    build(CC, PROGRAMS / "tags.c", program, "-std=c11", "-Wl,--no-as-needed", str(fake_library), f"-Wl,-rpath,{fake_library.parent}")
    assert run(program, tmp_path / "calls") == ("1", C_CALLS)


@pytest.mark.parametrize("compiler,source,standard", [(CC, "tags.c", "c99"), (CXX, "tags.cpp", "c++11")])
def test_switched_off(compiler, source, standard, fake_library, tmp_path):
    program = tmp_path / "tags"
    build(compiler, PROGRAMS / source, program, "-std=" + standard, "-DMEMTRACE_NO_API")
    assert run(program, tmp_path / "recorded", fake_library) == ("0", [])
    symbols = subprocess.run(["nm", str(program)], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
    assert " memtrace_tag_push\n" not in symbols


@pytest.mark.skipif(not shutil.which("clang"), reason="clang is not installed")
@pytest.mark.parametrize("linking", ["pie", "pie-now"])
def test_clang(linking, fake_library, tmp_path):
    program = tmp_path / "tags"
    build("clang", PROGRAMS / "tags.c", program, "-std=c11", *LINKING[linking])
    assert run(program, tmp_path / "plain") == ("0", [])
    assert run(program, tmp_path / "recorded", fake_library) == ("1", C_CALLS)


CROSS = "aarch64-linux-gnu-"


@pytest.mark.skipif(not shutil.which(CROSS + "g++") or not shutil.which("qemu-aarch64"), reason="no arm64 cross compiler or emulator")
@pytest.mark.parametrize("linking", ["pie", "no-pie"])
@pytest.mark.parametrize("compiler,source,standard,calls", [("gcc", "tags.c", "c11", C_CALLS), ("g++", "tags.cpp", "c++17", CPP_CALLS)])
def test_arm64(compiler, source, standard, calls, linking, tmp_path):
    library, program, log = tmp_path / "libfake.so", tmp_path / "tags", tmp_path / "calls"
    build(CROSS + "gcc", PROGRAMS / "fake_memtrace.c", library, "-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden")
    build(CROSS + compiler, PROGRAMS / source, program, "-std=" + standard, *LINKING[linking])
    emulator = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
    assert run(program, log, launcher=emulator) == ("0", [])
    assert run(program, log, launcher=[*emulator, "-E", f"LD_PRELOAD={library}"]) == ("1", calls)
