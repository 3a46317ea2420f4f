# SPDX-License-Identifier: Apache-2.0
"""What still refers to a program's CUDA tensors: which variable, attribute or dictionary keeps memory from being freed.

The work is bounded in objects, not in time, and only reads: no tensor is made, moved or computed with, no attribute hook or property of the program is called,
and nothing that was found is kept.
"""

from __future__ import annotations

import gc
import sys
import time
from contextlib import nullcontext

from ._paths import Roots, Step, closure_variable, instance_dict, step_between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Optional, Set, TextIO, Tuple

DEPTH = 24  # steps from a tensor to a name
TRACED = 256  # tensors whose referrers are looked for
WAYS = 8  # referrers without a name that are noted of an object
GRAPH_NODES = 100_000
BUDGET = 200_000  # objects that are looked at


class Holder:
    """Tensors that are reached in the same way.

    path: where they are reached from, such as `__main__.server.cache[*]`, `?` before it where no name was found within the budget.
    types: the types on the way, from the outermost on, such as `module, Server, dict, list, Tensor`.
    tensors, bytes: how many, and the size of their storages, each counted once.
    shape, dtype, device: of the largest.
    graph_nodes: nodes of autograd graphs that these tensors keep, 0 if none; graph_bytes: what these nodes have saved, where this version of PyTorch says so (2.8 on).
    """

    def __init__(self, path: str, types: str) -> None:
        self.path, self.types = path, types
        self.tensors = self.bytes = 0
        self.shape: Tuple[int, ...] = ()
        self.dtype = self.device = ""
        self.graph_nodes = self.graph_bytes = 0
        self._largest = -1
        self._storages: List[int] = []  # addresses, each once

    def __repr__(self) -> str:
        return f"Holder({', '.join(f'{name}={value!r}' for name, value in self.as_dict().items())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Holder) and self.as_dict() == other.as_dict()

    def as_dict(self) -> Dict[str, Any]:
        """The same as JSON has it."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}


def referrers(limit: int = 10, budget: int = BUDGET, file: Optional[TextIO] = None, quiet: bool = False) -> List[Holder]:
    """See memtrace.referrers. Other threads may run meanwhile; what they change is found as it was or as it is."""
    torch = sys.modules.get("torch")
    holders: List[Holder] = []
    if torch is not None and hasattr(torch, "Tensor"):
        holders = _find(torch, limit, budget)[0]
    if not quiet:
        print_holders(holders, file or sys.stdout)
    return holders


def print_holders(holders: List[Holder], file: TextIO) -> None:
    """Prints two lines for each holder: what is held, and by what."""
    if not holders:
        print("No CUDA tensor was found.", file=file)
    for h in holders:
        one = f"{h.dtype} {list(h.shape)}" if h.tensors == 1 else f"{h.tensors:,} tensors, the largest {h.dtype} {list(h.shape)}"
        graph = ""
        if h.graph_nodes:
            graph = f"; keeps an autograd graph of {h.graph_nodes:,} nodes" + (f" with {_size(h.graph_bytes)} saved" if h.graph_bytes else "")
        print(f"{_size(h.bytes):>10}  {h.path}\n{'':12}{one} on {h.device}{graph}\n{'':12}{h.types}", file=file)


def _size(n: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            break
        n /= 1024
    return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"


def _find(torch: Any, limit: int, budget: int, seconds: float = float("inf"), met: Optional[Callable[[], None]] = None) -> Tuple[List[Holder], int, bool]:
    """Returns the holders, how many tensors there are, and whether the search was cut short by time. met is called once all tensors are known, and are kept alive."""
    until = time.monotonic() + seconds
    with _without_overrides(torch):
        tensors = _tensors(torch)
        if met is not None:
            met()
        referred = _referred(tensors)
        known = {reading.storage for key, reading in tensors.items() if key in referred}
        saved: Set[Tuple[str, int]] = set()
        for reading in tensors.values():
            saved |= reading.measure_graph(torch, known)
        for key in [key for key, reading in tensors.items() if key not in referred and reading.storage in saved]:
            del tensors[key]
        chosen = dict(sorted(tensors.items(), key=lambda item: -item[1].weight())[:TRACED])
        walk = _Walk({key: reading.tensor for key, reading in chosen.items()}, budget, until)
        walk.own.update((id(tensors), id(chosen), *map(id, chosen.values()), *(id(r.__dict__) for r in tensors.values()), *map(id, tensors.values())))
        walk.run()
        return _grouped(walk, chosen)[: max(limit, 0)], len(tensors), walk.late


def _grouped(walk: _Walk, chosen: Dict[int, _Reading]) -> List[Holder]:
    groups: Dict[Tuple[str, str], Holder] = {}
    storages = set()
    for key, reading in chosen.items():
        path, types = walk.path(key)
        h = groups.setdefault((path, types), Holder(path, types))
        h.tensors += 1
        h.graph_nodes += reading.nodes
        h.graph_bytes += reading.saved
        if reading.storage not in storages:
            storages.add(reading.storage)
            h.bytes += reading.bytes
            h._storages.append(reading.storage[1])
        if reading.bytes > h._largest:
            h._largest, h.shape, h.dtype, h.device = reading.bytes, reading.shape, reading.dtype, reading.device
    return sorted(groups.values(), key=lambda h: -(h.bytes + (h.graph_bytes or 512 * h.graph_nodes)))


def _without_overrides(torch: Any) -> Any:
    """Subclasses of tensors may have code of the program's run when they are asked for anything (__torch_function__); not so in here."""
    guard = getattr(torch._C, "DisableTorchFunctionSubclass", None) or getattr(torch._C, "DisableTorchFunction", None)
    return guard() if guard is not None else nullcontext()


class _Reading:
    """What is known of a tensor. It refers to it, and lives as long as the search."""

    def __init__(self, tensor: Any) -> None:
        storage = tensor.untyped_storage()
        self.tensor, self.storage, self.bytes = tensor, (str(tensor.device), storage.data_ptr()), int(storage.nbytes())
        self.shape, self.dtype, self.device = tuple(tensor.shape), str(tensor.dtype).replace("torch.", ""), str(tensor.device)
        self.nodes = self.saved = 0

    def weight(self) -> int:
        # Where nothing says what a graph has saved, a node counts as a little: enough to be among those that are looked at.
        return self.bytes + (self.saved or 512 * self.nodes)

    def measure_graph(self, torch: Any, known: Set[Tuple[str, int]]) -> Set[Tuple[str, int]]:
        """Counts what the tensor's own autograd graph keeps, but for storages that are known: a variable keeps these as well. Returns the storages that were counted."""
        root = self.tensor.grad_fn
        if root is None:
            return set()
        seen, waiting = {root}, [root]
        storages: Set[Tuple[str, int]] = set()
        while waiting and len(seen) < GRAPH_NODES:
            node = waiting.pop()
            self.nodes += 1
            for saved in _saved(torch, node):
                storage = saved.untyped_storage()
                key = (str(saved.device), storage.data_ptr())
                if saved.is_cuda and key not in known and key not in storages:
                    storages.add(key)
                    self.saved += int(storage.nbytes())
            for following, _ in node.next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    waiting.append(following)
        return storages


_saved_names: Dict[type, List[str]] = {}


def _saved(torch: Any, node: Any) -> Iterable[Any]:
    """Yields the tensors that a node of a graph has saved, as they are: unpacking them might run hooks of the program, such as those of a checkpoint."""
    kind = type(node)
    if kind not in _saved_names:
        _saved_names[kind] = [name for name in dir(kind) if name.startswith("_raw_saved_")]
    for name in _saved_names[kind]:
        try:
            raw = getattr(node, name)
            for one in raw if isinstance(raw, (tuple, list)) else (raw,):
                if getattr(one, "unpack_hook", None) is None and type(getattr(one, "data", None)) is torch.Tensor:
                    yield one.data
        except Exception:  # noqa: BLE001  freed by a backward pass, or another version's
            continue


def _tensors(torch: Any) -> Dict[int, _Reading]:
    found: Dict[int, _Reading] = {}
    for candidate in gc.get_objects():
        try:
            if issubclass(type(candidate), torch.Tensor) and type(candidate).__module__ != "torch._subclasses.fake_tensor" and candidate.is_cuda:
                found[id(candidate)] = _Reading(candidate)
        except Exception:  # noqa: BLE001  without storage, as sparse tensors and those of other subclasses
            continue
    return found


def _referred(tensors: Dict[int, _Reading]) -> Set[int]:
    """Returns which tensors an object of Python's refers to. Others are there because somebody looked at what C++ code holds: what a graph has saved, or a gradient."""
    found = set(Roots().locals) & tensors.keys()
    own = {id(tensors), *map(id, tensors.values()), *(id(reading.__dict__) for reading in tensors.values())}
    objects = [reading.tensor for reading in tensors.values()]
    own.add(id(objects))
    call = object()
    for referrer in gc.get_referrers(call, *objects):
        if id(referrer) not in own and not (type(referrer) is tuple and referrer and referrer[0] is call):
            found.update(key for key in map(id, gc.get_referents(referrer)) if key in tensors)
    return found


class _Walk:
    """Goes from tensors to what refers to them, to what refers to that, and so on, one step of all of them at a time: each step passes over all objects once."""

    def __init__(self, targets: Dict[int, Any], budget: int, until: float = float("inf")) -> None:
        self.roots = Roots()
        self.budget = budget
        self.until = until  # by time.monotonic
        self.late = False
        self.ways: Dict[int, List[Tuple[int, Step]]] = {}  # by object: what refers to it, and how; what has a name first
        self.seen: Dict[int, Any] = dict(targets)  # keeps them alive, so that no other object has their id
        self.names: Dict[int, str] = {}  # of objects that have one by themselves
        self.own = {id(self), id(self.__dict__), id(targets), id(self.seen), id(self.ways), id(self.names), id(self.roots), id(self.roots.__dict__)}
        self.frontier = dict(targets)
        self.own.add(id(self.frontier))

    def run(self) -> None:
        for key, tensor in list(self.frontier.items()):
            name = self.roots.local_name(tensor)
            if name:
                self.names[key] = name
                del self.frontier[key]
        for _ in range(DEPTH):
            if not self.frontier or self.is_over():
                return
            before = self.frontier
            self.own.add(id(before))
            call = object()  # tells the call's own arguments, which are a referrer in Python 3.13, from the program's tuples
            found = gc.get_referrers(call, *before.values())
            self.own.add(id(found))
            self.frontier = {}
            self.own.add(id(self.frontier))
            referrer: Any = None
            for referrer in found:
                if self.is_over():
                    return
                if type(referrer) is tuple and referrer and referrer[0] is call:
                    continue
                try:
                    self.visit(referrer, before)
                except Exception:  # noqa: BLE001  another thread changed it meanwhile, or its class is not what it seems
                    continue
            del found, referrer

    def is_over(self) -> bool:
        """Reports whether nothing more is to be looked at."""
        self.late = self.late or time.monotonic() > self.until
        return self.late or self.budget <= 0

    def visit(self, referrer: Any, before: Dict[int, Any]) -> None:
        """Notes how a referrer reaches what it refers to of the step before."""
        key = id(referrer)
        if key in self.own or self.roots.skip(referrer):
            return
        self.budget -= 1
        name = self.roots.name(referrer)
        reached = [child for child in gc.get_referents(referrer) if id(child) in before and id(child) not in self.names]
        for child in reached:
            ways = self.ways.setdefault(id(child), [])
            step = step_between(referrer, child) if name or len(ways) < WAYS else None
            if step is not None:
                ways.insert(0 if name else len(ways), (key, step))
        if reached and key not in self.seen:
            self.seen[key] = referrer
            if name:
                self.names[key] = name
            else:
                self.frontier[key] = referrer

    def way(self, key: int) -> List[Tuple[int, Step]]:
        """Returns the shortest way from an object to one that has a name; what holds it for a moment only, such as another thread's list, leads to none. Else any way, as far as it goes."""
        before: Dict[int, Tuple[int, Step]] = {}
        waiting = [key]
        for at in waiting:
            if at in self.names:
                return self.back(key, at, before)
            for parent, step in self.ways.get(at, ()):
                if parent != key and parent not in before:
                    before[parent] = (at, step)
                    waiting.append(parent)
        return self.back(key, waiting[-1], before)

    @staticmethod
    def back(key: int, at: int, before: Dict[int, Tuple[int, Step]]) -> List[Tuple[int, Step]]:
        way: List[Tuple[int, Step]] = []
        while at != key:
            child, step = before[at]
            way.append((at, step))
            at = child
        return way[::-1]

    def path(self, key: int) -> Tuple[str, str]:
        """Returns the path to a tensor and the types on it."""
        texts: List[str] = []
        types = ["Tensor" if type(self.seen[key]).__name__ == "Tensor" else type(self.seen[key]).__name__]
        way = [key]
        steps = self.way(key)
        for n, (key, step) in enumerate(steps):
            attributes = n + 1 < len(steps) and instance_dict(self.seen[steps[n + 1][0]]) is self.seen[key]  # of an object, by which that one reaches it
            texts.append(step.below(attributes or key in self.roots.modules))
            way.append(key)
            if not attributes:
                types.append("module" if key in self.roots.modules else type(self.seen[key]).__name__)
        if len(way) > 2 and types[-1] == "function":  # function, closure, cell
            variable = closure_variable(self.seen[key], self.seen[way[-3]])
            if variable:
                texts[-2] = f" (closure: {variable})"
        start = self.names.get(key) or f"?{type(self.seen[key]).__name__}"
        return start + "".join(reversed(texts)), ", ".join(reversed(types))
