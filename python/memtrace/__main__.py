# SPDX-License-Identifier: Apache-2.0
"""The command: `memtrace` and `python -m memtrace` become the executable that came with this package."""

from __future__ import annotations

import os
import sys

from ._files import own_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def other_distribution() -> str | None:
    """Returns the metadata folder of the distribution memtrace, a tool of others with modules of the same name, if it is installed in the same place."""
    site = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name in os.listdir(site):
        if name.startswith("memtrace-") and name.endswith((".dist-info", ".egg-info")):
            return name
    return None


def main() -> NoReturn:
    """Does not return: the process goes on as the command, with its arguments, its standard streams and its number."""
    other = other_distribution()
    if other:
        print(f"memtrace: warning: {other} is a tool of others that installs files of the same names, so one of the two is broken; "
              "keep this one by: pip uninstall memtrace && pip install --force-reinstall memtrace-gpu", file=sys.stderr, flush=True)  # what follows leaves nothing to flush
    command = own_command()
    if command is None:
        sys.exit("memtrace: error: this Python package came without the command; install the wheel (pip install memtrace-gpu), or build the checkout with make")
    arguments = sys.argv[1:]
    if arguments[:1] == ["demo"]:  # it looks for frameworks where this package is installed
        arguments[1:1] = ["--python", sys.executable]
    try:
        os.execv(command, ["memtrace", *arguments])
    except OSError as problem:
        sys.exit(f"memtrace: error: {command}: {problem.strerror}; is it for this machine? 'pip install --force-reinstall memtrace-gpu' gets the right one")


if __name__ == "__main__":
    main()
