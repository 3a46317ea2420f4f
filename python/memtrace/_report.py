# SPDX-License-Identifier: Apache-2.0
"""A trace's report as objects: a thin reading of `memtrace report --json` and `memtrace diff --json`."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields

from ._blocks import Blocks, load_blocks
from ._command import run_json
from ._trace import any_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GROUPINGS = ("category", "module", "site", "tag", "operator", "library", "phase", "inner", "function", "file", "line",
             "stream", "pool", "thread", "device", "name", "api")


@dataclass(frozen=True)
class Finding:
    """A statement of the report: docs/findings.md has the ids. bytes is None where it is about none."""

    id: str
    severity: str
    text: str
    bytes: int | None
    evidence: list[str]


@dataclass(frozen=True)
class Device:
    """A GPU. Bytes of the level that the report puts first, as PyTorch's blocks; reserved by its allocator."""

    index: int
    name: str
    total_bytes: int
    peak_bytes: int
    live_bytes: int
    reserved_peak_bytes: int


@dataclass(frozen=True)
class Iteration:
    """An iteration of the training loop. by_category is at its peak."""

    number: int
    epoch: int
    start_ns: int
    end_ns: int
    peak_bytes: int
    by_category: dict[str, int]
    alloc_count: int
    free_count: int


@dataclass(frozen=True)
class Change:
    """A row of a difference. state: new, gone, grew, shrank or same; bytes at the peaks."""

    key: str
    state: str
    base: int
    new: int
    delta: int


class Peak:
    """The moment at which most was allocated: bytes, time_ns, level (framework or driver), and who held it."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        level = trace.json[trace.level]
        self.level = trace.level
        self.bytes: int = level["peak_bytes"]
        self.time_ns: int = level["peak_time_ns"]

    def by(self, grouping: str) -> dict[str, int]:
        """Divides the bytes, most first; they add up. grouping: a name of memtrace report --by, such as module.
        Raises ValueError."""
        return {row["key"]: row["peak_bytes"] for row in self._trace.rows(grouping)}

    @property
    def by_category(self) -> dict[str, int]:
        """By what the memory was for, such as "Feature maps"."""
        return self.by("category")

    @property
    def by_module(self) -> dict[str, int]:
        """By module of the model."""
        return self.by("module")

    @property
    def by_site(self) -> dict[str, int]:
        """By place in the program, such as "train.py:41 Block.forward"."""
        return self.by("site")

    @property
    def by_tag(self) -> dict[str, int]:
        """By tag."""
        return self.by("tag")

    def __repr__(self) -> str:
        return f"Peak(bytes={self.bytes}, time_ns={self.time_ns}, level={self.level!r})"


class Diff:
    """What changed from a base to a new trace. bytes is (base, new, delta) of the peak; json is everything."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.json = value
        self.level: str = value["verdict"]["level"]
        self.bytes: dict[str, int] = _compared(value["verdict"]["bytes"])

    def by(self, grouping: str) -> list[Change]:
        """The rows of a grouping, growth first. Raises ValueError for one that load().diff() did not ask for."""
        for group in self.json["groups"]:
            if group["by"] == grouping and group["level"] == self.level:
                return [Change(row["key"], row["state"], **_compared(row["peak_bytes"])) for row in group["rows"]]
        found = sorted({group["by"] for group in self.json["groups"]})
        raise ValueError(f'no grouping "{grouping}"; choose from {", ".join(found)}')

    def frame(self, grouping: str = "site") -> Any:
        """The rows as a pandas DataFrame. Raises ImportError without pandas."""
        return _frame_of(_pandas(), Change, self.by(grouping))

    def __repr__(self) -> str:
        return f"Diff({self.bytes['delta']:+d} bytes)"


class Trace:
    """A trace. json is the whole report; docs/report-json.md has its fields."""

    def __init__(self, path: str, value: dict[str, Any]) -> None:
        self.path, self.json = path, value
        verdict = value["verdict"]
        self.level: str = verdict.get("level") or "driver"
        self.sentences: list[str] = verdict["sentences"]
        self.complete: bool = value["health"]["complete"]
        self.peak = Peak(self)
        self.findings = [Finding(one["id"], one["severity"], one["text"], one.get("bytes"), one["evidence"])
                         for one in value["findings"]]
        self.devices = [
            Device(one["index"], one.get("name", ""), one.get("total_bytes", 0), one[self.level]["peak_bytes"],
                   one[self.level]["live_bytes"], one["reserved_bytes_peak"]) for one in value["devices"]]
        self.iterations = _iterations(value.get("training"))
        self._groups: dict[str, list[Any]] = {}
        self._blocks: Blocks | None = None

    def rows(self, grouping: str) -> list[Any]:
        """The rows of a grouping as the report has them (docs/report-json.md, groups). Raises ValueError."""
        if grouping not in GROUPINGS:
            raise ValueError(f'no grouping "{grouping}"; choose from {", ".join(GROUPINGS)}')
        if grouping not in self._groups:
            value = _read("report", self.path, "--by", grouping)
            self._groups[grouping] = [row for group in value["groups"] for row in group["rows"]
                                      if (group["level"], group["by"]) == (self.level, grouping)]
        return self._groups[grouping]

    @property
    def blocks(self) -> Blocks:
        """Every block of the level, with its owner and its lifetime. Raises TraceError."""
        if self._blocks is None:
            self._blocks = load_blocks(self.path)
        return self._blocks

    def diff(self, new: Trace | str | os.PathLike[str], *by: str) -> Diff:
        """What a newer trace has more than this one. by: groupings; site, module, tag and category if none is named.
        Raises TraceError."""
        other = new.path if isinstance(new, Trace) else os.fspath(new)
        groupings = ",".join(by or ("site", "module", "tag", "category"))
        command = [any_command(), "--quiet", "diff", "--json", "--by", groupings, self.path, other]
        return Diff(run_json(command, "memtrace.diff/1"))

    def frame(self, of: str) -> Any:
        """A pandas DataFrame: findings, devices, iterations, marks, blocks, or the rows of a grouping such as category.
        Raises ImportError without pandas, ValueError for another name."""
        tables = ("findings", "devices", "iterations", "marks", "blocks")
        if of not in tables and of not in GROUPINGS:
            raise ValueError(f'no table "{of}"; choose from {", ".join((*tables, *GROUPINGS))}')
        pandas = _pandas()
        if of == "findings":
            return _frame_of(pandas, Finding, self.findings)
        if of == "devices":
            return _frame_of(pandas, Device, self.devices)
        if of == "iterations":
            frame = _frame_of(pandas, Iteration, self.iterations)
            held = pandas.DataFrame([one.by_category for one in self.iterations])
            return pandas.concat([frame.drop(columns="by_category"), held], axis=1)
        if of == "blocks":
            return _blocks_frame(pandas, self.blocks)
        rows = self.json["marks"] if of == "marks" else self.rows(of)
        return pandas.DataFrame([{name: value for name, value in row.items() if not isinstance(value, dict)}
                                 for row in rows])

    def __repr__(self) -> str:
        return f"Trace({self.path!r}, peak={self.peak.bytes} bytes)"


def _iterations(training: dict[str, Any] | None) -> list[Iteration]:
    if not training:
        return []
    names = training["categories"]
    return [Iteration(one["number"], one["epoch"], one["start_ns"], one["end_ns"], one["peak"]["bytes"],
                      dict(zip(names, one["peak"]["held"])), one["alloc_count"], one["free_count"])
            for one in training["iterations"] if one["ended"]]


def _blocks_frame(pandas: Any, blocks: Blocks) -> Any:
    times = [*blocks.times_ns, None]
    owners = [blocks.owners[owner] for owner in blocks.owner]
    columns: dict[str, list[Any]] = {
        "born_ns": [times[event] for event in blocks.born], "died_ns": [times[event] for event in blocks.died],
        "bytes": blocks.bytes, "requested": blocks.requested, "device": blocks.device}
    for name in ("category", "module", "site", "tag", "operator", "library"):
        columns[name] = [getattr(owner, name) for owner in owners]
    return pandas.DataFrame(columns)


def _compared(value: dict[str, int]) -> dict[str, int]:
    return {name: value[name] for name in ("base", "new", "delta")}


def _frame_of(pandas: Any, kind: Any, rows: list[Any]) -> Any:
    return pandas.DataFrame([asdict(row) for row in rows], columns=[field.name for field in fields(kind)])


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError("frames need pandas: pip install pandas; the objects of memtrace.load() do not") from None
    return pandas


def _read(verb: str, path: str, *flags: str) -> Any:
    return run_json([any_command(), "--quiet", verb, "--json", *flags, path], f"memtrace.{verb}/1")


def load(path: str | os.PathLike[str]) -> Trace:
    """Reads a trace. Raises TraceError: there is none, it is another file, or the command does not fit this package."""
    path = os.fspath(path)
    return Trace(path, _read("report", path))
