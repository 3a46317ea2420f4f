# SPDX-License-Identifier: Apache-2.0
"""Which events of the trace belong to which test or fixture: what runs is marked, and found again by these marks."""

from __future__ import annotations

import hashlib
import re

from . import _moments
from ._blocks import Blocks, Stretch, load_blocks, measure, own_blocks
from ._files import NotFound, TraceError
from ._library import NAME_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

    Row = dict[str, Any]

# Names that pytest gives to setUpClass, setup_module and their like.
_SETUP = re.compile(r"_(?:unittest|xunit)_(\w+?)_fixture_(.+)")

CALL, CALLED, ENDED = "pytest: call", "pytest: called", "pytest: ended"
FIXTURE, READY = "pytest: fixture", "pytest: fixture ready"
MOST = 5  # owners of what is left that are listed
EARLY = 64  # marks before the first CUDA call that the library keeps


class _Test:
    def __init__(self, name: str) -> None:
        self.name = name
        self.marks: dict[str, int] = {}  # places in Phases._marks
        self.fixtures: list[tuple[int, int]] = []  # the same, of fixtures of wider scopes that were set up meanwhile


class _Fixture:
    def __init__(self, name: str, scope: str, begin: int) -> None:
        self.name, self.scope, self.begin, self.ready = name, scope, begin, -1


class Phases:
    """Tests in the order in which they ran, and the marks that were set around what they did."""

    def __init__(self) -> None:
        self._marks: list[str] = []
        self._tests: list[_Test] = []
        self._fixtures: list[_Fixture] = []
        self._open: list[_Fixture] = []  # those that are set up now, the innermost last

    def _mark(self, name: str) -> int:
        self._marks.append(name)
        _moments.mark(name)
        return len(self._marks) - 1

    def begin(self, test: str) -> None:
        """A test begins with the setup of its fixtures."""
        self._tests.append(_Test(test))
        self._tests[-1].marks["begin"] = self._mark(mark_name(test))

    def call(self) -> None:
        """The test itself begins."""
        self._tests[-1].marks["call"] = self._mark(CALL)

    def called(self) -> None:
        """The test itself has ended."""
        self._tests[-1].marks["called"] = self._mark(CALLED)

    def finished(self) -> bool:
        """Returns whether the test itself has run."""
        return "called" in self._tests[-1].marks

    def end(self) -> None:
        """Its fixtures are finalized."""
        self._tests[-1].marks["ended"] = self._mark(ENDED)

    def fixture(self, name: str, scope: str) -> None:
        """The setup of a fixture that is wider than one test begins."""
        self._fixtures.append(_Fixture(name, scope, self._mark(mark_name(f"{FIXTURE} {name}"))))
        self._open.append(self._fixtures[-1])

    def fixture_ready(self) -> None:
        """The setup of the fixture that began last has ended."""
        fixture = self._open.pop()
        fixture.ready = self._mark(READY)
        if self._tests and not self._open:
            self._tests[-1].fixtures.append((fixture.begin, fixture.ready))

    def now(self) -> Stretch | None:
        """What the present test held so far, None if there was no CUDA call. Raises TraceError."""
        test = self._tests[-1]
        last = self._mark(ENDED)
        name = self._marks[test.marks["begin"]]
        try:
            blocks = own_blocks(name)
        except NotFound:
            return None
        stretch = _stretch(test, _events(blocks, self._marks, test.marks["begin"]), last)
        measure(blocks, [stretch])
        stretch.peak_owners = blocks.live(stretch.peak_event)
        return stretch

    def rows(self, recorded: bool) -> tuple[list[Row], list[Row]]:
        """The figures of all tests and fixtures. recorded: whether there is a trace. Raises TraceError."""
        if not recorded:
            return [_test_row(test, Stretch(0, 0, 0, [])) for test in self._tests], []
        try:
            blocks = own_blocks()
        except NotFound as problem:
            raise TraceError(str(problem)) from None
        events = _events(blocks, self._marks)
        stretches = [_stretch(test, events, test.marks.get("ended", len(events) - 1)) for test in self._tests]
        measure(blocks, stretches)
        tests = [_test_row(test, stretch) for test, stretch in zip(self._tests, stretches)]
        fixtures = [_fixture_row(fixture, blocks, events) for fixture in self._fixtures]
        return tests, [row for row in fixtures if row["peak_bytes"]]


class _Read(Phases):
    """Those of a process that has ended, by the marks in its trace."""

    def _mark(self, name: str) -> int:
        self._marks.append(name)
        return len(self._marks) - 1

    def rows_of(self, blocks: Blocks, tests: Iterable[str]) -> list[Row]:
        """The figures of the tests. Of one in which the process ended, nothing is left."""
        names = {mark_name(test): test for test in tests}
        events = [event for name, event in blocks.marks if self._take(name, names)]
        events.append(len(blocks.times_ns))
        stretches = [_stretch(test, events, test.marks.get("ended", len(events) - 1)) for test in self._tests]
        measure(blocks, stretches)
        for test, stretch in zip(self._tests, stretches):
            if "ended" not in test.marks:
                stretch.left = []
        return [_test_row(test, stretch) for test, stretch in zip(self._tests, stretches)]

    def _take(self, name: str, tests: dict[str, str]) -> bool:
        """Notices a mark, and returns whether it is one of pytest's: tests may set their own."""
        count = len(self._marks)
        if name in tests:
            if not self._tests or self._tests[-1].name != tests[name] or "ended" in self._tests[-1].marks:
                self.begin(tests[name])
        elif name == READY and self._open:  # before the next: its text could be that of a fixture
            self.fixture_ready()
        elif name.startswith(FIXTURE + " "):
            self.fixture(name[len(FIXTURE) + 1:], "")
        elif name in (CALL, CALLED, ENDED) and self._tests:
            {CALL: self.call, CALLED: self.called, ENDED: self.end}[name]()
        return len(self._marks) > count


def recovered(trace: str, tests: Iterable[str]) -> list[Row]:
    """The figures of the tests that ran in a process which ended before it could read them. Raises TraceError."""
    blocks = load_blocks(trace)
    _check_whole(blocks)
    return _Read().rows_of(blocks, tests)


def mark_name(test: str) -> str:
    """The mark of a test: its name, of a long one the beginning and a digest."""
    name = test.encode("utf-8", "backslashreplace")
    if len(name) <= NAME_MAX:
        return name.decode()
    digest = hashlib.sha256(name).hexdigest()[:16]
    return name[:NAME_MAX - 20].decode("utf-8", "ignore") + "~" + digest


def _events(blocks: Blocks, marks: list[str], since: int = -1) -> list[int]:
    """The number of events before each mark. since is the first that the trace must have; by default those may be
    missing for which there was no room before the first CUDA call. Raises TraceError where it has others."""
    _check_whole(blocks)
    ours = set(marks)
    found = [(name, event) for name, event in blocks.marks if name in ours]
    missing = len(marks)  # what is found has the marks from there on, and maybe some of tests with the same names
    for name, _ in reversed(found):
        if missing and name == marks[missing - 1]:
            missing -= 1
    if since < 0:
        since = len(marks) if len(found) >= EARLY else 0
    if missing > since:
        raise TraceError("the trace does not have the marks of all tests")
    events = [0] * missing  # nothing had been allocated
    for name, event in found:
        if len(events) < len(marks) and name == marks[len(events)]:
            events.append(event)
    return events


def _check_whole(blocks: Blocks) -> None:
    """Raises TraceError where the figures would not be true."""
    if blocks.lost_records:
        raise TraceError(f"{blocks.lost_records} records were lost; see docs/lost-records.md")
    if blocks.left_out:
        raise TraceError(f"the trace has {blocks.left_out} blocks too many")


def _stretch(test: _Test, events: list[int], ended: int) -> Stretch:
    begin, end = events[test.marks["begin"]], events[ended]
    # Of a test that was skipped, or whose fixtures failed, there is no call.
    call = events[test.marks["call"]] if "call" in test.marks else end
    called = events[test.marks["called"]] if "called" in test.marks else end
    own, at = [], begin
    for first, last in test.fixtures:
        own.append((at, events[first]))
        at = events[last]
    own.append((at, max(called, at)))
    return Stretch(call, called, end, own)


def _owner(holdings: list[Any]) -> Row | None:
    if not holdings:
        return None
    owner = holdings[0].owner
    return {"category": owner.category, "site": owner.site, "module": owner.module, "tag": owner.tag,
            "operator": owner.operator, "file": owner.file, "line": owner.line, "bytes": holdings[0].bytes}


def _test_row(test: _Test, stretch: Stretch) -> Row:
    devices = [{"index": device, "peak_bytes": peak} for device, peak in sorted(stretch.peak_by_device.items())]
    return {"test": test.name, "outcome": "", "own_bytes": stretch.own_bytes, "peak_bytes": stretch.peak_bytes,
            "devices": devices, "left_bytes": stretch.left_bytes, "owner": _owner(stretch.owners),
            "left": [_owner([one]) for one in stretch.left[:MOST]], "budget_bytes": None}


def _fixture_row(fixture: _Fixture, blocks: Blocks, events: list[int]) -> Row:
    begin, ready = events[fixture.begin], events[fixture.ready]
    stretch = Stretch(begin, ready, ready, [(begin, ready)])
    measure(blocks, [stretch])
    parts = _SETUP.fullmatch(fixture.name)
    name = f"{parts[2]}.{parts[1]}" if parts else fixture.name
    return {"fixture": name, "scope": fixture.scope, "peak_bytes": stretch.own_bytes,
            "held_bytes": stretch.left_bytes, "owner": _owner(stretch.owners)}
