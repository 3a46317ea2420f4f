# SPDX-License-Identifier: Apache-2.0
"""Names what a program is doing, so that memtrace's GPU memory reports can say it.

    import memtrace

    with memtrace.tag("encoder"):           # also a decorator: @memtrace.tag("encoder")
        h = encoder(batch)

    for batch in loader:
        memtrace.step()                     # an iteration begins
        train(batch)
    memtrace.mark("trained")                # a moment: memtrace report --at mark:trained

The functions talk to the recording library that `memtrace run` (or LD_PRELOAD, or start) has put into the process. Where there is none they check their
arguments and do nothing, so a program behaves the same with and without it. Tags belong to threads: each thread has its own stack, and a
new thread starts with an empty one. All functions may be called from any thread. Recording starts with the first CUDA call: tags that are open
then count from there on; of earlier marks, steps and epochs the latest 64 are recorded as its first moment.

start records a program that was started without memtrace: call it before the first CUDA call.
library_path says where the recording library lies, for launchers that take an LD_PRELOAD.
referrers prints what keeps the largest CUDA tensors alive.
In a notebook, `%load_ext memtrace` gives `%%memtrace`, which shows the report of a cell.
memtrace.sinks sends this program's figures to Weights & Biases or MLflow while it runs.
load reads a trace: what held the memory at the peak, findings, differences.
memtrace.testing limits the GPU memory of tests; with pytest, the marks limit_gpu_memory and limit_gpu_leaks do, and --memtrace.
memory_profiler has the three calls of the TBD memory profiler for PyTorch, for programs that use it.
"""

from __future__ import annotations

from ._files import TraceError, library_path
from ._moments import active, epoch, mark, step
from ._profiler import memory_profiler
from ._start import start
from ._tag import tag

__all__ = ["TraceError", "active", "epoch", "library_path", "load", "mark", "memory_profiler", "referrers", "start", "step", "tag"]
__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any, List, Optional, TextIO, Union

    from ._referrers import Holder
    from ._report import Trace


def load(path: Union[str, os.PathLike[str]]) -> Trace:
    """Reads a trace, as `memtrace report` does: memtrace.load("t.bin").peak.by_category["Feature maps"] is a number of bytes.

    The result has peak, findings, devices, iterations, blocks, sentences, complete, json (the whole report), diff(other), and frame(of) for pandas.
    Raises TraceError where there is no trace at the path, where it is another file, or where the command does not fit this package.
    """
    from ._report import load as read

    return read(path)


def referrers(limit: int = 10, budget: int = 200_000, file: Optional[TextIO] = None, quiet: bool = False) -> List[Holder]:
    """Finds what refers to the largest CUDA tensors that are alive, prints it to file (by default standard output) unless quiet, and returns it, the largest first.

    limit: how many holders to return. budget: how many objects may be looked at on the way from tensors to names; the objects of the whole program are passed over once for
    each step of the way. Returns an empty list where PyTorch was not imported. Works with and without a recording.
    """
    from ._referrers import referrers as find

    return find(limit, budget, file, quiet)


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext memtrace` calls."""
    from ._magic import register

    register(shell)
