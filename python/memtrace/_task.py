# SPDX-License-Identifier: Apache-2.0
"""Tags of asyncio's tasks: a task that is suspended inside of a `with` block takes its tags along, and brings them back when it goes on."""

from __future__ import annotations

import sys
from _thread import _local as local  # importing the module threading costs more than this package
from contextvars import ContextVar

from ._library import calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

# The tags of the present task, outermost first.
_tags: ContextVar[tuple[bytes, ...]] = ContextVar("memtrace_tags", default=())


class _Turn(local):
    """What an event loop's thread has on its tag stack for the callback that it runs now."""

    depth = 0  # levels
    watched = False  # the callback runs under _run_watched, which takes them away in the end


_turn = _Turn()
_original: Callable[[Any], Any] | None = None


def in_loop() -> bool:
    """Returns whether the calling thread runs an asyncio event loop whose tasks can be followed."""
    asyncio = sys.modules.get("asyncio")
    running = getattr(asyncio, "_get_running_loop", None)
    if running is None or running() is None:
        return False
    if _original is None:
        _watch(sys.modules["asyncio.events"])
    return True


def _watch(events: Any) -> None:
    """Has every callback of asyncio's event loops run by _run_watched. Loops with callbacks of their own kind, such as uvloop's, stay as they are."""
    global _original
    _original = events.Handle._run
    events.Handle._run = _run_watched


def _run_watched(handle: Any) -> Any:
    assert _original is not None
    if _turn.depth and not _turn.watched:  # of the callback during which watching began
        _leave(_turn.depth)
    before = handle._context.get(_tags, ())
    for name in before:
        calls.tag_push(name)
    _turn.depth, _turn.watched = len(before), True
    try:
        return _original(handle)
    finally:
        _leave(_turn.depth)
        _turn.watched = False
        handle = None  # the frame may live on in a traceback


def _leave(levels: int) -> None:
    for _ in range(levels):
        calls.tag_pop()
    _turn.depth = 0


def push(name: bytes) -> None:
    """Puts a tag on the present task's stack."""
    calls.tag_push(name)
    _tags.set((*_tags.get(), name))
    _turn.depth += 1


def pop() -> None:
    """Takes the present task's latest tag away."""
    tags = _tags.get()
    if tags:  # else the block was entered outside of the loop
        _tags.set(tags[:-1])
        _turn.depth -= 1
    calls.tag_pop()
