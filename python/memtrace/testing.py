# SPDX-License-Identifier: Apache-2.0
"""Limits on the GPU memory of a test, for unittest and for code without a test framework.

    class TestModel(unittest.TestCase):
        @limit_gpu_memory("24 MB")
        def test_forward(self): ...

        def test_cache(self):
            with limit_gpu_leaks("1 MB", allow="tag:cache"):
                ...

With pytest, use the marks of the same names. The program must be recorded: memtrace run -- python3 -m unittest.
Elsewhere the limits are not checked, and a warning says so.
"""

from __future__ import annotations

import gc
import warnings
from contextlib import ContextDecorator
from copy import copy
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from itertools import count

from . import _moments
from ._blocks import Holding, Stretch, measure, own_blocks
from ._files import NotFound
from ._limits import Allowed, over_memory, over_leaks
from ._size import parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from ._limits import Allow

__unittest = True  # frames of this module are left out of unittest's tracebacks
_numbers = count(1)


class _Limit(ContextDecorator):
    """Measures what a block of code allocates. It may be used again, and nested."""

    def __init__(self, limit: int | str) -> None:
        self._limit = parse_size(limit)
        self._names: list[str] = []

    def __call__(self, func: Any) -> Any:
        """Limits each call of a function, of an asynchronous one until it has returned. Raises TypeError for what does
        nothing, or is not there, when it is called: a generator function and a class."""
        if isinstance(func, type):
            raise TypeError(f"{type(self).__name__} limits functions, and {func.__name__} is a class: decorate its "
                            "methods")
        if isgeneratorfunction(func) or isasyncgenfunction(func):
            raise TypeError(f"{type(self).__name__} limits functions, and {func.__name__} is a generator, which runs "
                            "after it was called: write a with statement in it")
        if iscoroutinefunction(func):
            @wraps(func)
            async def limited(*arguments: Any, **keywords: Any) -> Any:
                with self._again():
                    inner = func(*arguments, **keywords)
                    del arguments, keywords  # as in _tag.py: what they refer to is no longer held by this frame
                    return await inner
        else:
            @wraps(func)
            def limited(*arguments: Any, **keywords: Any) -> Any:
                with self._again():
                    return func(*arguments, **keywords)
        return limited

    def _again(self) -> _Limit:
        """Returns the same limit for one more call: calls of a function may overlap."""
        one = copy(self)
        one._names = []
        return one

    def __enter__(self) -> None:
        self._names.append(f"limit {next(_numbers)}")
        _moments.mark(self._names[-1])

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        __tracebackhide__ = True  # of pytest
        name = self._names.pop()
        if kind is not None:
            return
        if not _moments.active():
            warnings.warn("the limit on GPU memory was not checked: this program is not recorded; start it by: "
                          "memtrace run -- PROGRAM", RuntimeWarning, stacklevel=3)
            return
        self._before()
        end = f"{name} ended"
        _moments.mark(end)
        try:
            blocks = own_blocks(name)
        except NotFound:  # no CUDA call yet
            return
        events = dict(blocks.marks)
        stretch = Stretch(events[name], events[end], events[end], [(events[name], events[end])])
        measure(blocks, [stretch])
        problem = self._problem(stretch)
        if problem:
            raise AssertionError(problem)

    def _before(self) -> None:
        """What is done before memory is looked at."""

    def _problem(self, stretch: Stretch) -> str | None:
        raise NotImplementedError


class limit_gpu_memory(_Limit):  # noqa: N801, as the mark of pytest
    """Raises AssertionError if what is allocated in the block of code holds more than limit at once.

    limit: bytes, or a text such as "24 MB" (units are powers of 1024). What was allocated before does not count, nor
    do workspaces that libraries keep for the process. Raises ValueError if the limit is not a size.
    """

    def _problem(self, stretch: Stretch) -> str | None:
        return over_memory(stretch, self._limit)


class limit_gpu_leaks(_Limit):  # noqa: N801
    """Raises AssertionError if more than limit of what was allocated in the block of code is left behind it.

    allow: what may stay, as patterns such as "tag:cache", "category:Parameters", "site:model.py:*" or "module:head";
    filter_fn: called with each holding (its owner, bytes and count); what it returns False for does not count.
    Garbage is collected first. Raises ValueError if the limit is not a size or a pattern is wrong.
    """

    def __init__(self, limit: int | str = 0, allow: Allow = (),
                 filter_fn: Callable[[Holding], Any] | None = None) -> None:
        super().__init__(limit)
        self._allowed = Allowed(allow, filter_fn)

    def _before(self) -> None:
        gc.collect()

    def _problem(self, stretch: Stretch) -> str | None:
        return over_leaks(stretch, self._limit, self._allowed)
