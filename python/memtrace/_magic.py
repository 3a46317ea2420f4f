# SPDX-License-Identifier: Apache-2.0
"""`%load_ext memtrace`: the report of a notebook's cell, or of all that ran so far."""

from __future__ import annotations

import shlex
from itertools import count

from . import _moments
from ._files import NotFound
from ._profiler import run_command
from ._start import start
from ._trace import find_command, find_trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_numbers = count(1)


def register(shell: Any) -> None:
    """Gives an IPython shell the magic: %memtrace and %%memtrace."""

    def memtrace(line: str, cell: str | None = None) -> None:
        """Shows where GPU memory was.

            %memtrace [FLAG...]      at the peak of all that ran so far
            %%memtrace [FLAG...]     runs the cell, and shows its peak: the highest from its beginning to its end

        The flags are those of `memtrace report`, such as --details or --by category. In a kernel that was not started under memtrace
        (memtrace run -- jupyter lab) recording begins here, as by memtrace.start().
        """
        flags = shlex.split(line)
        try:
            start()
        except (OSError, RuntimeError) as problem:
            print(f"memtrace: this kernel cannot be recorded: {problem}")
            if cell is not None:
                shell.run_cell(cell)
            return
        if cell is None:
            _show(flags)
            return
        name = f"cell-{next(_numbers)}"
        _moments.mark(name)
        shell.run_cell(cell)
        _show(["--since", f"mark:{name}", *flags])

    shell.register_magic_function(memtrace, "line_cell")


def _show(flags: list[str]) -> None:
    try:
        print(run_command([find_command(), "--quiet", "report", *flags, find_trace()]), end="")
    except (NotFound, OSError) as problem:
        print(f"memtrace: {problem}")
