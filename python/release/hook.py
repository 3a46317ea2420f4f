# SPDX-License-Identifier: Apache-2.0
"""Compiles what a wheel holds beside the Python package: hatchling runs this for `pip install .` and for `make wheel`.

Variables, which scripts/wheel.sh sets:

    MEMTRACE_WHEEL_PLATFORM   the platform of the wheel's tag; without it this machine's, for this machine only
    MAKEFLAGS                 of make: where to build, with which compiler
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sbom  # noqa: E402, beside this file, which hatchling loads by its path

# Where the files lie in the package; python/memtrace/_files.py looks for them there.
PLACE = "memtrace/_bin"


class Refusal(Exception):
    """Why nothing can be built, and what to do."""


def wanted_go(root: str) -> tuple[int, ...]:
    """The version of Go that go.mod asks for, such as (1, 26)."""
    with open(os.path.join(root, "go.mod"), encoding="utf-8") as file:
        found = re.search(r"^go (\d+)\.(\d+)", file.read(), re.MULTILINE)
    if not found:
        raise Refusal("go.mod names no version of Go")
    return int(found[1]), int(found[2])


def check_tools(root: str) -> None:
    """Refuses, in one sentence, where this machine cannot compile."""
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"):
        raise Refusal(f"memtrace-gpu works on Linux on x86-64 and 64-bit Arm, not on {platform.system()} on {platform.machine()}")
    major, minor = wanted_go(root)
    need = f"building memtrace-gpu from its sources needs Go {major}.{minor} or newer (https://go.dev/dl), gcc and make"
    missing = [tool for tool in (os.environ.get("GO", "go"), os.environ.get("CC", "gcc"), "make") if not shutil.which(tool)]
    if missing:
        raise Refusal(f"{need}: {' and '.join(missing)} not found; wheels need none of them")
    said = subprocess.run([os.environ.get("GO", "go"), "env", "GOVERSION"], cwd=root, stdout=subprocess.PIPE, encoding="utf-8").stdout
    found = re.match(r"go(\d+)\.(\d+)", said)
    # Any Go from 1.21 on fetches the one that go.mod asks for, unless that is switched off: then it says an older version, or nothing.
    if not found or (int(found[1]), int(found[2])) < (major, minor):
        raise Refusal(f"{need}: {said.strip() or 'the one that was found does not work'}")


class Hook(BuildHookInterface):
    """Builds the files with make and puts them into the package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        try:
            check_tools(self.root)
        except Refusal as refusal:
            raise SystemExit(f"memtrace-gpu: {refusal}") from None
        if version == "editable":  # the package finds build/ in its checkout
            self.make("all", "demo-guest", "nullcuda")
            return
        self.files = tempfile.TemporaryDirectory(prefix="memtrace-wheel-")
        stage = os.path.join(self.files.name, "stage")
        self.make("stage", f"STAGE={stage}")
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + os.environ.get("MEMTRACE_WHEEL_PLATFORM", f"linux_{platform.machine()}")
        build_data["force_include"][stage] = PLACE
        bill = os.path.join(self.files.name, sbom.NAME)
        with open(bill, "w", encoding="utf-8") as file:
            file.write(sbom.document(self.root, self.metadata.version, [os.path.join(stage, name) for name in ("memtrace", "libmemtrace.so")]))
        if "sbom_files" in build_data:  # hatchling from 1.28 on
            build_data["sbom_files"].append(bill)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self.files.cleanup()

    def make(self, *arguments: str) -> None:
        jobs = f"-j{len(os.sched_getaffinity(0))}"
        # The version is the package's: one number for all that is installed together.
        done = subprocess.run(["make", "--no-print-directory", jobs, *arguments, f"VERSION={self.metadata.version}"], cwd=self.root)
        if done.returncode != 0:
            raise SystemExit(f"memtrace-gpu: make {arguments[0]} failed in {self.root}: the error is above (with pip, add -v)")
