# SPDX-License-Identifier: Apache-2.0
"""What still refers to a program's CUDA tensors: which variable, attribute or dictionary keeps memory from being freed.

The work is bounded in objects, not in time, and only reads: no tensor is made, moved or computed with, no attribute hook or property of the program is called,
and nothing that was found is kept.
"""

from __future__ import annotations

import gc
import sys
import time
import types
from contextlib import nullcontext

from ._freed import Freed, Graphs, Group, Reading, join
from ._paths import Roots, Route, module_types
from ._ways import Walk, Ways

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Set, TextIO, Tuple, Union

    Storage = Tuple[str, int]

TRACED = 256  # tensors whose referrers are looked for
MOST_TRACED = 1 << 15  # the same where the library finds the ways
MOST_TEXT, MOST_ROWS = 1 << 20, 256  # of the library's answer
BUDGET = 200_000  # objects that are looked at
LEAST_PINNED = 1 << 16  # bytes that a tensor shows


class Holder:
    """Tensors that are reached in the same way.

    path: where they are reached from, such as `__main__.server.cache[*]` or `__main__.model.layers.*.weight`; `?` before it where no name leads to them: they are
    garbage, code outside of Python's objects holds them, such as C++'s, or the budget was spent.
    types: the types on the way, from the outermost on, such as `module, Server, dict, list, Tensor`.
    tensors, bytes: how many, and the size of their storages, each counted once.
    hidden_bytes: how much of it is no element of these tensors, which are views of larger storages then.
    shape, dtype, device: of the largest. device: "cpu" if they are in pinned host memory, which no holder has beside device memory.
    graph_nodes: nodes of autograd graphs that these tensors keep, 0 if none; graph_bytes: what these nodes have saved, where this version of PyTorch says so (2.8 on).
    A node counts with the tensor that was computed last of those that keep it.
    garbage: whether only objects in circles refer to them that nothing else refers to; gc.collect() frees them.
    frees_bytes: what is freed if this way ends, without what other ways lead to or other graphs have saved, and before PyTorch 2.8 without what its own graph has; None
    where the library does not search. certain: whether that is known; otherwise it is the most.
    """

    def __init__(self, path: str, types: str) -> None:
        self.path, self.types = path, types
        self.tensors = self.bytes = self.hidden_bytes = 0
        self.shape: Tuple[int, ...] = ()
        self.dtype = self.device = ""
        self.graph_nodes = self.graph_bytes = 0
        self.garbage = False
        self.frees_bytes: Optional[int] = None
        self.certain = False
        self._earlier = True  # its graphs are of passes before the latest
        self._outputs = 0  # of the nodes, where nothing says what they have saved
        self._freed_outputs = 0  # of those that end with it
        self._largest = -1
        self._storages: List[int] = []  # addresses, each once

    def __repr__(self) -> str:
        return f"Holder({', '.join(f'{name}={value!r}' for name, value in self.as_dict().items())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Holder) and self.as_dict() == other.as_dict()

    def as_dict(self) -> Dict[str, Any]:
        """The same as JSON has it."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}


class Found:
    """What a search found: the holders, how many tensors there are, whether it was cut short, the bytes of all their storages, how many references it looked at, and whether there are graphs that it did not."""

    def __init__(self, holders: List[Holder], tensors: int, late: bool, bytes: int, visits: int, graphs_unread: bool) -> None:
        self.holders, self.tensors, self.late, self.bytes, self.visits, self.graphs_unread = holders, tensors, late, bytes, visits, graphs_unread


def referrers(limit: int = 10, budget: int = BUDGET, file: Optional[TextIO] = None, quiet: bool = False) -> List[Holder]:
    """See memtrace.referrers. Other threads may run meanwhile; what they change is found as it was or as it is."""
    torch = sys.modules.get("torch")
    holders: List[Holder] = []
    if torch is not None and hasattr(torch, "Tensor"):
        answer = _ask_library(limit) if budget == BUDGET else None
        holders = _find(torch, limit, budget).holders if answer is None else answer
    if not quiet:
        print_holders(holders, file or sys.stdout)
    return holders


def _ask_library(limit: int) -> Optional[List[Holder]]:
    """Has the library search, which passes over all objects once and knows garbage; None where it is not there, or cannot."""
    try:
        import ctypes

        find = ctypes.PyDLL(None).memtrace_referrers
        find.restype, find.argtypes = ctypes.c_size_t, [ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t]
        room = ctypes.create_string_buffer(MOST_TEXT)
        size = find(min(max(limit, 1), MOST_ROWS), room, MOST_TEXT)
        text = room.raw[:size].decode()
    except (ImportError, OSError, AttributeError, UnicodeDecodeError):
        return None
    return [_holder_of(line.split("\t")) for line in text.splitlines()[1:]][: max(limit, 0)] if text else None


def _holder_of(row: List[str]) -> Holder:
    """Returns what a line of the library's answer says (cshim/adapters/referrers.py)."""
    h = Holder(row[9], row[10])
    h.bytes, h.tensors, h.graph_nodes, h.graph_bytes, h._outputs = map(int, row[:5])
    h.garbage, h.dtype, h.shape, h.device = row[5] == "1", row[6], tuple(int(n) for n in row[7].split(",") if n), row[8]
    h._storages = [int(address, 16) for address in row[11].split(",") if address]
    h.frees_bytes, h._freed_outputs, h.certain, h.hidden_bytes = int(row[12]), int(row[13]), row[14] == "1", int(row[16])
    return h


def print_holders(holders: List[Holder], file: TextIO) -> None:
    """Prints two lines for each holder: what is held, and by what."""
    if not holders:
        print("No CUDA tensor was found.", file=file)
    for h in holders:
        one = f"{h.dtype} {list(h.shape)}" if h.tensors == 1 else f"{h.tensors:,} tensors, the largest {h.dtype} {list(h.shape)}"
        graph = ""
        if h.graph_nodes:
            graph = f"; keeps an autograd graph of {h.graph_nodes:,} nodes" + (f" with {_size(h.graph_bytes)} saved" if h.graph_bytes else "")
        if h.garbage:
            graph += "; garbage in reference cycles, gc.collect() frees it"
        elif h.path.startswith("?"):
            graph += "; no name leads to it: a call that runs or C++ code holds it, or the budget was spent"
        print(f"{_size(h.bytes):>10}  {h.path.lstrip('?') or 'not known'}\n{'':12}{one} {'in pinned host memory' if h.device == 'cpu' else f'on {h.device}'}{graph}\n{'':12}{h.types}", file=file)


def _size(n: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            break
        n /= 1024
    return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"


def _find(torch: Any, limit: int, budget: int, seconds: float = float("inf"), met: Optional[Callable[[], None]] = None, collector: Any = None, may_read: Optional[Callable[[], bool]] = None) -> Found:
    """met is called once all tensors are known, and are kept alive. collector is what the library can ask of the garbage collector. may_read tells whether graphs and gradients may be looked at now; None: while no backward pass is under way."""
    with _Alone(), _without_overrides(torch):
        until = time.monotonic() + seconds
        optimizer = getattr(sys.modules.get("torch.optim"), "Optimizer", None)  # parameters have better names than where it lists them
        objects = _tensors(torch, collector or _Searched)
        if met is not None:
            met()
        ways = Ways.of(collector, objects, budget, until, optimizer) if collector else None
        tensors = _readings(torch, objects)
        del objects
        referred = ways.referred() if ways else _referred(tensors)
        graphs = Graphs(torch, may_read or Passes(torch).are_over)
        late, storages = False, {}
        if graphs.readable():
            late = _measure_graphs(graphs, tensors, referred, ways.unknown() if ways else set(), until)
        if ways and graphs.readable():
            storages = _leave_to_graphs(graphs, torch, tensors, ways)
        graphs.doubtful = graphs.doubtful or graphs.unread
        perhaps = _leave_doubtful(graphs, tensors, referred, ways)
        if graphs.readable():
            _add_gradients(torch, tensors, referred)
        storages.update({reading.storage: reading.bytes for key, reading in tensors.items() if key not in perhaps and not reading.pinned})
        chosen = dict(sorted(tensors.items(), key=lambda item: -item[1].weight())[: MOST_TRACED if ways else TRACED])
        chosen.update({reading.of: tensors[reading.of] for reading in list(chosen.values()) if reading.of is not None})
        walk = ways or _walked(tensors, chosen, budget, until, optimizer)
        late = walk.late or late or (ways is not None and len(chosen) < len(tensors))
        groups = join(_grouped(walk, chosen), module_types())
        freed = None
        if ways:
            ways.decide(groups, tensors, budget, until)
            freed = Freed(graphs, groups, tensors, referred, ways.unknown())
        count = sum([not reading.pinned for reading in tensors.values()])
        return Found(_holders(groups, tensors, freed)[: max(limit, 0)], count, late, sum(storages.values()), walk.visits, graphs.unread)


class _Alone:
    """Keeps the interpreter's lock from other threads, for a second in a row at most: a tensor that the program drops during the search lives on until its end, so that new ones need more memory, and PyTorch warns of tensors that C++ code drops meanwhile.

    A thread that waits for the lock requests it after the switch interval that held when it began to wait (CPython 3.9 to 3.14, take_gil), so it is waited for before the search refers to anything.
    """

    WAIT = 1.0  # seconds

    def __enter__(self) -> None:
        self.before = sys.getswitchinterval()
        sys.setswitchinterval(max(self.WAIT, self.before))
        settled = time.monotonic() + 2 * min(self.before, 0.01)
        while time.monotonic() < settled:
            pass

    def __exit__(self, *_: object) -> None:
        sys.setswitchinterval(self.before)


class Passes:
    """Tells whether a backward pass is under way: its threads let go of what graphs have saved, and write gradients, without the interpreter's lock.

    A pass begins with that lock, which other threads do not get for _Alone.WAIT after they began to wait for it. So an answer holds for half of that; then they get it.
    """

    def __init__(self, torch: Any, own: int = 0) -> None:
        """own: so many do not count, as their threads wait for the search."""
        self.own = own
        autograd, graph = getattr(torch, "autograd", None), sys.modules.get("torch.autograd.graph")
        functions = [getattr(module, name, None) for module, name in ((autograd, "backward"), (autograd, "grad"), (graph, "_engine_run_backward"))]
        self.codes = {id(function.__code__) for function in functions if type(function) is types.FunctionType}
        self.until = 0.0
        self.over = True

    def are_over(self) -> bool:
        """Reports whether none is under way now, nor will be before it is asked again, which may be once for each node of a graph."""
        if self.over and time.monotonic() >= self.until:
            if self.until:
                time.sleep(0.001)
            self.until = time.monotonic() + _Alone.WAIT / 2
            self.over = self.count() <= self.own
        return self.over

    def count(self) -> int:
        """Returns how many threads have one under way."""
        found = 0
        frames = sys._current_frames()
        for frame in list(frames.values()):
            at: Any = frame
            while at is not None and id(at.f_code) not in self.codes:
                at = at.f_back
            found += at is not None
        frames.clear()  # one of them is this one's own, and would be garbage with all that it refers to
        frame = at = None  # type: ignore[assignment]
        return found


def _walked(tensors: Dict[int, Reading], chosen: Dict[int, Reading], budget: int, until: float, last: Optional[type]) -> Walk:
    walk = Walk({key: reading.tensor for key, reading in chosen.items()}, budget, until, last)
    walk.own.update((id(tensors), id(chosen), *map(id, chosen.values()), *map(id, tensors.values())))
    walk.run()
    return walk


def _measure_graphs(graphs: Graphs, tensors: Dict[int, Reading], referred: Set[int], unknown: Set[int], until: float) -> bool:
    """Measures the graphs of all tensors, a node with the tensor that was computed last of those that keep it, first of those that an object refers to. Leaves out tensors whose memory another one has, or a graph. Of unknown tensors it is not known whether an object refers to them. Reports whether time ran out."""
    graphs.counted = {reading.storage for key, reading in tensors.items() if key in referred}
    rooted = [(key, reading) for key, reading in tensors.items() if reading.tensor.grad_fn is not None]
    rooted.sort(key=lambda item: (item[0] not in referred, -_made(item[1].tensor.grad_fn)))
    late = False
    for key, reading in rooted:
        if key not in referred and not graphs.says:
            break
        late = time.monotonic() > until
        if late:
            break
        if key in referred or reading.storage not in graphs.counted:
            graphs.measure(key, reading)
    graphs.doubtful = bool(rooted) and (late or not graphs.says)
    if rooted and not graphs.says and not late:
        _find_earlier(graphs, [reading for _, reading in rooted])
    for key in [key for key in tensors if key not in referred and key not in unknown]:
        if key not in graphs.roots and tensors[key].storage in graphs.counted:
            del tensors[key]
    return late


def _leave_to_graphs(graphs: Graphs, torch: Any, tensors: Dict[int, Reading], ways: Ways) -> Dict[Storage, int]:
    """Leaves out tensors that no name leads to, but a node of a graph does, such as its context, what hooks made of what it has saved, or the leaf that it adds a gradient to: they are the graph's. Returns their memory, where PyTorch does not say what graphs have saved."""
    left: List[Tuple[Reading, int]] = []
    for key in list(tensors):
        node = ways.node_of(key, graphs) if key in tensors else None
        if node is None:
            continue
        gradient = torch.Tensor.grad.__get__(tensors[key].tensor) if tensors[key].tensor.is_leaf else None
        left += [(tensors.pop(one), node) for one in (key, id(gradient)) if one == key or (one in tensors and ways.is_foreign(one))]
    graphs.leave(left, {reading.storage for reading in tensors.values()})
    return {} if graphs.says else {reading.storage: reading.bytes for reading, _ in left}


def _leave_doubtful(graphs: Graphs, tensors: Dict[int, Reading], referred: Set[int], ways: Optional[Ways]) -> Set[int]:
    """Where it is not known what graphs have saved, leaves out all tensors that no object refers to. Returns those that objects refer to which a graph may have."""
    if not graphs.doubtful:
        return set()
    unknown = ways.unknown() if ways else set()
    for key in [key for key in tensors if key not in referred and key not in unknown]:
        del tensors[key]
    perhaps = {key for key in tensors if ways and ways.is_foreign(key)}
    graphs.guessed = bool(perhaps)
    return perhaps


def _find_earlier(graphs: Graphs, rooted: List[Reading]) -> None:
    """Notes which tensors have graphs that are no part of the latest one, which may be that of a tensor that nothing refers to."""
    latest = max(rooted, key=lambda reading: _made(reading.tensor.grad_fn)).tensor.grad_fn
    graphs.add(latest)
    colours = graphs.colours([(latest, 0)])
    for reading in rooted:
        node = graphs.numbers.get(reading.tensor.grad_fn)
        reading.earlier = node is not None and colours[node] != 0


def _add_gradients(torch: Any, tensors: Dict[int, Reading], referred: Set[int]) -> None:
    """Notes whose gradients tensors are, and adds those that only their tensors refer to, in C++."""
    for key, reading in list(tensors.items()):
        try:
            gradient = torch.Tensor.grad.__get__(reading.tensor) if reading.tensor.is_leaf else None
            if gradient is None or not gradient.is_cuda:
                continue
            alone = id(gradient) not in referred
            if alone:
                tensors[id(gradient)] = Reading(torch, gradient)
            if id(gradient) in tensors:
                tensors[id(gradient)].of, tensors[id(gradient)].alone = key, alone
        except Exception:  # noqa: BLE001  without storage, or of a subclass that does not say
            continue


def _made(node: Any) -> int:
    """When a node was made: later ones have higher numbers."""
    try:
        return int(node._sequence_nr())
    except Exception:  # noqa: BLE001  a node of a kind or version that has none
        return 0


def _grouped(walk: Union[Walk, Ways], chosen: Dict[int, Reading]) -> List[Group]:
    """Divides tensors by their paths."""
    groups: Dict[Tuple[str, str, bool], Group] = {}
    orphans = walk.orphans(chosen)
    for key, reading in chosen.items():
        at = reading.of if reading.alone and reading.of is not None else key
        orphan = orphans.get(key if reading.of is None else reading.of)
        if orphan is not None:
            group = groups.setdefault((orphan.names[0], "".join(orphan.names), False), Group())
            group.orphans = True
            group.routes.append(orphan)
            group.keys.append(key)
            continue
        try:
            route = walk.route(at)
            if at == key and reading.of is not None and route.begins_in(walk.roots.inner):  # such as an optimizer's list of gradients
                at, route = reading.of, walk.route(reading.of)
            certain = walk.is_named(at)
        except Exception:  # noqa: BLE001  another thread changed it meanwhile
            route, certain, at = Route(["?"], [reading.tensor], ""), False, key
        if at != key:
            route = Route([*route.names, ".grad"], [*route.objects, reading.tensor], route.types + ", Tensor")
        group = groups.setdefault(("".join(route.names), route.types, reading.pinned), Group(reading.pinned))
        group.routes.append(route)
        group.keys.append(key)
        group.garbage = group.garbage or walk.is_garbage(at)
        group.certain = group.certain and certain
    return list(groups.values())


def _holders(groups: List[Group], tensors: Dict[int, Reading], freed: Optional[Freed]) -> List[Holder]:
    holders = []
    storages = set()
    for number, group in enumerate(groups):
        h = Holder(*group.path())
        holders.append(h)
        hidden: Dict[Storage, int] = {}
        h.garbage = group.garbage
        for key in group.keys:
            reading = tensors[key]
            h.tensors += 1
            h.graph_nodes += reading.nodes
            h.graph_bytes += reading.saved
            h._outputs += reading.outputs
            h._earlier = h._earlier and (reading.earlier or not reading.nodes)
            if reading.storage not in storages:
                storages.add(reading.storage)
                hidden[reading.storage] = reading.bytes
                h.bytes += reading.bytes
                h._storages.append(reading.storage[1])
            if reading.storage in hidden:
                hidden[reading.storage] -= min(hidden[reading.storage], reading.shown)
            if reading.bytes > h._largest:
                h._largest, h.shape, h.dtype, h.device = reading.bytes, reading.shape, reading.dtype, reading.device
        h.hidden_bytes = sum(hidden.values())
        if freed is not None:
            h.frees_bytes, h._freed_outputs, h.certain = freed.bytes[number], freed.outputs[number], freed.certain[number]
    return sorted(holders, key=lambda h: -(h.bytes + (h.graph_bytes or h._outputs)))


def _without_overrides(torch: Any) -> Any:
    """Subclasses of tensors may have code of the program's run when they are asked for anything (__torch_function__); not so in here."""
    guard = getattr(torch._C, "DisableTorchFunctionSubclass", None) or getattr(torch._C, "DisableTorchFunction", None)
    return guard() if guard is not None else nullcontext()


class _Searched:
    """What stands for the library where it is not there. PyTorch must have initialized the driver to be asked what is pinned."""

    @staticmethod
    def instances(_: Any) -> List[Any]:
        return gc.get_objects()

    @staticmethod
    def pinned(tensor: Any) -> bool:
        return bool(sys.modules["torch"].cuda.is_initialized() and tensor.is_pinned())


def _tensors(torch: Any, collector: Any) -> List[Any]:
    """Returns the tensors on devices, and those in pinned host memory. Small ones on the host are not looked at."""
    found: List[Any] = []
    fake = getattr(sys.modules.get("torch._subclasses.fake_tensor"), "FakeTensor", ())
    for candidate in collector.instances(torch.Tensor):
        try:
            if issubclass(type(candidate), torch.Tensor) and not issubclass(type(candidate), fake) and (candidate.is_cuda or _is_pinned(candidate, collector)):
                found.append(candidate)
        except Exception:  # noqa: BLE001  of a subclass that does not say
            continue
    return found


def _is_pinned(tensor: Any, collector: Any) -> bool:
    return bool(tensor.device.type == "cpu" and tensor.numel() * tensor.element_size() >= LEAST_PINNED and collector.pinned(tensor))


def _readings(torch: Any, objects: List[Any]) -> Dict[int, Reading]:
    found: Dict[int, Reading] = {}
    for tensor in objects:
        try:
            found[id(tensor)] = Reading(torch, tensor)
        except Exception:  # noqa: BLE001  without storage, as sparse tensors and those of other subclasses
            continue
    return found


def _referred(tensors: Dict[int, Reading]) -> Set[int]:
    """Returns which tensors an object of Python's refers to. Others are there because somebody looked at what C++ code holds: what a graph has saved, or a gradient."""
    found = set(Roots().locals) & tensors.keys()
    own = {id(tensors), *map(id, tensors.values())}
    objects = [reading.tensor for reading in tensors.values()]
    own.add(id(objects))
    call = object()
    for referrer in gc.get_referrers(call, *objects):
        if id(referrer) not in own and not (type(referrer) is tuple and referrer and referrer[0] is call):
            found.update(key for key in map(id, gc.get_referents(referrer)) if key in tensors)
    return found
