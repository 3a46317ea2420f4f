# SPDX-License-Identifier: Apache-2.0
"""`%load_ext memtrace`: the answer of a notebook's cell, or of all that ran so far, in a few lines and a picture."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
import time

from . import _cells, _moments
from ._command import run_command
from ._files import NotFound
from ._size import format_size
from ._start import start
from ._trace import find_command, find_trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LINES = 6
WIDTH = 110  # of a line
_marks: dict[str, int] = {}


def register(shell: Any) -> None:
    """Gives an IPython shell the magic: %memtrace and %%memtrace."""

    def memtrace(line: str, cell: str | None = None) -> Answer | None:
        """Shows where GPU memory was: six lines, and in a notebook a picture.

            %memtrace                at the peak of all that ran so far
            %%memtrace               runs the cell, and shows its peak: the highest from its beginning to its end
            %%memtrace FLAG...       the same as a report: the flags are those of `memtrace report`, such as --details or --by category

        A cell's beginning is a mark, In[4] of the cell In [4], which other commands take as mark:In[4]. In a kernel that was not started under
        memtrace (memtrace run -- jupyter lab) recording begins here, as by memtrace.start().
        """
        flags = shlex.split(line)
        try:
            start()
        except (OSError, RuntimeError) as problem:
            print(f"memtrace: this kernel cannot be recorded: {problem}")
            if cell is not None:
                shell.run_cell(cell)
            return None
        window: list[str] = []
        if cell is not None:
            number = _cells.current(shell)
            name = _mark(number)
            _cells.inside(shell, cell, number)
            shell.run_cell(cell)
            window = ["--from", f"mark:{name}"]
        try:
            if not flags:
                return Answer(shell, window)
            text = _run("report", *window, *flags)
            print(text if "--json" in flags or "--brief" in flags else _cells.named(shell, text, keep_width=True), end="")
        except (NotFound, OSError) as problem:
            print(f"memtrace: {problem}")
        return None

    shell.register_magic_function(memtrace, "line_cell")


def _mark(number: int) -> str:
    """Marks the beginning of a cell, by a name that no mark had before."""
    name = f"In[{number}]"
    _marks[name] = _marks.get(name, 0) + 1
    if _marks[name] > 1:
        name += f".{_marks[name]}"
    _moments.mark(name)
    return name


def _run(command: str, *arguments: str) -> str:
    return run_command([find_command(), "--quiet", command, *arguments, find_trace()])


class Answer:
    """What a cell's memory was: lines in a terminal, with a picture in a notebook."""

    def __init__(self, shell: Any, window: list[str]) -> None:
        self._window = window
        brief = _brief(window)
        lines = brief["sentences"][:2]
        room = LINES - 1 - len(lines)
        for owner in brief.get("owners", [])[:room]:
            lines.append(f"{format_size(owner['bytes']):>10} {owner['share']:>6}  {owner['name']}")
        lines.append("More: " + " ".join(["memtrace report", *[shlex.quote(word) for word in window], shlex.quote(os.path.relpath(find_trace()))]))
        self._lines = [_cut(_cells.named(shell, text)) for text in lines]

    def __repr__(self) -> str:
        return "\n".join(self._lines)

    def _repr_html_(self) -> str:
        from base64 import b64encode
        from html import escape

        text = f'<pre style="white-space: pre-wrap">{escape(repr(self))}</pre>'
        try:
            with tempfile.TemporaryDirectory() as folder:
                picture = os.path.join(folder, "cell.svg")
                _run("plot", *self._window, "--kind", "timeline", "--title", "GPU memory", "-o", picture)
                with open(picture, "rb") as file:
                    image = b64encode(file.read()).decode("ascii")
        except (NotFound, OSError):  # nothing was allocated
            return text
        return f'{text}<img alt="GPU memory over time" style="max-width: 100%" src="data:image/svg+xml;base64,{image}">'


def _brief(window: list[str]) -> Any:
    """The brief report. Which PyTorch it was is in the trace about a second after its first allocation."""
    for _ in range(5):
        brief = json.loads(_run("report", *window, "--brief"))
        if "torch" not in sys.modules or "PyTorch" in brief["facts"].get("software", "") or not brief.get("owners"):
            break
        time.sleep(0.5)
    return brief


def _cut(text: str) -> str:
    return text if len(text) <= 2 * WIDTH else text[: 2 * WIDTH - 1] + "…"
