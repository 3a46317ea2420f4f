# SPDX-License-Identifier: Apache-2.0
"""Where this process's own trace is, and the command that reads it."""

from __future__ import annotations

import os

from ._files import LIBRARY, NotFound, own_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

SPOOL = ".spool"


def _mapped_files() -> list[str]:
    """Paths of the files that are mapped into this process, each once."""
    paths: dict[str, None] = {}
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            slash = line.find("/")
            if slash >= 0:
                paths[line[slash:].rstrip("\n").replace("\\012", "\n")] = None  # the only character that the kernel escapes here
    return list(paths)


def find_trace() -> str:
    """Returns the path of the trace that this process is writing. Raises NotFound if there is none: recording starts with the first CUDA call."""
    spools = [path for path in _mapped_files() if path.endswith(SPOOL)]
    # A forked child may still have its parent's, which was mapped before its own.
    for spool in reversed(spools):
        trace = spool[: -len(SPOOL)]
        if os.path.isfile(trace):
            return trace
        for opened in _open_files():  # MEMTRACE_SPOOL_DIR: a link beside the trace leads to the spool
            if os.path.exists(opened + SPOOL) and os.path.samefile(opened + SPOOL, spool):
                return opened
        if os.path.exists(spool):
            return spool  # nothing was moved to the trace yet
    raise NotFound("the program made no CUDA call yet, so there is no trace to show")


def _open_files() -> Iterator[str]:
    """Paths of the open files of all threads: the recorder's has descriptors of its own."""
    for task in os.listdir("/proc/self/task"):
        folder = f"/proc/self/task/{task}/fd"
        try:
            numbers = os.listdir(folder)
        except OSError:  # the thread ended meanwhile
            continue
        for number in numbers:
            try:
                yield os.readlink(f"{folder}/{number}")
            except OSError:  # closed meanwhile, as that of the list itself
                continue


def find_command() -> str:
    """Returns the path of the memtrace command, or raises NotFound. The one that came with the library reads its spool for sure; this package's own and that of
    PATH come after it."""
    for library in _mapped_files():
        if os.path.basename(library) == LIBRARY:
            folder = os.path.dirname(library)
            for place in ("memtrace", "../bin/memtrace", "../../bin/memtrace"):
                command = os.path.normpath(os.path.join(folder, place))
                if os.path.isfile(command) and os.access(command, os.X_OK):
                    return command
    return any_command()


def any_command() -> str:
    """Returns the path of the command for any trace: this package's own, else that of PATH. Raises NotFound."""
    import shutil

    found = own_command() or shutil.which("memtrace")
    if found is None:
        raise NotFound("the command memtrace was not found beside the library or in PATH; install the wheel: pip install memtrace-gpu")
    return found
