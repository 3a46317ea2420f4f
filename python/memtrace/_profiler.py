# SPDX-License-Identifier: Apache-2.0
"""The three calls of the TBD memory profiler for PyTorch, answered from the trace that memtrace records."""

from __future__ import annotations

import atexit
import os
import sys
import time
from operator import index

from . import _moments
from ._command import run_command
from ._files import NotFound
from ._trace import find_command, find_trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, SupportsIndex

CSV_FOLDER = "memory_csv_data"

_said: set[str] = set()


def _say_once(text: str) -> None:
    """Writes a line on standard error, but no line twice: what keeps one epoch from being shown keeps all of them."""
    if text not in _said:
        _said.add(text)
        print(f"memtrace.memory_profiler: {text}", file=sys.stderr)


class memory_profiler:  # noqa: N801, the name that scripts have
    """Prints what each iteration's memory was for, epoch by epoch, and on demand writes it as CSV.

        profiler = memtrace.memory_profiler(model, print_period=5, csv=True)
        for epoch in range(epochs):
            for batch in loader:
                train(batch)
                profiler.record_stats()
            profiler.epoch_end()

    The tables are those of `memtrace report --view tbd`, which epoch_end runs on the program's own trace: feature maps and gradients between
    layers are known to the analyzer only. What came after the last epoch_end is printed when the program ends. With csv,
    ./memory_csv_data/<time>.csv holds all printed iterations of the run.
    Where nobody records the program, one line on standard error says so, and the calls do nothing.

    Iterations are those between two calls of record_stats: do not call memtrace.step() and memtrace.epoch() besides.
    Raises TypeError if model has no parameters by name or print_period is no integer, and ValueError if print_period is less than 1.
    """

    def __init__(self, model: Any, print_period: SupportsIndex = 1, csv: bool = False) -> None:
        if not callable(getattr(model, "named_parameters", None)):
            raise TypeError(f"the model must be a torch.nn.Module, not {type(model).__name__}")
        self._period = index(print_period)
        if self._period < 1:
            raise ValueError(f"print_period is {self._period}: it must be at least 1")
        self._csv = os.path.abspath(os.path.join(CSV_FOLDER, time.strftime("%Y%m%d%H%M%S") + ".csv")) if csv else ""
        self._process = os.getpid()
        self._epoch = 1
        self._iteration = 0  # that ended last, in this epoch
        self._step = 1
        if not _moments.active():
            _say_once("this program is not recorded, so there is nothing to show; start it with: memtrace run -- " + " ".join(["python3", *sys.argv]))
        _moments.epoch(self._epoch)
        _moments.step(self._step)
        atexit.register(self._finish)

    def record_stats(self) -> None:
        """Says that an iteration ended."""
        self._iteration += 1
        self._step += 1
        _moments.step(self._step)

    def epoch_end(self) -> None:
        """Says that an epoch ended, and prints its iterations."""
        self._show()
        self._epoch += 1
        self._iteration = 0
        _moments.epoch(self._epoch)

    def _finish(self) -> None:
        # A forked child inherits the call, but neither the iterations nor the trace.
        if os.getpid() == self._process:
            self._show()
            self._iteration = 0

    def _show(self) -> None:
        if self._iteration < self._period or not _moments.active():
            return
        try:
            trace = find_trace()
            command = [find_command(), "--quiet", "report", "--view", "tbd", "--period", str(self._period)]
            print(run_command([*command, "--epoch", str(self._epoch), trace]), end="", flush=True)
            if self._csv:
                os.makedirs(os.path.dirname(self._csv), exist_ok=True)
                run_command([*command, "--units", "MB", "--csv", self._csv, "--force", "--output", os.devnull, trace])
        except (NotFound, OSError) as problem:
            _say_once(str(problem))
