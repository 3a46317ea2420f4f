# SPDX-License-Identifier: Apache-2.0
"""Moments of a run: marks, steps, epochs, and whether anyone is recording."""

from __future__ import annotations

from itertools import count
from operator import index

from ._library import NUMBER_MAX, calls, encode_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import SupportsIndex


class _Counter:
    """Numbers for steps or epochs: those that the program gives, and consecutive ones where it gives none."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers = count()

    def take(self, number: SupportsIndex | None) -> int:
        """Returns number, or the one after the last taken; the first is 0. Threads never get the same number twice without asking for it."""
        if number is None:
            return next(self._numbers)
        taken = index(number)
        if not 0 <= taken <= NUMBER_MAX:
            raise ValueError(f"the number is {taken}: it must lie between 0 and {NUMBER_MAX}")
        self._numbers = count(taken + 1)
        return taken


_steps = _Counter()
_epochs = _Counter()


def step(n: SupportsIndex | None = None) -> int:
    """Says that an iteration of the program's main loop begins, and returns its number.

    Without n the steps are counted for the whole process: 0 at first, otherwise one more than the last, given or counted.
    Raises TypeError if n is no integer and ValueError if it is negative or does not fit 64 bits.
    """
    number = _steps.take(n)
    calls.step(number)
    return number


def epoch(n: SupportsIndex | None = None) -> int:
    """Says that an epoch, the program's own grouping of steps, begins, and returns its number. Counts and raises as step does."""
    number = _epochs.take(n)
    calls.epoch(number)
    return number


def mark(name: str) -> None:
    """Records a named moment, to which `memtrace report --at mark:NAME` refers. The same name may be used again.

    Raises TypeError or ValueError for names that memtrace.tag would refuse.
    """
    calls.mark(encode_name(name))


def active() -> bool:
    """Returns whether memory events are being recorded, or will be from the first CUDA call on."""
    return bool(calls.active())
