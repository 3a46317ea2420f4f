# SPDX-License-Identifier: Apache-2.0
"""`%load_ext memtrace`: the report of a notebook's cell, or of all that ran so far."""

from __future__ import annotations

import shlex
from itertools import count

from . import _moments
from ._files import NotFound
from ._profiler import run_command
from ._trace import find_command, find_trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOT_RECORDED = ("memtrace: this kernel is not recorded, so there is nothing to show; start the notebook by: memtrace run -- jupyter lab "
                "(or: memtrace run -- ipython)")

_numbers = count(1)


def register(shell: Any) -> None:
    """Gives an IPython shell the magic: %memtrace and %%memtrace."""

    def memtrace(line: str, cell: str | None = None) -> None:
        """Shows where GPU memory was.

            %memtrace [FLAG...]      at the peak of all that ran so far
            %%memtrace [FLAG...]     runs the cell, and shows its peak: the highest from its beginning to its end

        The flags are those of `memtrace report`, such as --details or --by category. The kernel must have been started under memtrace: memtrace run -- jupyter lab
        """
        flags = shlex.split(line)
        if cell is None:
            _show(flags)
            return
        name = f"cell-{next(_numbers)}"
        _moments.mark(name)
        shell.run_cell(cell)
        _show(["--since", f"mark:{name}", *flags])

    shell.register_magic_function(memtrace, "line_cell")


def _show(flags: list[str]) -> None:
    if not _moments.active():
        print(NOT_RECORDED)
        return
    try:
        print(run_command([find_command(), "--quiet", "report", *flags, find_trace()]), end="")
    except (NotFound, OSError) as problem:
        print(f"memtrace: {problem}")
