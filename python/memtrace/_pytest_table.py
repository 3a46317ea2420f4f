# SPDX-License-Identifier: Apache-2.0
"""The table at the end of `pytest --memtrace`: what each test held of GPU memory, and who held most."""

from __future__ import annotations

import os

from ._size import format_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Row = dict[str, Any]

GAP = "  "
LEAST_NAME, LEAST_OWNER = 20, 18


def table(tests: list[Row], fixtures: list[Row], width: int) -> list[str]:
    """The lines of both tables, most memory first. Tests without memory of their own are counted in the last line."""
    shown = sorted((row for row in tests if row["own_bytes"] or row["left_bytes"]),
                   key=lambda row: (-row["own_bytes"], -row["peak_bytes"], row["test"]))
    lines: list[str] = []
    if shown:
        files = {row["test"].partition("::")[0] for row in shown}
        head = f"test of {os.path.basename(files.pop())}" if len(files) == 1 else ""
        rows = [(_short(row["test"], bool(head)), _size(row["own_bytes"]), _size(row["peak_bytes"]),
                 _size(row["left_bytes"]), row["owner"]) for row in shown]
        lines += _layout((head or "test", "own", "peak", "left", "most of its own"), rows, width)
    if fixtures:
        held = sorted(fixtures, key=lambda row: (-row["held_bytes"], row["fixture"]))
        rows = [(f"{row['fixture']} ({row['scope']})", _size(row["held_bytes"]), _size(row["peak_bytes"]), "",
                 row["owner"]) for row in held]
        lines += ["", *_layout(("fixture", "held", "peak", "", "most of it"), rows, width), ""]
    without = len(tests) - len(shown)
    if without:
        lines.append("1 test held no GPU memory of its own." if without == 1 else
                     f"{without} tests held no GPU memory of their own.")
    return lines


def _short(test: str, no_file: bool) -> str:
    """A test without the folders of its file, or without the file."""
    file, colons, rest = test.partition("::")
    return rest if no_file else os.path.basename(file) + colons + rest


def _size(count: int) -> str:
    return format_size(count) if count else "-"


def _layout(head: tuple[str, ...], rows: list[tuple[Any, ...]], width: int) -> list[str]:
    sizes = [max(len(row[i]) for row in [head, *rows]) for i in range(4)]
    room = max(width - sum(sizes[1:]) - 4 * len(GAP), LEAST_NAME + LEAST_OWNER)
    name = min(sizes[0], max(LEAST_NAME, room - max(len(_owners(row[4])[-1]) for row in rows), room // 2))
    lines = []
    for row in [head, *rows]:
        owner = row[4] if row is head else _fitting(_owners(row[4]), room - name)
        cells = [_tail(row[0], name).ljust(name), *(row[i].rjust(sizes[i]) for i in (1, 2, 3)), owner]
        lines.append(GAP.join(cells).rstrip())
    return lines


def _owners(owner: Row | None) -> list[str]:
    """Forms of an owner, the longest first."""
    if not owner:
        return [""]
    site, category = owner["site"], owner["category"]
    back = "backward of "
    place = site[len(back):] if site.startswith(back) else site
    place = place.split(" ")[0] if ":" in place else place
    if category == "Others":
        return [site, place]
    return [f"{site}, {category}", f"{place}, {category}", place]


def _fitting(forms: list[str], width: int) -> str:
    return next((form for form in forms if len(form) <= width), _tail(forms[-1], width))


def _tail(text: str, width: int) -> str:
    """A text that fits: of a longer one the end, by which tests differ."""
    return text if len(text) <= width else f"…{text[len(text) - width + 1:]}"
