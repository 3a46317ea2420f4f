# SPDX-License-Identifier: Apache-2.0
"""Limits on what a test holds and leaves, and the sentences that say by whom they are exceeded."""

from __future__ import annotations

import difflib
import fnmatch
import re

from ._size import format_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence, Union

    from ._blocks import Holding, Owner, Stretch

    Allow = Union[str, Sequence[str]]

OTHERS = "Others"  # the category of what nothing is known of
# What patterns name, as the gates of memtrace check do (internal/check/subject.go).
SUBJECTS = ("tag", "category", "module", "site", "operator", "library")


class Allowed:
    """What may be left behind: patterns KIND:NAME with * and ?, and a function."""

    def __init__(self, allow: Allow = (), filter_fn: Callable[[Holding], Any] | None = None) -> None:
        if isinstance(allow, str):
            allow = (allow,)
        if filter_fn is not None and not callable(filter_fn):
            raise ValueError(f"filter_fn is {filter_fn!r}; give a function that takes a holding")
        self._patterns = [_pattern(text) for text in allow]
        self._filter = filter_fn

    def __call__(self, holding: Holding) -> bool:
        """Returns whether the holding may stay."""
        if any(matches(holding.owner) for matches in self._patterns):
            return True
        return self._filter is not None and not self._filter(holding)


def _pattern(text: object) -> Callable[[Owner], bool]:
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is no pattern; write a text such as \"tag:cache\"")
    kind, colon, name = text.partition(":")
    kind, name = kind.strip(), name.strip()
    if kind not in SUBJECTS:
        near = difflib.get_close_matches(kind, SUBJECTS, 1)
        raise ValueError(f'"{text}": unknown kind "{kind}"; '
                         + (f"did you mean {near[0]}:?" if near else f"choose from {', '.join(SUBJECTS)}"))
    if not name:
        raise ValueError(f'"{text}" needs a name, such as {kind}:NAME')
    flags = re.IGNORECASE if kind == "category" else 0
    expression = re.compile(fnmatch.translate(name.replace("[", "[[]")), flags)
    below = {"tag": (f"{name}.", f"{name}/"), "module": (f"{name}.",), "site": (f"{name} ", f"{name}:"),
             "library": (f"{name}.so",)}.get(kind, ())

    def matches(owner: Owner) -> bool:
        key: str = getattr(owner, kind)
        return bool(expression.match(key)) or key.startswith(below) if below else bool(expression.match(key))

    return matches


def most(category: str, site: str, count: int) -> str:
    """The part of a sentence that says who holds most."""
    return f"; most is {format_size(count)}{'' if category == OTHERS else f' of {category}'} at {site}"


def excess(count: int, limit: int) -> str:
    """The part of a sentence that says by how much a limit is exceeded."""
    return f"{format_size(count - limit)} over the limit of {format_size(limit)}"


def over_memory(stretch: Stretch, limit: int, total: bool = False) -> str | None:
    """Says what is over a limit on the most that is held at once, None if nothing is."""
    held = stretch.peak_bytes if total else stretch.own_bytes
    if held <= limit:
        return None
    text = f"GPU memory reached {format_size(held)}, {excess(held, limit)}"
    for holding in (stretch.peak_owners if total else stretch.owners)[:1]:
        text += most(holding.owner.category, holding.owner.site, holding.bytes)
    return text


def over_leaks(stretch: Stretch, limit: int, allowed: Allowed) -> str | None:
    """Says what is over a limit on what is left, None if nothing is."""
    left = [holding for holding in stretch.left if not allowed(holding)]
    total = sum(holding.bytes for holding in left)
    if total <= limit:
        return None
    beyond = excess(total, limit) if limit else "and nothing may be left"
    first = left[0]
    return (f"{format_size(total)} of GPU memory were left, {beyond}"
            + most(first.owner.category, first.owner.site, first.bytes))
