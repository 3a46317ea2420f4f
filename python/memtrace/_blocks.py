# SPDX-License-Identifier: Apache-2.0
"""Every block of a trace with its owner, and what stretches of the run held: read from `memtrace export blocks`."""

from __future__ import annotations

from ._command import run_json
from ._files import NotFound, TraceError
from ._trace import find_command, find_trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

SCHEMA = "memtrace.blocks/1"
LIMIT = 20_000_000  # blocks; each takes about 100 bytes while they are read
WORKSPACE = "Workspace"  # the category of what libraries keep for the whole process, such as that of cuBLAS


class Owner:
    """Who allocated blocks: category, module, site ("model.py:41 Block.forward"), tag, operator, library; function,
    file (as it was recorded) and line of the program's own code, None and 0 where that is not known."""

    __slots__ = ("category", "module", "inner", "site", "tag", "operator", "library", "function", "file", "line")

    category: str
    module: str
    inner: str
    site: str
    tag: str
    operator: str
    library: str

    def __init__(self, keys: dict[str, str], function: str | None, file: str | None, line: int) -> None:
        for name in self.__slots__[:7]:
            setattr(self, name, keys.get(name, "(unknown)"))
        self.function, self.file, self.line = function, file, line

    def __repr__(self) -> str:
        return f"{self.category} at {self.site}"


class Holding:
    """What one owner holds: owner, bytes (as the program asked for them) and count of blocks."""

    __slots__ = ("owner", "bytes", "count")

    def __init__(self, owner: Owner) -> None:
        self.owner, self.bytes, self.count = owner, 0, 0

    def __repr__(self) -> str:
        return f"{self.bytes} bytes, {self.owner}"


class Blocks:
    """The blocks of the level that reports put first, as columns.

    born and died are numbers of events, died of a block that is never freed is len(times_ns). bytes, requested (of
    them, what the program asked for), device and owner (an index of owners) are of each block. marks are (name, number
    of events before it), in order.
    """

    def __init__(self, value: dict[str, Any]) -> None:
        self.level: str = value["level"]
        self.lost_records: int = value["lost_records"]
        self.left_out: int = value["left_out"]
        self.times_ns: list[int] = value["times_ns"]
        self.born: list[int] = value["born"]
        self.died: list[int] = value["died"]
        self.bytes: list[int] = value["bytes"]
        self.requested: list[int] = value["requested"]
        self.device: list[int] = value["device"]
        self.owner: list[int] = value["owner"]
        self.marks: list[tuple[str, int]] = [(mark["name"], mark["event"]) for mark in value["marks"]]
        by: list[str] = value["by"]
        self.owners = [Owner(dict(zip(by, one["keys"])), one["function"] or None, one["file"] or None, one["line"])
                       for one in value["owners"]]
        self._changes: list[int] = []

    def __len__(self) -> int:
        return len(self.born)

    def holdings(self, blocks: Iterable[int], by: tuple[str, ...] = ("category", "site")) -> list[Holding]:
        """Adds up blocks whose owners are alike in some attributes, most first."""
        found: dict[tuple[str, ...], Holding] = {}
        for block in blocks:
            owner = self.owners[self.owner[block]]
            holding = found.setdefault(tuple(getattr(owner, name) for name in by), Holding(owner))
            holding.bytes += self.requested[block]
            holding.count += 1
        return sorted(found.values(), key=lambda one: (-one.bytes, one.owner.site, one.owner.category))

    def changes(self) -> list[int]:
        """Of each event the block that begins, or ~block of the one that ends."""
        if not self._changes:
            self._changes = [0] * len(self.times_ns)
            for block, (born, died) in enumerate(zip(self.born, self.died)):
                self._changes[born] = block
                if died < len(self.times_ns):
                    self._changes[died] = ~block
        return self._changes

    def live(self, event: int) -> list[Holding]:
        """Who holds what behind an event."""
        return self.holdings(b for b in range(len(self)) if self.born[b] <= event < self.died[b])

    def workspace(self, block: int) -> bool:
        """Returns whether a library keeps the block for the whole process, whoever happens to come first."""
        return self.owners[self.owner[block]].category == WORKSPACE


def load_blocks(path: str) -> Blocks:
    """Reads the blocks of a trace. Raises NotFound where there is no command, or TraceError."""
    return _export(find_command(), path)


def own_blocks(since: str | None = None) -> Blocks:
    """Reads the blocks of this process's own trace, up to now; since is the mark before which ends of blocks are of no
    interest. Raises NotFound where nothing was recorded yet, or TraceError."""
    try:
        command = find_command()
    except NotFound as problem:
        raise TraceError(str(problem)) from None
    return _export(command, find_trace(), *(() if since is None else ("--from", f"mark:{since}")))


def _export(command: str, path: str, *flags: str) -> Blocks:
    words = [command, "--quiet", "export", "blocks", "--limit", str(LIMIT), "-o", "-", *flags, path]
    return Blocks(run_json(words, SCHEMA))


class Stretch:
    """A part of the run, and what it held.

    begin, end and ended are numbers of events: the peak is looked for from begin to end, what is left at ended. own
    are ranges of events, in order and apart: what is allocated in them is the stretch's own.
    """

    def __init__(self, begin: int, end: int, ended: int, own: list[tuple[int, int]]) -> None:
        self.begin, self.end, self.ended, self.own = begin, end, ended, own
        # On all devices and on each: PyTorch's max_memory_allocated(), had it been reset at the beginning.
        self.peak_bytes = 0
        self.peak_by_device: dict[int, int] = {}
        self.peak_event = begin - 1  # behind which it is reached
        self.peak_owners: list[Holding] = []  # whoever asks for them fills them in: Blocks.live(peak_event)
        # The most that own blocks, without workspaces, held at once from begin to end: as the program asked for it,
        # since what an allocator adds depends on what was freed before.
        self.own_bytes = 0
        self.owners: list[Holding] = []  # of these bytes
        self.left: list[Holding] = []  # own blocks that began from begin to end and were there at ended

    @property
    def left_bytes(self) -> int:
        """What is left, in bytes."""
        return sum(holding.bytes for holding in self.left)


def measure(blocks: Blocks, stretches: list[Stretch]) -> None:
    """Fills in stretches, which must be in order and apart."""
    changes = blocks.changes()
    live: dict[int, int] = {}
    event = 0
    for stretch in stretches:
        for change in changes[event:stretch.begin]:
            _apply(blocks, live, change)
        event = max(event, stretch.begin)
        _walk(blocks, stretch, changes, live)
        event = max(event, stretch.end)


def _apply(blocks: Blocks, live: dict[int, int], change: int) -> int:
    """Counts a change, and returns its device."""
    block, sign = (change, 1) if change >= 0 else (~change, -1)
    device = blocks.device[block]
    live[device] = live.get(device, 0) + sign * blocks.bytes[block]
    return device


def _walk(blocks: Blocks, stretch: Stretch, changes: list[int], live: dict[int, int]) -> None:
    mine = {changes[event] for first, behind in stretch.own for event in range(first, behind)
            if changes[event] >= 0 and not blocks.workspace(changes[event])}
    own = most = sum(blocks.requested[b] for b in mine if blocks.born[b] < stretch.begin <= blocks.died[b])
    highest = stretch.begin - 1  # the event behind which own is most
    stretch.peak_bytes, stretch.peak_by_device = sum(live.values()), dict(live)
    for event in range(stretch.begin, stretch.end):
        change = changes[event]
        device = _apply(blocks, live, change)
        if change >= 0:
            stretch.peak_by_device[device] = max(stretch.peak_by_device.get(device, 0), live[device])
            if sum(live.values()) > stretch.peak_bytes:
                stretch.peak_bytes, stretch.peak_event = sum(live.values()), event
            if change in mine:
                own += blocks.requested[change]
                if own > most:
                    most, highest = own, event
        elif ~change in mine:
            own -= blocks.requested[~change]
    stretch.own_bytes = most
    stretch.owners = blocks.holdings(b for b in mine if blocks.born[b] <= highest < blocks.died[b])
    left = (b for b in mine if blocks.born[b] >= stretch.begin and blocks.died[b] >= stretch.ended)
    stretch.left = blocks.holdings(left, Owner.__slots__)
