# SPDX-License-Identifier: Apache-2.0
"""The same sources give the same bytes: built once more in another folder with nothing cached, in `make nightly`."""

import os
import platform
import subprocess
import zipfile

from conftest import ROOT, copy_sources, find_wheel, nightly


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def commit_time():
    """What scripts/wheel.sh takes where nobody says otherwise; the copy has no commit to ask for it."""
    return os.environ.get("SOURCE_DATE_EPOCH") or subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8",
                                                                 check=True).stdout.strip()


@nightly
def test_same_bytes(tmp_path):
    copy = copy_sources(tmp_path / "some-where" / "else")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": commit_time(), "WHEEL_DIST": str(tmp_path / "dist"), "GOCACHE": str(tmp_path / "go"),
                   "ZIG_GLOBAL_CACHE_DIR": str(tmp_path / "zig")}
    done = subprocess.run([copy / "scripts/wheel.sh", platform.machine()], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    assert done.returncode == 0, done.stdout
    first, second = find_wheel(platform.machine()), done.stdout.splitlines()[-1]
    one, two = members(first), members(copy / second)
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []
    assert first.read_bytes() == (copy / second).read_bytes()
