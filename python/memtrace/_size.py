# SPDX-License-Identifier: Apache-2.0
"""Sizes as the command reads and writes them: units are powers of 1024, with or without the i."""

from __future__ import annotations

import re

_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_NUMBER = re.compile(r"\+?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?")


def parse_size(text: object) -> int:
    """Returns a number of bytes: of 24 MB, 24MiB, 24M, or of an integer. Raises ValueError in one sentence."""
    if isinstance(text, int) and not isinstance(text, bool) and 0 <= text < 2**63:
        return text
    if isinstance(text, str):
        lower = text.strip().lower()
        number = _NUMBER.match(lower)
        unit = lower[number.end():].strip() if number else "?"
        if unit.endswith("b"):
            unit = unit[:-1]
        if unit.endswith("i"):
            unit = unit[:-1]
        if number and unit in _SHIFTS:
            value = float(number.group()) * 2.0 ** _SHIFTS[unit]
            size = int(value + 0.5) if value < 2.0**63 else 2**63
            if size < 2**63 and (size > 0 or value == 0):
                return size
    shown = f'"{text}"' if isinstance(text, str) else repr(text)
    raise ValueError(f"{shown} is not a size; write a number with KiB, MiB, GiB or TiB, such as 10GiB")


def format_size(count: float) -> str:
    """Bytes with three digits, as in reports."""
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{count:.0f} B" if unit == "B" else f"{value:.{2 if value < 10 else 1}f} {unit}"


def exact_size(count: int) -> str:
    """Bytes in the largest unit that needs no more than one decimal: parse_size reads the same number back."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        halves, rest = divmod(count * 2, 1 << shift)
        if halves > 1 and rest == 0:
            return f"{halves // 2}{'.5' if halves % 2 else ''} {unit}"
    return f"{count} B"
