# SPDX-License-Identifier: Apache-2.0
"""The command and the recording library that came with this package: in a wheel, in a checkout that was built, or under a prefix of `make install`."""

from __future__ import annotations

import os

LIBRARY = "libmemtrace.so"
COMMAND = "memtrace"

_HERE = os.path.dirname(os.path.abspath(__file__))
# Seen from the package's folder: a wheel, a checkout, PREFIX/share/memtrace/python/memtrace.
_PLACES = {COMMAND: ("_bin", "../../build", "../../../../bin"), LIBRARY: ("_bin", "../../build", "../../../../lib")}


class TraceError(Exception):
    """Says in one sentence why a trace cannot be read."""


class NotFound(TraceError):
    """Says what is missing, and what to do about it."""


def _find(name: str) -> str | None:
    for place in _PLACES[name]:
        path = os.path.normpath(os.path.join(_HERE, place, name))
        if os.path.isfile(path):
            return path
    return None


def own_command() -> str | None:
    """Returns the path of the command that belongs to this package, None if it came without one."""
    return _find(COMMAND)


def library_path() -> str:
    """Returns the path of the recording library, for LD_PRELOAD where a launcher starts the program and `memtrace run` cannot.

    Raises FileNotFoundError where the package was put there without its files, as by copying the Python sources alone.
    """
    path = _find(LIBRARY)
    if path is None:
        raise FileNotFoundError(f"{_HERE} has no {LIBRARY} beside it: install the wheel (pip install memtrace-gpu), or build the checkout with make")
    return path
