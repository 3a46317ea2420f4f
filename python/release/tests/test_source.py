# SPDX-License-Identifier: Apache-2.0
"""`pip install .` in a checkout compiles with Go and gcc, and says what is missing where it cannot."""

import os
import shutil
import subprocess

import pytest
from conftest import clean_environment, copy_sources, interpreter, output


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return copy_sources(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    folder = tmp_path_factory.mktemp("empty") / "venv"
    output(interpreter("newest"), "-m", "venv", folder)
    return folder / "bin" / "python"


def install(python, checkout, **variables):
    return subprocess.run([python, "-m", "pip", "install", "--disable-pip-version-check", checkout], env=clean_environment(**variables), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8")


def test_without_go(python, checkout, tmp_path):
    """One sentence, and no traceback."""
    for tool in ("gcc", "make"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    done = install(python, checkout, PATH=f"{tmp_path}")
    assert done.returncode != 0
    assert "memtrace-gpu: building memtrace-gpu from its sources needs Go 1.26 or newer (https://go.dev/dl), gcc and make: go not found" in done.stdout
    assert "Traceback" not in done.stdout


def test_with_go(python, checkout, tmp_path):
    """Nothing is left in the checkout that git would take for a change."""
    output("git", "init", "-q", checkout)
    output("git", "add", "-A", cwd=checkout)
    done = install(python, checkout, **{name: os.environ[name] for name in ("GOCACHE", "PGO") if name in os.environ})
    assert done.returncode == 0, done.stdout
    changes = output("git", "status", "--porcelain", cwd=checkout).splitlines()
    assert [line for line in changes if not line.startswith("A  ")] == []
    text = output(python.parent / "memtrace", "demo", "-o", "demo.bin", cwd=tmp_path)
    assert "Null GPU" in text and "complete: " in text
