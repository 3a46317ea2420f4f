# SPDX-License-Identifier: Apache-2.0
"""What the lines of a notebook's cells are called: `In [4] line 3: source`, not by the made-up files that IPython compiles them from."""

from __future__ import annotations

import linecache
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_inside: dict[str, int] = {}  # numbers of cells by the files of what stands below their first line, the magic's

SOURCE = 64  # letters of a name at most


def current(shell: Any) -> int:
    """Returns the number of the cell that runs."""
    return len(shell.user_ns.get("In", [""])) - 1 or int(shell.execution_count)


def inside(shell: Any, cell: str, number: int) -> None:
    """Says that what stands in a cell below the magic is about to run."""
    try:
        _inside[shell.compile.get_code_name(cell, shell.transform_cell(cell), shell.execution_count)] = number
    except (AttributeError, SyntaxError, TypeError):  # another IPython, or no Python: lines are counted from the magic's on
        pass


def named(shell: Any, text: str, keep_width: bool = False) -> str:
    """Returns a report's text with cells' lines by their names, which tables have as much room for as before."""
    for file, number in getattr(shell.compile, "_filename_map", {}).items():
        short = os.path.basename(file)
        if short in text:

            def name(found: re.Match[str], file: str = file, number: int = number) -> str:
                words = _line(file, number, int(found[1]))
                if not keep_width:
                    return _cut(words, SOURCE)
                return _cut(words, len(found[0])).ljust(len(found[0]))

            text = re.sub(r"(?:[\w.…-]*/)*" + re.escape(short) + r":(\d+)(?: [\w.<>]+)?", name, text)
    return text


def _line(file: str, number: int, line: int) -> str:
    source = linecache.getline(file, line).strip()
    return f"In [{_inside.get(file, number)}] line {line + (file in _inside)}" + (f": {source}" if source else "")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
