# SPDX-License-Identifier: Apache-2.0
"""MEMTRACE_REFERRERS=1: what refers to the largest tensors is written to a file at the moment at which memory runs out, before the exception is raised.

PyTorch calls observers when its allocator gives up. They are attached when PyTorch begins to use CUDA, for attaching one begins it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import io
import json
import os
import sys
import threading

from ._files import NotFound
from ._referrers import print_holders, referrers
from ._trace import find_trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Optional, Sequence

TIMES = 10  # that are written at most, as texts of the recorder
SCHEMA = "memtrace.referrers/1"

_busy = threading.Lock()
_written = 0


def watch() -> None:
    """Attaches to PyTorch, now or once it is imported."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda"):
        _attach(torch)
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Is asked for every module until PyTorch is imported; it finds none but has PyTorch's loader tell when it has run."""

    def find_spec(self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None) -> Optional[importlib.machinery.ModuleSpec]:
        if name != "torch" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            _attach(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _attach(torch: Any) -> None:
    try:
        torch.cuda._lazy_call(lambda: torch._C._cuda_attach_out_of_memory_observer(_ran_out))
    except Exception:  # noqa: BLE001  a build without CUDA, or a version without observers
        return


def _ran_out(device: int, requested: int, *_: int) -> None:
    """Is called by the thread that asked for memory, which holds no lock of the allocator."""
    global _written
    if not _busy.acquire(blocking=False):
        return
    try:
        if _written < TIMES:
            _written += 1
            _write(device, requested)
    except BaseException:  # noqa: BLE001  the program's own exception is about to be raised
        pass
    finally:
        _busy.release()


def _write(device: int, requested: int) -> None:
    holders = referrers(limit=20, quiet=True)
    text = io.StringIO()
    text.write(f"What referred to the largest CUDA tensors when {requested:,} bytes were refused on device {device}\n\n")
    print_holders(holders, text)
    report = {"schema": SCHEMA, "device": device, "requested_bytes": requested, "holders": [h.as_dict() for h in holders]}
    try:
        base = find_trace()
    except (NotFound, OSError):
        base = os.path.join(os.getcwd(), f"memtrace.{os.path.basename(sys.executable)}.{os.getpid()}.bin")
    number = _create(f"{base}.referrers.", ".txt", text.getvalue())
    if number:
        _create(f"{base}.referrers.{number}", ".json", json.dumps(report, indent=2) + "\n")


def _create(base: str, extension: str, text: str) -> int:
    """Writes a file that is not there yet, named by base and extension or, where base ends in a dot, with a number between, which is returned; 0: it cannot be written."""
    for number in range(1, 1000):
        path = f"{base}{number if base.endswith('.') else ''}{extension}"
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            if not base.endswith("."):
                return 0
            continue
        except OSError:
            return 0
        with os.fdopen(file, "w", encoding="utf-8", errors="backslashreplace") as out:
            out.write(text)
        return number
    return 0
