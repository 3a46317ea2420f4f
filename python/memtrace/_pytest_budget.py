# SPDX-License-Identifier: Apache-2.0
"""The file of `pytest --memtrace-budget`: a line for each test, in TOML, whose comments stay."""

from __future__ import annotations

import difflib
import json
import os
import re

from ._size import exact_size, parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

TABLE = "[tests]"
HEAD = ["# The most GPU memory that each test may hold of its own. Written by: pytest --memtrace-update", ""]
LARGEST = 16 << 20  # bytes of a file

_TABLE = re.compile(r"\s*\[\s*tests\s*\]\s*(#.*)?")
_ENTRY = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\'[^\']*\')\s*=\s*("(?:[^"\\]|\\.)*"|\'[^\']*\'|\d[\d_]*)\s*(#.*)?')


class BudgetError(Exception):
    """Why a budget cannot be read or written, in one sentence."""


class _Entry:
    def __init__(self, limit: int, text: str, above: list[str], behind: str) -> None:
        self.limit = limit  # bytes
        self.text = text  # of the limit, as it is written
        self.above = above  # comments that belong to it
        self.behind = behind  # a comment in the same line


class Budget:
    """Limits by test, and the comments among them. Raises BudgetError, which names file and line."""

    def __init__(self, path: str) -> None:
        self.path = os.path.relpath(path)
        self._head: list[str] = []
        self._entries: dict[str, _Entry] = {}
        self._foot: list[str] = []
        self.exists = os.path.exists(path)
        if self.exists:
            self._read()

    def _read(self) -> None:
        try:
            with open(self.path, encoding="utf-8-sig") as file:  # some editors begin with a byte order mark
                text = file.read(LARGEST + 1)
        except (OSError, UnicodeDecodeError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else "is not text in UTF-8"
            raise BudgetError(f"{self.path}: {reason}") from None
        if len(text) > LARGEST:
            raise BudgetError(f"{self.path}: a budget may have {LARGEST} characters")
        waiting: list[str] = []
        in_table = False
        for number, line in enumerate(text.splitlines(), 1):
            bare = line.strip()
            if not in_table and _TABLE.fullmatch(line):
                in_table, self._head, waiting = True, [*waiting, line], []
            elif not bare or bare.startswith("#"):
                waiting.append(line)
            else:
                self._take(number, line, in_table, waiting)
                waiting = []
        self._foot = waiting
        if not in_table:
            self._head = [TABLE]

    def _take(self, number: int, line: str, in_table: bool, above: list[str]) -> None:
        where = f"{self.path}:{number}"
        match = _ENTRY.fullmatch(line)
        if not match or not in_table:
            raise BudgetError(f'{where}: write {TABLE}, and below it a line for each test, such as '
                              '"tests/test_model.py::test_forward" = "24 MiB"')
        test, limit = _unquote(match[1]), _unquote(match[2])
        if test in self._entries:
            raise BudgetError(f"{where}: a second budget of {test}; remove one")
        try:
            size = parse_size(int(limit.replace("_", "")) if limit.replace("_", "").isdigit() else limit)
        except ValueError as problem:
            raise BudgetError(f"{where}: {problem}") from None
        self._entries[test] = _Entry(size, match[2], above, match[3] or "")

    def __contains__(self, test: str) -> bool:
        return test in self._entries

    def tests(self) -> list[str]:
        """The tests that have a budget."""
        return list(self._entries)

    def limit(self, test: str) -> int | None:
        """The budget of a test in bytes, None without one."""
        entry = self._entries.get(test)
        return entry.limit if entry else None

    def update(self, measured: dict[str, int], gone: Iterable[str]) -> tuple[int, int, int]:
        """Gives tests the budgets that they need, forgets those that are gone, and writes the file, sorted by test.
        Returns how many budgets are new, changed and gone."""
        new = changed = left = 0
        for test in gone:
            left += self._entries.pop(test, None) is not None
        for test, size in measured.items():
            size = -(-size // 1024) * 1024 if size > 1024 else size  # whole KiB are easier to read
            entry = self._entries.get(test)
            if entry is None:
                self._entries[test] = _Entry(size, json.dumps(exact_size(size)), [], "")
                new += 1
            elif entry.limit != size:
                entry.limit, entry.text = size, json.dumps(exact_size(size))
                changed += 1
        if new or changed or left or not self.exists:
            self._write()
        return new, changed, left

    def _write(self) -> None:
        lines = list(self._head) or [*HEAD, TABLE]
        for test in sorted(self._entries):
            entry = self._entries[test]
            lines += [*entry.above, f"{json.dumps(test, ensure_ascii=False)} = {entry.text}  {entry.behind}".rstrip()]
        fresh = f"{self.path}.{os.getpid()}.new"
        try:
            with open(fresh, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write("\n".join([*lines, *self._foot]) + "\n")
            os.replace(fresh, self.path)
        except OSError as problem:
            raise BudgetError(f"{self.path}: cannot be written: {problem.strerror}") from None

    def unknown(self, collected: set[str], root: str) -> list[str]:
        """Tests with a budget that do not exist: their file is gone, or was collected without them."""
        files = {test.partition("::")[0] for test in collected}

        def gone(test: str) -> bool:
            file = test.partition("::")[0]
            return file in files or not os.path.exists(os.path.join(root, file))

        return [test for test in self._entries if test not in collected and gone(test)]


def unknown_text(path: str, test: str, collected: Iterable[str]) -> str:
    """The sentence about a budget for a test that does not exist."""
    near = difflib.get_close_matches(test, list(collected), 1, 0.8)
    hint = f"did you mean {near[0]}?" if near else "--memtrace-update removes it"
    return f"{path} has a budget for {test}, and there is no such test; {hint}"


def _unquote(text: str) -> str:
    if text[0] == '"':
        try:
            value = json.loads(text)
        except ValueError:
            return text[1:-1]
        return str(value)
    return text[1:-1] if text[0] == "'" else text
