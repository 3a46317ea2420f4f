# SPDX-License-Identifier: Apache-2.0
"""What `memtrace top` says of this process, read while it runs: the command follows the trace in a process of its own and writes metrics into a pipe."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import threading
import time

from ._files import LIBRARY, NotFound
from ._moments import active
from ._trace import find_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Iterable, Iterator, Tuple

    Figures = Dict[str, float]
    Sample = Tuple[str, Dict[str, str], float]

PATIENCE = 30.0  # seconds that the last figures may take; `memtrace top` gives up a little earlier (internal/top/serve.go)
END = "# EOF"

_log = logging.getLogger("memtrace")

_SAMPLE = re.compile(r'([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)')
_LABEL = re.compile(r'([a-z_][a-z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")

# Metrics that become figures of their own name: those of the process, and those of each of its devices.
_OF_PROCESS = {"memtrace_growth_bytes_per_second": "growth_bytes_per_second", "memtrace_growth_bytes": "growth_bytes"}
_OF_DEVICE = {"memtrace_device_memory_bytes": "used_bytes", "memtrace_slack_bytes": "slack_bytes", "memtrace_remainder_bytes": "remainder_bytes"}
_BY_LEVEL = {"memtrace_memory_bytes": "bytes", "memtrace_memory_peak_bytes": "peak_bytes"}


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: "\n" if match.group(1) == "n" else match.group(1), text)


def parse(lines: Iterable[str]) -> Iterator[Sample]:
    """Yields the samples of an OpenMetrics text that `memtrace top` wrote."""
    for line in lines:
        match = _SAMPLE.fullmatch(line)
        if match:
            name, labels, value = match.groups()
            yield name, {key: _unescape(text) for key, text in _LABEL.findall(labels or "")}, float(value)


def figures_of(samples: Iterable[Sample], pid: int) -> Figures:
    """Names what the samples say of a process, such as device0/framework_bytes, device0/category/Parameters and out_of_memory."""
    figures: Figures = {}
    for name, labels, value in samples:
        if labels.get("process_pid") != str(pid):
            continue
        device = f"device{labels.get('device', '')}/"
        if name in _OF_PROCESS:
            figures[_OF_PROCESS[name]] = value
        elif name == "memtrace_out_of_memory_total" and labels["outcome"] == "failed":
            figures["out_of_memory"] = value
        elif name in _OF_DEVICE:
            figures[device + _OF_DEVICE[name]] = value
        elif name in _BY_LEVEL:
            figures[f"{device}{labels['level']}_{_BY_LEVEL[name]}"] = value
        elif name == "memtrace_category_memory_bytes":
            figures[f"{device}category/{labels['category']}"] = value
        elif name == "memtrace_owner_memory_bytes":
            key = f"{device}owner/{labels['owner']}"
            figures[key] = figures.get(key, 0.0) + value  # a library's name may also be a tag
    return figures


def _environment() -> dict[str, str]:
    """This process's, without the recorder: the command makes no CUDA calls of its own to be recorded."""
    environment = dict(os.environ)
    others = [path for path in re.split(r"[: ]+", environment.pop("LD_PRELOAD", "")) if path and os.path.basename(path) != LIBRARY]
    if others:
        environment["LD_PRELOAD"] = ":".join(others)
    return environment


class Follower:
    """Calls a function with this process's figures and the seconds since it began, every interval, on a thread of its own; the last time while it is closed.

    Nothing that goes wrong here disturbs the program: it is logged once, and the calls end. In a program that is not recorded there are none.
    """

    def __init__(self, send: Callable[[Figures, float], None], interval: float, by: str | None = None) -> None:
        if not interval >= 1:
            raise ValueError(f"the interval is {interval}: the shortest is 1 second")
        self._send = send
        self._begin = time.monotonic()
        self._pid = os.getpid()
        self._command: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._answered = threading.Event()  # the command has written figures or ended: from then on a signal makes it write the last ones
        if not active():
            _log.info("this program is not recorded, so nothing is sent; start it by: memtrace run -- PROGRAM")
            return
        try:
            arguments = [find_command(), "--quiet", "top", "--textfile", "-", "--interval", f"{interval}s", "--pid", str(self._pid)]
            if by is not None:
                arguments += ["--by", by]
            # In a session of its own, ctrl-C does not end it before this program has asked for the last figures. Should this program be killed, it ends when it next writes into the pipe.
            self._command = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=_environment(), encoding="utf-8", start_new_session=True)
        except (NotFound, OSError) as problem:
            _log.warning("nothing is sent: %s", problem)
            return
        self._thread = threading.Thread(target=self._follow, name="memtrace", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        assert self._command is not None and self._command.stdout is not None
        lines: list[str] = []
        try:
            for line in self._command.stdout:
                line = line.rstrip("\n")
                if line != END:
                    lines.append(line)
                    continue
                figures = figures_of(parse(lines), self._pid)
                lines = []
                self._answered.set()
                if figures:
                    self._send(figures, time.monotonic() - self._begin)
        except Exception as problem:  # of a service that is not ours
            _log.warning("no more figures are sent: %s: %s", type(problem).__name__, problem)
            self._command.terminate()
        finally:
            self._answered.set()
            self._command.stdout.close()
            if self._command.wait() > 0:
                _log.warning("no more figures are sent: memtrace top ended with status %d", self._command.returncode)

    def close(self) -> None:
        """Sends the last figures and ends. May be called again, and does nothing in a forked child."""
        if self._command is None or self._thread is None or os.getpid() != self._pid:
            return
        self._answered.wait(PATIENCE)
        self._command.terminate()
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            self._command.kill()
        self._command = None
