# SPDX-License-Identifier: Apache-2.0
"""The C functions of memtrace.h, found once in the running process, or stand-ins that do nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

# Longest name in bytes; MEMTRACE_NAME_MAX of memtrace.h.
NAME_MAX = 255
# Largest number that memtrace_step and memtrace_epoch take.
NUMBER_MAX = 2**64 - 1


class Calls:
    """One attribute per C function. The first call of any of them looks all of them up and replaces the attributes.

    The look-up waits for the first call because a program that imports the package but never tags anything should not pay for ctypes.
    """

    __slots__ = ("tag_push", "tag_pop", "mark", "step", "epoch", "active")

    tag_push: Callable[[bytes], object]
    tag_pop: Callable[[], object]
    mark: Callable[[bytes], object]
    step: Callable[[int], object]
    epoch: Callable[[int], object]
    active: Callable[[], object]

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Looks the functions up again at the next call: the library may have been loaded since."""
        for name in self.__slots__:
            setattr(self, name, self._resolving(name))

    def _resolving(self, name: str) -> Callable[..., object]:
        def first_call(*arguments: Any) -> object:
            self._resolve()
            return getattr(self, name)(*arguments)

        return first_call

    def _resolve(self) -> None:
        # Two threads may both come here; they find the same functions, and each assignment is atomic.
        found = _find() or _absent()
        for name, function in found.items():
            setattr(self, name, function)


def _find() -> dict[str, Callable[..., object]] | None:
    """Returns the library's functions, or None where the process has no library or one without the whole API."""
    try:
        import ctypes

        # PyDLL, not CDLL: the functions return in well under a microsecond and never wait for another thread, so giving up the
        # interpreter lock around them would cost more than the call (a `with` block takes 0.3 to 0.4 us instead of 0.7) and would invite
        # a thread switch at every tag.
        process = ctypes.PyDLL(None)
        functions: dict[str, tuple[Any, list[Any]]] = {
            "tag_push": (process.memtrace_tag_push, [ctypes.c_char_p]),
            "tag_pop": (process.memtrace_tag_pop, []),
            "mark": (process.memtrace_mark, [ctypes.c_char_p]),
            "step": (process.memtrace_step, [ctypes.c_uint64]),
            "epoch": (process.memtrace_epoch, [ctypes.c_uint64]),
            "active": (process.memtrace_active, []),
        }
    except (ImportError, OSError, AttributeError):
        return None
    for name, (function, argument_types) in functions.items():
        function.argtypes = argument_types
        # A push that was refused still counts as a level, so its result changes nothing here and is not converted.
        function.restype = ctypes.c_int if name == "active" else None
    return {name: function for name, (function, _) in functions.items()}


def _absent() -> dict[str, Callable[..., object]]:
    def nothing(*_arguments: object) -> None:
        return None

    return dict.fromkeys(Calls.__slots__, nothing)


calls = Calls()


def encode_name(name: str) -> bytes:
    """Returns the bytes that the library gets for a tag's or a mark's name.

    Raises TypeError for anything but a string, and ValueError for a string that is empty, contains a zero character, or is longer than 255
    bytes in UTF-8. The check is the same with and without the library.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name must be a string, not {type(name).__name__}")
    # Lone surrogates stand for undecodable bytes of file names: they must not raise in a program that only wants to be measured.
    encoded = name.encode("utf-8", "backslashreplace")
    if not encoded:
        raise ValueError("the name is empty: give at least one character")
    if len(encoded) > NAME_MAX:
        raise ValueError(f"the name has {len(encoded)} bytes: at most {NAME_MAX} are allowed")
    if b"\0" in encoded:
        raise ValueError("the name contains a zero character: leave it out")
    return encoded
