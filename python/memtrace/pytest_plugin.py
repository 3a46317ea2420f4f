# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: options, marks, and the way under the recording library. pytest finds it by the entry point.

Without --memtrace nothing happens but that marks are checked for mistakes; in a process that is recorded (memtrace run
-- pytest) they are limits.
"""

from __future__ import annotations

import os
import sys

import pytest

from . import _moments
from ._files import LIBRARY, library_path
from ._pytest_budget import Budget, BudgetError
from ._pytest_marks import LEAKS, MARKS, MEMORY, check_marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, NoReturn

# Set to the number of a process that was started once more under the library; exec keeps the number.
STARTED = "MEMTRACE_PYTEST_STARTED"
FOLDER = "memtrace-pytest"
TRACES = "pytest.*.bin"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("memtrace", "GPU memory")
    group.addoption("--memtrace", action="store_true", default=None,
                    help="record GPU memory and show what each test held; starts pytest once more under memtrace")
    group.addoption("--memtrace-budget", metavar="FILE",
                    help="fail if a test holds more GPU memory than FILE allows it; implies --memtrace")
    group.addoption("--memtrace-update", action="store_true",
                    help="write what tests hold into the budget, instead of failing")
    group.addoption("--memtrace-dir", metavar="DIR",
                    help=f"folder for the traces and tests.json (default: {FOLDER})")
    parser.addini("memtrace", "always run with --memtrace", "bool", False)
    parser.addini("memtrace_budget", "file of --memtrace-budget, from the ini file's folder")
    parser.addini("memtrace_dir", "folder of --memtrace-dir, from the ini file's folder")
    parser.addini("memtrace_unchecked", "what becomes of tests with limits where nothing is recorded: "
                  "run (default) or skip", default="run")


class Settings:
    """What options and the ini file ask for. Paths are absolute."""

    def __init__(self, config: Any, options: Any) -> None:
        # Not pytest's root: an option with a path may change that, whether or not the path exists.
        base = str(config.inipath.parent if config.inipath else config.invocation_params.dir)

        def path(option: str | None, ini: str) -> str | None:
            if option:
                return os.path.join(str(config.invocation_params.dir), option)
            value = config.getini(ini)
            return os.path.join(base, value) if value else None

        self.budget = path(options.memtrace_budget, "memtrace_budget")
        self.update = bool(options.memtrace_update)
        self.asked = bool(options.memtrace or options.memtrace_budget or options.memtrace_update
                          or config.getini("memtrace"))
        if not self.asked:
            self.budget = None
        self.folder = path(options.memtrace_dir, "memtrace_dir") or os.path.join(base, FOLDER)
        self.unchecked = config.getini("memtrace_unchecked")
        self.root = str(config.rootpath)


def is_worker(config: Any) -> bool:
    """Returns whether this is a process of pytest-xdist that runs tests for another."""
    return hasattr(config, "workerinput")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> Iterator[None]:
    # Before pytest captures output and before others start to measure: what follows starts anew.
    _enter(early_config, early_config.known_args_namespace)
    yield


def pytest_configure(config: Any) -> None:
    for line in MARKS:
        config.addinivalue_line("markers", line)
    settings = Settings(config, config.option)
    if settings.unchecked not in ("run", "skip"):
        raise pytest.UsageError(f"memtrace_unchecked is {settings.unchecked!r}; choose run or skip")
    if settings.update and not settings.budget:
        raise pytest.UsageError("--memtrace-update needs --memtrace-budget FILE, or memtrace_budget in the ini file")
    _enter(config, config.option)  # where the plugin was loaded late, by a conftest.py
    active = _moments.active()
    if settings.asked or active:
        if pytest.version_tuple < (8,):
            if settings.asked:
                raise pytest.UsageError(f"--memtrace needs pytest 8 or newer, and this is {pytest.__version__}")
            return
        try:
            budget = Budget(settings.budget) if settings.budget else None
        except BudgetError as problem:
            raise pytest.UsageError(str(problem)) from None
        if budget and not budget.exists and not settings.update:
            raise pytest.UsageError(f"{budget.path} does not exist; --memtrace-update writes it")
        from ._pytest_session import Recorder

        config.pluginmanager.register(Recorder(config, settings, budget), "memtrace-session")
    else:
        config.pluginmanager.register(Unchecked(settings), "memtrace-session")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    check_marks(items)


class Unchecked:
    """Says at the end that limits were not checked."""

    REASON = "this process is not recorded; start it with: pytest --memtrace"

    def __init__(self, settings: Settings) -> None:
        self._skip = settings.unchecked == "skip"
        self._count = 0

    def pytest_collection_finish(self, session: Any) -> None:
        marked = [item for item in session.items if item.get_closest_marker(MEMORY) or item.get_closest_marker(LEAKS)]
        self._count = len(marked)
        if self._skip:
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=f"its GPU memory is limited, and {self.REASON}"))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._count and not self._skip:
            tests = "1 test was" if self._count == 1 else f"{self._count} tests were"
            terminalreporter.write_line(f"memtrace: limits on GPU memory of {tests} not checked: {self.REASON}")


def _enter(config: Any, options: Any) -> None:
    """Starts this command once more under the library where that is asked for; then it does not return."""
    settings = Settings(config, options)
    other = any(getattr(options, name, False) for name in
                ("help", "version", "collectonly", "markers", "showfixtures", "show_fixtures_per_test", "setupplan"))
    if not settings.asked or other or _moments.active() or is_worker(config) or "PYTEST_XDIST_WORKER" in os.environ:
        return
    if os.environ.get(STARTED) == str(os.getpid()):
        raise pytest.UsageError("--memtrace: nothing is recorded in this process: recording is switched off "
                                "(MEMTRACE_DISABLE), or cannot work here for a reason that standard error names")
    if list(config.invocation_params.args) != sys.argv[1:]:
        raise pytest.UsageError("--memtrace: this pytest was called by a program and cannot start itself once more; "
                                "start the program by: memtrace run -- PROGRAM")
    try:
        _again(config, settings)
    except OSError as problem:
        raise pytest.UsageError(f"--memtrace: {problem}") from None


def _again(config: Any, settings: Settings) -> NoReturn:
    """Becomes the same command with the library preloaded, as memtrace run has it. Raises OSError."""
    library = library_path()
    environment = dict(os.environ)
    others = [path for path in environment.get("LD_PRELOAD", "").replace(":", " ").split()
              if os.path.basename(path) != LIBRARY]
    environment["LD_PRELOAD"] = ":".join([library, *others])
    environment[STARTED] = str(os.getpid())
    if "MEMTRACE_OUTPUT" not in environment:
        make_folder(settings.folder)
        environment["MEMTRACE_OUTPUT"] = os.path.join(settings.folder.replace("%", "%%"), TRACES.replace("*", "%p"))
    with open("/proc/self/cmdline", "rb") as file:
        arguments = _joined(file.read().split(b"\0")[:-1])
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [os.fsencode(sys.executable), *arguments[1:]], environment)


def _joined(arguments: list[bytes]) -> list[bytes]:
    """Writes --option FILE as --option=FILE: pytest would take a FILE that exists for one of tests when it looks for
    its root folder."""
    joined: list[bytes] = []
    for argument in arguments:
        if joined and joined[-1] in (b"--memtrace-budget", b"--memtrace-dir"):
            joined[-1] += b"=" + argument
        else:
            joined.append(argument)
    return joined


def make_folder(folder: str) -> None:
    """Makes the folder of traces, which git does not see."""
    os.makedirs(folder, exist_ok=True)
    ignored = os.path.join(folder, ".gitignore")
    if not os.path.exists(ignored):
        with open(ignored, "w", encoding="utf-8") as file:
            file.write("*\n")
