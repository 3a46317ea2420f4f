# SPDX-License-Identifier: Apache-2.0
"""The command, run for what it says of a trace."""

from __future__ import annotations

import os

from ._files import NotFound, TraceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run_command(command: list[str]) -> str:
    """Returns what a command printed. Raises NotFound with its words if it failed."""
    import subprocess

    # The command is not the program: it is not to be recorded, nor to find the program's preloaded libraries.
    variables = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
    if done.returncode != 0:
        raise NotFound(done.stderr.strip() or f"{command[0]} ended with status {done.returncode}")
    return done.stdout


def run_json(command: list[str], schema: str) -> Any:
    """Returns the JSON that a command printed, whose schema must be that one. Raises TraceError."""
    import json

    try:
        text = run_command(command)
    except NotFound as problem:
        said = str(problem)
        if "no format" in said or "unknown flag" in said:
            said = f"{command[0]} is older than this package ({said}); install both from one release"
        raise TraceError(said.split(": ", 1)[1] if said.startswith("memtrace") and ": " in said else said) from None
    except OSError as problem:
        raise TraceError(f"{command[0]}: {problem.strerror}; is it for this machine?") from None
    try:
        value = json.loads(text)
        if isinstance(value, list):
            raise TraceError(f"{command[-1]} has {len(value)} traces; name one of them")
        found = value["schema"]
    except (ValueError, TypeError, KeyError):
        raise TraceError(f"{command[0]} printed no {schema}; it must be from this package's release") from None
    if found != schema:
        raise TraceError(f"{command[0]} writes {found} and this package reads {schema}; install both from one release")
    return value
