# SPDX-License-Identifier: Apache-2.0
"""Recording from inside the program: loads the library into a process that was started without it."""

from __future__ import annotations

import os
import sys
import warnings
from _thread import allocate_lock

from ._files import library_path
from ._library import calls

_OK, _LATE, _OFF, _SYSTEM = 0, 1, -1, -2

_REASONS = {
    _OFF: "recording is switched off (MEMTRACE_DISABLE), has failed (see standard error), or cannot work with this C library",
    _SYSTEM: "the system does not let the memory protection of loaded libraries be changed; start the program by: memtrace run -- PROGRAM",
}

_lock = allocate_lock()


def start(output: str | os.PathLike[str] | None = None) -> None:
    """Records this process's GPU memory from now on, as if it had been started by `memtrace run`.

    Call it before the first CUDA call, before or after `import torch`. Later, PyTorch's own account of its blocks is recorded first: they count to the
    byte, as "before memtrace.start()", since nobody knows who allocated them. What other libraries allocated before is not known. A warning says so.
    output names the trace, as MEMTRACE_OUTPUT does: %p becomes the process's number, and so on. Where the process is recorded already, nothing
    happens. Processes that are forked from this one are recorded, too; those that are started anew have to call it themselves.

    Raises FileNotFoundError where the library is missing, OSError where it cannot be loaded, RuntimeError where it cannot record.
    """
    with _lock:
        if calls.active():
            return
        path = library_path()
        status = _load(path, output)
        calls.reset()
        if status in _REASONS:
            raise RuntimeError(_REASONS[status])
        if status == _LATE:
            warnings.warn(_late(_record_before(path)), RuntimeWarning, stacklevel=2)


def _late(seeded: int) -> str:
    if seeded:
        return f"CUDA was in use before memtrace.start(): of {seeded:,} bytes that PyTorch held by then reports do not say who allocated them, and of other libraries' memory nothing"
    return "CUDA was in use before memtrace.start(): what was allocated by then is not recorded"


def _load(path: str, output: str | os.PathLike[str] | None) -> int:
    import ctypes

    before = os.environ.get("MEMTRACE_OUTPUT")
    try:
        if output is not None:
            os.environ["MEMTRACE_OUTPUT"] = os.fspath(output)  # read while the library is loaded
        library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as problem:
        raise OSError(f"{problem}; start the program by: memtrace run -- PROGRAM") from None
    finally:
        if output is not None:
            if before is None:
                del os.environ["MEMTRACE_OUTPUT"]
            else:
                os.environ["MEMTRACE_OUTPUT"] = before
    return int(library.memtrace_start())


def _record_before(path: str) -> int:  # its name is known to analyzer/callstack
    """Records the blocks that PyTorch's allocator holds. Returns their bytes."""
    torch = sys.modules.get("torch")
    try:
        snapshot = torch.cuda.memory._snapshot() if torch is not None and torch.cuda.is_initialized() else []
        segments = snapshot["segments"] if isinstance(snapshot, dict) else snapshot  # to PyTorch 1.13 a list of segments
    except (AttributeError, KeyError, RuntimeError):  # another allocator is plugged in, or a version without it
        return 0
    import ctypes

    library = ctypes.PyDLL(path)  # with the interpreter lock: no other thread of Python's may allocate meanwhile
    allocated: dict[int, int] = {}
    reserved: dict[int, int] = {}
    for segment in segments:
        device, at = segment["device"], segment["address"]
        reserved[device] = reserved.get(device, 0) + segment["total_size"]
        if not segment.get("is_expandable"):  # those are mapped piece by piece
            library.memtrace_seed_segment(ctypes.c_uint64(at), ctypes.c_uint64(segment["total_size"]), device)
        for block in segment["blocks"]:
            size = block["size"]
            if block["state"] == "active_allocated":
                allocated[device] = allocated.get(device, 0) + size
                pool = segment.get("segment_pool_id", (0, 0))
                words = (block.get("address", at), size, block.get("requested_size", 0), allocated[device], reserved[device], segment.get("stream", 0), pool[0], pool[1])
                library.memtrace_seed_block(*map(ctypes.c_uint64, words), device)
            at += size
    return sum(allocated.values())
