# SPDX-License-Identifier: Apache-2.0
"""The marks that limit the GPU memory of tests."""

from __future__ import annotations

import inspect

import pytest

from ._limits import Allowed
from ._size import parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

    from ._blocks import Holding
    from ._limits import Allow

MEMORY, LEAKS = "limit_gpu_memory", "limit_gpu_leaks"

MARKS = (
    f"{MEMORY}(limit, total=False): fail the test if what it allocates holds more than limit, such as '24 MB', of GPU "
    "memory at once; with total=True all GPU memory counts, as in torch.cuda.max_memory_allocated(). "
    "Needs pytest --memtrace.",
    f"{LEAKS}(limit=0, allow=(), filter_fn=None): fail the test if it leaves more than limit, such as '1 MB', of what "
    "its call allocated. allow: what may stay, such as 'tag:cache', 'category:Parameters' or ['site:model.py:*', "
    "'module:head']; filter_fn(holding): what it returns False for does not count. Needs pytest --memtrace.",
)


class MemoryLimit:
    """The arguments of limit_gpu_memory, checked."""

    def __init__(self, limit: int | str, total: bool = False) -> None:
        self.limit = parse_size(limit)
        if not isinstance(total, bool):
            raise ValueError(f"total is {total!r}; write True or False")
        self.total = total


class LeakLimit:
    """The arguments of limit_gpu_leaks, checked."""

    def __init__(self, limit: int | str = 0, allow: Allow = (),
                 filter_fn: Callable[[Holding], Any] | None = None) -> None:
        self.limit = parse_size(limit)
        self.allowed = Allowed(allow, filter_fn)


def memory_limit(item: Any) -> MemoryLimit | None:
    """The limit on what a test holds: that of the nearest mark. Raises UsageError."""
    found: MemoryLimit | None = _read(item, MEMORY, MemoryLimit)
    return found


def leak_limit(item: Any) -> LeakLimit | None:
    """The limit on what a test leaves: that of the nearest mark. Raises UsageError."""
    found: LeakLimit | None = _read(item, LEAKS, LeakLimit)
    return found


def _read(item: Any, name: str, kind: Any) -> Any:
    mark = item.get_closest_marker(name)
    if mark is None:
        return None
    try:
        inspect.signature(kind).bind(*mark.args, **mark.kwargs)
    except TypeError as problem:
        form = ", ".join(inspect.signature(kind).parameters)
        raise pytest.UsageError(f"{item.nodeid}: {name}: {problem}; it takes {form}") from None
    try:
        return kind(*mark.args, **mark.kwargs)
    except ValueError as problem:
        raise pytest.UsageError(f"{item.nodeid}: {name}: {problem}") from None


def check_marks(items: Iterable[Any]) -> None:
    """Raises UsageError for the first mark with a mistake."""
    for item in items:
        memory_limit(item)
        leak_limit(item)
