# SPDX-License-Identifier: Apache-2.0
"""The tag: a context manager and a decorator for functions of every kind."""

from __future__ import annotations

from functools import partial, wraps

from ._library import calls, encode_name
from ._task import in_loop
from ._task import pop as task_pop
from ._task import push as task_push

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, AsyncGenerator, Callable, Generator, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

# Bits of a code object's co_flags. The inspect module names them too, but importing it costs more than the rest of the package.
_GENERATOR = 0x20
_COROUTINE = 0x80
_ITERABLE_COROUTINE = 0x100
_ASYNC_GENERATOR = 0x200


class tag:
    """Puts a name on the calling thread's tag stack while a block or a function runs; memory that the thread takes meanwhile belongs to it.

        with memtrace.tag("encoder"):
            ...

        @memtrace.tag("attention")
        def attend(q, k, v): ...

    Nested tags make a path, joined by dots; a name may itself contain dots: tag("encoder.3"). Up to 64 levels and 4096 bytes are
    kept; deeper levels count but do not lengthen the path. The tag ends when the block is left, also by an exception. One tag object may be
    used many times, nested in itself, and by several threads at once.

    In asyncio's tasks a `with` block may contain `await`: each task has tags of its own, which hold while it runs. A decorated generator,
    coroutine or asynchronous generator carries the tag exactly while its own body runs, not while it is suspended. In a generator, and under
    an event loop that brings its own handles (uvloop, trio), a `with` block cannot know that it is suspended: do not put `yield` or `await`
    inside one where other work runs in the same thread meanwhile; decorate the function instead.

    A decorated plain function keeps its arguments alive until it returns, as every Python wrapper does. Where a function deletes an argument
    to free its memory early, use a `with` block inside.

    Raises TypeError if name is no string and ValueError if it is empty, longer than 255 bytes in UTF-8, or contains a zero character.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        if callable(name):
            raise TypeError('memtrace.tag needs a name: @memtrace.tag("name")')
        self._name = encode_name(name)

    def __enter__(self) -> tag:
        if in_loop():
            task_push(self._name)
        else:
            calls.tag_push(self._name)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if in_loop():
            task_pop()
        else:
            calls.tag_pop()

    def __call__(self, function: F) -> F:
        """Returns function wrapped so that it runs under the tag. Raises TypeError for what is no function."""
        if isinstance(function, (type, staticmethod, classmethod)) or not callable(function):
            raise TypeError(f"memtrace.tag decorates functions, not {type(function).__name__} objects: put it on a method, "
                            "below @staticmethod or @classmethod")
        wrapped: F = _wrap(function, self._name)
        return wrapped

    def __repr__(self) -> str:
        return f"memtrace.tag({self._name.decode('utf-8')!r})"

    def __reduce__(self) -> tuple[type[tag], tuple[str]]:
        return tag, (self._name.decode("utf-8"),)


def _wrap(function: Any, name: bytes) -> Any:
    flags = _code_flags(function)
    if flags & _ASYNC_GENERATOR:
        return _wrap_async_generator(function, name)
    if flags & _COROUTINE:
        return _wrap_coroutine(function, name)
    if flags & _GENERATOR:
        wrapper = _wrap_generator(function, name)
        if flags & _ITERABLE_COROUTINE:
            from types import coroutine

            return coroutine(wrapper)
        return wrapper
    return _wrap_plain(function, name)


def _code_flags(function: Any) -> int:
    """Returns co_flags of the Python code that a call of function runs, or 0 where that is not known (built-ins)."""
    while isinstance(function, partial):
        function = function.func
    if not hasattr(function, "__code__"):
        function = getattr(type(function), "__call__", None)
    code = getattr(function, "__code__", None)
    return int(getattr(code, "co_flags", 0))


def _wrap_plain(function: Any, name: bytes) -> Any:
    @wraps(function)
    def tagged(*arguments: Any, **keywords: Any) -> Any:
        calls.tag_push(name)
        try:
            return function(*arguments, **keywords)
        finally:
            calls.tag_pop()

    return tagged


# The wrappers below live as long as what they wrap, suspended most of the time. A tensor that they held meanwhile would be memory that the
# program does not use: they drop the arguments once these are passed on, and hand values over without keeping them in a local variable.
# For the same reason no frame that an error passes through keeps a reference that leads back to the error: the cycle would keep every
# tensor of the traceback's frames alive until the garbage collector comes by.


def _wrap_generator(function: Any, name: bytes) -> Any:
    @wraps(function)
    def tagged(*arguments: Any, **keywords: Any) -> Any:
        inner = function(*arguments, **keywords)
        del arguments, keywords
        return (yield from _drive(inner, name))

    return tagged


def _wrap_coroutine(function: Any, name: bytes) -> Any:
    @wraps(function)
    async def tagged(*arguments: Any, **keywords: Any) -> Any:
        inner = function(*arguments, **keywords)
        del arguments, keywords
        if not in_loop():
            return await _Driven(inner, name)
        task_push(name)
        try:
            return await inner
        finally:
            task_pop()

    return tagged


def _wrap_async_generator(function: Any, name: bytes) -> Any:
    @wraps(function)
    async def tagged(*arguments: Any, **keywords: Any) -> AsyncGenerator[Any, Any]:
        inner = function(*arguments, **keywords)
        del arguments, keywords
        resumption = inner.asend(None)
        handover: list[Any] = []
        while True:
            try:
                handover.append(await _Driven(resumption, name))
            except StopAsyncIteration:
                return
            finally:
                resumption = None
            try:
                sent = yield handover.pop()
            except GeneratorExit:
                await _Driven(inner.aclose(), name)
                raise
            except BaseException as error:
                resumption = inner.athrow(error)
            else:
                resumption = inner.asend(sent)
                sent = None

    return tagged


class _Driven:
    """Awaits a coroutine, or the awaitable of an asynchronous generator's step, under a tag."""

    __slots__ = ("_inner", "_name")

    def __init__(self, inner: Any, name: bytes) -> None:
        self._inner = inner
        self._name = name

    def __await__(self) -> Generator[Any, Any, Any]:
        return _drive(self._inner, self._name)


def _drive(inner: Any, name: bytes) -> Generator[Any, Any, Any]:
    """Does what `yield from inner` does, with the tag on the stack exactly while inner runs."""
    resume, argument = inner.send, None
    handover: list[Any] = []
    while True:
        calls.tag_push(name)
        try:
            handover.append(resume(argument))
        except StopIteration as stop:
            return stop.value
        except BaseException:
            inner = resume = None
            raise
        finally:
            calls.tag_pop()
            argument = None
        try:
            argument = yield handover.pop()
            resume = inner.send
        except GeneratorExit:
            calls.tag_push(name)
            try:
                inner.close()
            finally:
                calls.tag_pop()
            raise
        except BaseException as error:
            resume, argument = inner.throw, error
