# SPDX-License-Identifier: Apache-2.0
"""What `pytest --memtrace` does while tests run, and what it says in the end.

Tests and fixtures are marks in the trace; their figures are read from it, by the command. With pytest-xdist each worker
reads its own trace and hands its rows to the process that started it.
"""

from __future__ import annotations

import gc
import json
import os
import time
from glob import escape as glob_escape
from glob import glob

import pytest

from ._files import NotFound, TraceError
from ._limits import excess, most, over_leaks, over_memory
from ._pytest_budget import Budget, BudgetError, unknown_text
from ._pytest_marks import leak_limit, memory_limit
from ._pytest_phases import Phases, recovered
from ._pytest_table import table
from ._size import format_size
from ._trace import find_trace
from .pytest_plugin import TRACES, is_worker, make_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Generator

    from .pytest_plugin import Settings

    Row = dict[str, Any]

SCHEMA = "memtrace.pytest/1"
FILE = "tests.json"
KEY = "memtrace"  # of what workers hand over


class Recorder:
    """One for each process that has pytest's session."""

    def __init__(self, config: Any, settings: Settings, budget: Budget | None) -> None:
        self._config, self._settings, self._budget = config, settings, budget
        self._phases = Phases()
        self._began = time.time()
        self._collected: set[str] = set()
        # Whether files are collected in part: then a budget of another test is none of a test that does not exist.
        self._chosen = any("::" in str(argument) for argument in config.args) or getattr(config.option, "lf", False)
        self._outcomes: dict[str, str] = {}
        self._parts: list[Row] = []  # of each process that ran tests
        self._trace: str | None = None  # of this worker
        self._traces: dict[str, str] = {}  # of each worker, as far as its reports say
        self._dead: dict[str, str] = {}  # workers that ended before they handed over their part, and why
        self._problems: list[str] = []
        self._said: list[str] = []  # lines about the budget

    # While tests run

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        self._collected = {item.nodeid for item in items}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, object, object]:
        self._phases.begin(item.nodeid)
        try:
            return (yield)
        finally:
            self._phases.end()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        name = fixturedef.argname
        if hasattr(request, "param"):
            name += f"[{request.param if isinstance(request.param, (str, int, float)) else request.param_index}]"
        self._phases.fixture(name, fixturedef.scope)
        try:
            return (yield)
        finally:
            self._phases.fixture_ready()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: Any) -> Generator[None, object, object]:
        self._phases.call()
        try:
            value = yield
        finally:
            self._phases.called()
        limit = memory_limit(item)
        if limit:
            self._fail(over_memory, limit.limit, limit.total)
        return value

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: Any) -> Generator[None, object, object]:
        value = yield
        limit = leak_limit(item)
        if limit and self._phases.finished():
            # pytest does so next: what fixtures returned is not left behind by the test.
            if getattr(item, "funcargs", None):
                item.funcargs.clear()
            gc.collect()
            self._fail(over_leaks, limit.limit, limit.allowed)
        return value

    def _fail(self, judge: Any, *arguments: Any) -> None:
        """Ends the test if it is over a limit."""
        try:
            stretch = self._phases.now()
        except TraceError as problem:
            pytest.fail(f"memtrace: the limit cannot be checked: {problem}", pytrace=False)
        text = judge(stretch, *arguments) if stretch else None
        if text:
            pytest.fail(text, pytrace=False)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if getattr(report, "memtrace_trace", None):
            self._traces[getattr(report, "worker_id", "")] = report.memtrace_trace
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "xfailed" if report.skipped else "xpassed"
        before = self._outcomes.get(report.nodeid)
        if before != "failed" and (report.when == "call" or before is None or outcome == "failed"):
            self._outcomes[report.nodeid] = outcome

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        report = yield
        if is_worker(self._config) and not self._trace:
            try:
                self._trace = find_trace()
            except NotFound:
                return report  # no CUDA call yet
        report.memtrace_trace = self._trace  # the process may not live to hand it over with its figures
        return report

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        part = getattr(node, "workeroutput", {}).get(KEY)
        if part is None:
            self._dead[node.gateway.id] = str(error or "it ended")
        else:
            self._parts.append(part)

    # In the end

    def _own_part(self) -> Row:
        """The rows of the tests that ran in this process."""
        part: Row = {"worker": os.environ.get("PYTEST_XDIST_WORKER", ""), "trace": None, "problem": None, "tests": [],
                     "fixtures": [], "unknown": []}
        if self._budget and not self._chosen:
            part["unknown"] = [(test, unknown_text(self._budget.path, test, self._collected))
                               for test in self._budget.unknown(self._collected, self._settings.root)]
        try:
            try:
                part["trace"] = find_trace()
            except NotFound:
                pass  # no CUDA call
            part["tests"], part["fixtures"] = self._phases.rows(part["trace"] is not None)
        except TraceError as problem:
            part["problem"] = f"the figures of {part['worker'] or 'this session'} are missing: {problem}"
        return part

    def _dead_part(self, worker: str, why: str) -> Row:
        """The rows of the tests that ran in a worker which died."""
        part: Row = {"worker": worker, "trace": self._traces.get(worker), "problem": None, "tests": [], "fixtures": [],
                     "unknown": []}
        try:
            if not part["trace"]:
                raise TraceError("its trace is not known, since it died in the first test with a CUDA call")
            part["tests"] = recovered(part["trace"], self._outcomes)
            self._said.append(f"worker {worker} died ({why}); the figures of its tests are from its trace")
        except (TraceError, NotFound) as problem:
            part["problem"] = f"worker {worker} died ({why}) without its figures: {problem}"
        return part

    def pytest_sessionstart(self) -> None:
        # A process that ends within a test says nothing any more; the file of the session before must not stand for it.
        if self._settings.asked and not self._config.option.collectonly and not is_worker(self._config):
            self._write(["the session did not end: a test or a signal ended the process, or it still runs"], [])

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: Any) -> None:
        if not self._settings.asked or self._config.option.collectonly:
            return
        if is_worker(self._config):
            self._config.workeroutput[KEY] = self._own_part()
        else:
            self._finish(session)

    def _finish(self, session: Any) -> None:
        """Gathers all rows, holds them against the budget, and writes the file."""
        self._parts += [self._dead_part(worker, why) for worker, why in self._dead.items()]
        if not self._parts:
            self._parts.append(self._own_part())
        self._problems += [part["problem"] for part in self._parts if part["problem"]]
        self._parts.sort(key=lambda part: part["worker"])
        for row in self._tests():
            row["outcome"] = self._outcomes.get(row["test"], "")
        if self._budget:
            self._judge(session)
        if self._problems and self._budget:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        self._write(self._problems, self._tests())

    def _tests(self) -> list[Row]:
        return [row for part in self._parts for row in part["tests"]]

    def _judge(self, session: Any) -> None:
        assert self._budget is not None
        highest: dict[str, Row] = {}
        for row in self._tests():
            if row["test"] not in highest or row["own_bytes"] > highest[row["test"]]["own_bytes"]:
                highest[row["test"]] = row
        unknown = dict(pair for part in self._parts for pair in part["unknown"])
        if self._settings.update:
            self._update(session, highest, list(unknown))
            return
        without, failed = 0, list(unknown.values())
        for test, row in sorted(highest.items()):
            limit = self._budget.limit(test)
            row["budget_bytes"] = limit
            if limit is None:
                without += bool(row["own_bytes"])
            elif row["own_bytes"] > limit:
                held = row["own_bytes"]
                failed.append(f"{test} held {format_size(held)}, {excess(held, limit)}{_most(row)}")
        self._said += [f"OVER BUDGET  {line}" if " held " in line else line for line in failed]
        if without:
            tests = "1 test has" if without == 1 else f"{without} tests have"
            self._said.append(f"{tests} no budget in {self._budget.path}; --memtrace-update adds them")
        if failed:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        else:
            within = len(highest) - without
            self._said.append("The test is within its budget." if within == 1 else
                              f"All {within} tests are within their budget.")

    def _update(self, session: Any, highest: dict[str, Row], gone: list[str]) -> None:
        assert self._budget is not None
        measured = {test: row["own_bytes"] for test, row in highest.items()
                    if row["outcome"] == "passed" and (row["own_bytes"] or test in self._budget)}
        try:
            new, changed, left = self._budget.update(measured, gone)
            self._said.append(f"{self._budget.path}: {new} budgets are new, {changed} changed, {left} removed.")
        except BudgetError as problem:
            self._problems.append(str(problem))
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def _write(self, problems: list[str], tests: list[Row]) -> None:
        """Writes the file for programs, and removes the traces of the session that had it before."""
        path = os.path.join(self._settings.folder, FILE)
        traces = [part["trace"] for part in self._parts if part["trace"]]
        value = {"schema": SCHEMA, "traces": traces, "other_traces": self._others(traces),
                 "problems": problems, "tests": tests,
                 "fixtures": [row for part in self._parts for row in part["fixtures"]]}
        try:
            make_folder(self._settings.folder)
            _forget(path, traces)
            with open(path, "w", encoding="utf-8") as file:
                json.dump(value, file, indent=1)
                file.write("\n")
        except OSError as problem:
            self._problems.append(f"{path}: cannot be written: {problem.strerror}")

    def _others(self, traces: list[str]) -> list[str]:
        """Traces of processes that tests started."""
        found = glob(os.path.join(glob_escape(self._settings.folder), TRACES))
        return sorted(path for path in found if path not in traces and os.path.getmtime(path) >= self._began)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._settings.asked or self._config.option.collectonly:
            return
        terminalreporter.section("GPU memory")
        fixtures = [row for part in self._parts for row in part["fixtures"]]
        for line in table(self._tests(), fixtures, terminalreporter._tw.fullwidth):
            terminalreporter.write_line(line)
        for line in [*self._said, *(f"memtrace: {problem}" for problem in self._problems)]:
            terminalreporter.write_line(line, red=line.startswith(("OVER", "memtrace")))
        for line in self._where():
            terminalreporter.write_line(line)

    def _where(self) -> list[str]:
        here = os.getcwd()
        traces = [part["trace"] for part in self._parts if part["trace"]]
        lines = [f"all figures:    {os.path.relpath(os.path.join(self._settings.folder, FILE), here)}"]
        if len(traces) == 1:
            lines.append(f"what held them: memtrace report --from 'mark:TEST' {os.path.relpath(traces[0], here)}")
        elif traces:
            lines.append(f"traces:         {', '.join(os.path.relpath(trace, here) for trace in traces)}")
        return lines


def _most(row: Row) -> str:
    owner = row["owner"]
    return most(owner["category"], owner["site"], owner["bytes"]) if owner else ""


def _forget(path: str, traces: list[str]) -> None:
    """Removes traces that the file names and this session does not need, if they are in the file's folder."""
    try:
        with open(path, encoding="utf-8") as file:
            before = json.load(file)
        for trace in [*before["traces"], *before["other_traces"]]:
            if trace not in traces and os.path.dirname(trace) == os.path.dirname(path):
                os.unlink(trace)
    except (OSError, ValueError, KeyError, TypeError):
        pass
