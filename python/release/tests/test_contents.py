# SPDX-License-Identifier: Apache-2.0
"""What lies in a wheel, before anything runs."""

import email
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from conftest import GLIBC, ROOT, find_wheel, output

# What every wheel has beside Python files, and whether it can be executed.
FILES = {"memtrace": True, "libmemtrace.so": True, "include/memtrace.h": False, "demo/train": True, "demo/libtrain.so": True, "demo/train.c": False, "demo/train.py": False,
         **{f"nullgpu/{name}": True for name in ("libcuda.so.1", "libnvidia-ml.so.1", "libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13", "redirect.so",
                                                 *re.findall(r"^lib\S+", (ROOT / "testdata/nullcuda/redirect/libraries.txt").read_text(), re.M))}}


def tool(name):
    return Path(sys.executable).parent / name


def executables(folder):
    return [path for path in (folder / "memtrace/_bin").rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]


def test_files(unpacked):
    _, folder = unpacked
    found = {str(path.relative_to(folder / "memtrace/_bin")): os.access(path, os.X_OK) for path in (folder / "memtrace/_bin").rglob("*") if path.is_file()}
    assert found == FILES
    sources = {path.name for path in (ROOT / "python/memtrace").iterdir() if path.suffix in (".py", ".typed")}
    assert {path.name for path in (folder / "memtrace").iterdir() if path.is_file()} == sources


def test_metadata(unpacked):
    machine, folder = unpacked
    info, = folder.glob("*.dist-info")
    said = email.message_from_string((info / "METADATA").read_text())
    assert (said["Name"], said["License-Expression"], said["Requires-Python"]) == ("memtrace-gpu", "Apache-2.0", ">=3.8")
    assert said.get_all("Requires-Dist") is None
    assert "[pytest11]\nmemtrace = memtrace.pytest_plugin\n" in (info / "entry_points.txt").read_text()
    assert {path.name for path in (info / "licenses").iterdir()} == {"LICENSE", "THIRD_PARTY.md"}
    tags = email.message_from_string((info / "WHEEL").read_text()).get_all("Tag")
    assert tags == [f"py3-none-manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}"]
    output(tool("twine"), "check", "--strict", find_wheel(machine))


def test_no_newer_c_library(unpacked):
    """By readelf's word, beside auditwheel's: no symbol of a newer glibc, and no library that another distribution could lack."""
    machine, folder = unpacked
    assert f'manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}"' in " ".join(output(tool("auditwheel"), "show", find_wheel(machine)).split())
    for path in executables(folder):
        versions = {tuple(map(int, text.split("."))) for text in re.findall(r"Name: GLIBC_([0-9.]+)", output("readelf", "-VW", path))}
        assert all(version[:2] <= GLIBC for version in versions), path
        assert versions or path.parent.name == "nullgpu", path  # a stand-in may call nothing
        libraries = set(re.findall(r"NEEDED.*\[(.+)\]", output("readelf", "-dW", path)))
        assert libraries <= {"libc.so.6", "libdl.so.2", "libpthread.so.0", "libcudart.so.12", "libtrain.so", "ld-linux-aarch64.so.1", "ld-linux-x86-64.so.2"}, path


def test_library(unpacked):
    """The C tests' checks of a built library: its exports, its relocations, its initialisers."""
    machine, folder = unpacked
    if machine != os.uname().machine:
        return  # it loads the library; test_aarch64.py does that elsewhere
    done = subprocess.run([ROOT / "scripts/test-c.sh", "library"], env={**os.environ, "MEMTRACE_LIBRARY": str(folder / "memtrace/_bin/libmemtrace.so")},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d+ passed, 0 failed", done.stdout), done.stdout


def test_hardened(unpacked):
    """Function pointers of the library cannot be overwritten once it is loaded."""
    _, folder = unpacked
    library = folder / "memtrace/_bin/libmemtrace.so"
    assert "GNU_RELRO" in output("readelf", "-lW", library)
    assert "BIND_NOW" in output("readelf", "-dW", library)


def test_no_places(unpacked):
    """No file tells where it was built."""
    _, folder = unpacked
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for place in (f"{ROOT}/", f"{Path.home()}/"):
                assert place.encode() not in content, f"{path.relative_to(folder)} mentions {place}"


def test_bill_of_materials(unpacked):
    """It is CycloneDX by the schema, and lists just what the Go command finds in the executables."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    _, folder = unpacked
    path, = folder.glob("*.dist-info/sboms/*")
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(path.read_text())
    assert problem is None, problem
    bill = json.loads(path.read_text())
    listed = {(part["name"], part["version"]) for part in bill["components"] if part["type"] == "library"}
    built = set()
    for name in ("memtrace", "libmemtrace.so"):
        said = output("go", "version", "-m", folder / "memtrace/_bin" / name, env=os.environ)
        built |= {(module, version) for module, version in re.findall(r"^\tdep\t(\S+)\t(\S+)", said, re.MULTILINE)}
        built.add(("std", re.search(r": go(\S+)", said)[1]))
        entry, = (part for part in bill["components"] if part["name"] == name)
        assert entry["hashes"][0]["content"] == output("sha256sum", folder / "memtrace/_bin" / name).split()[0]
    assert listed == built and len(built) > 10
