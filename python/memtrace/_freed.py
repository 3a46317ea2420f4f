# SPDX-License-Identifier: Apache-2.0
"""What is freed if a holder lets go of its tensors: what neither another way leads to, nor another autograd graph has saved."""

from __future__ import annotations

import types

from ._paths import Route, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

    Storage = Tuple[str, int]

# Nodes of operators that compute nothing, but have a view of their input.
VIEWS = tuple([f"{name}Backward" for name in ("T", "Transpose", "View", "UnsafeView", "Permute", "Expand", "Slice", "Select", "Squeeze", "Unsqueeze", "Split", "Unbind", "AsStrided", "Alias")])
GRAPH_NODES = 100_000


class Graphs:
    """The autograd graphs of tensors: of each node what it has computed and saved, as far as PyTorch says so, and the nodes that it leads to."""

    def __init__(self, torch: Any, may_read: Callable[[], bool] = lambda: True) -> None:
        """may_read is asked before each node, as a backward pass takes graphs apart; once it says no, nothing more is read."""
        self.torch = torch
        self.may_read = may_read
        self.unread = False  # whether it said no
        self.says = hasattr(getattr(torch._C._autograd, "SavedTensor", None), "data")  # what nodes have saved
        self.numbers: Dict[Any, int] = {}  # by node
        self.next: List[List[int]] = []
        self.saved: List[List[Storage]] = []
        self.outputs: List[int] = []
        self.sizes: Dict[Storage, int] = {}  # of what is saved
        self.objects: Dict[int, int] = {}  # nodes, by the ids of objects that they keep, themselves among them
        self.doubtful = False  # whether they may have saved more than is known
        self.guessed = False  # whether it is not known of some tensors if nodes have them
        self.readings: Dict[int, Reading] = {}  # with which nodes are counted
        self.roots: Set[int] = set()  # the tensors whose graphs were measured
        self.counted: Set[Storage] = set()  # the memory of tensors and what nodes have saved

    def add(self, root: Any) -> List[int]:
        """Returns the numbers of those nodes of a graph that are new."""
        if root in self.numbers or not self.readable():
            return []
        waiting, new = [root], [self._number(root)]
        while waiting and len(self.numbers) < GRAPH_NODES and self.readable():
            node = waiting.pop()
            number = self.numbers[node]
            for following, _ in node.next_functions:
                if following is None:
                    continue
                if following not in self.numbers:
                    waiting.append(following)
                    new.append(self._number(following))
                self.next[number].append(self.numbers[following])
        return new

    def readable(self) -> bool:
        """Reports whether graphs and gradients may still be looked at."""
        self.unread = self.unread or not self.may_read()
        return not self.unread

    def _number(self, node: Any) -> int:
        number = self.numbers[node] = len(self.numbers)
        self.next.append([])
        self.outputs.append(0 if self.says else _outputs(node))
        kept = list(_kept(node))
        saved = dict(_storages(self.torch, kept))
        self.sizes.update(saved)
        self.saved.append(list(saved))
        self.objects.update({id(one): number for one in (node, *[one for one, _ in kept]) if one is not None})
        return number

    def node_of(self, way: Iterable[Any]) -> Optional[int]:
        """Returns the node that keeps one of these objects, None where it is not known of any."""
        return next((self.objects[id(at)] for at in way if id(at) in self.objects), None)

    def measure(self, key: int, reading: Reading) -> None:
        """Counts the new nodes of a tensor's graph with it."""
        self.roots.add(key)
        for node in self.add(reading.tensor.grad_fn):
            self.readings[node] = reading
            reading.nodes += 1
            reading.outputs += self.outputs[node]
            for storage in self.saved[node]:
                if storage not in self.counted:
                    self.counted.add(storage)
                    reading.saved += self.sizes[storage]

    def leave(self, readings: List[Tuple[Reading, int]], others: Set[Storage]) -> None:
        """Counts tensors as those that nodes have saved. Others is the memory of the other tensors."""
        for reading, node in readings:
            self.saved[node].append(reading.storage)
            self.sizes[reading.storage] = reading.bytes
            if reading.tensor.grad_fn in self.numbers:
                self.next[node].append(self.numbers[reading.tensor.grad_fn])
            if self.says and reading.storage not in others:
                others.add(reading.storage)
                self.readings[node].saved += reading.bytes

    def colours(self, roots: Iterable[Tuple[Any, int]]) -> List[int]:
        """Returns for each node which of the colours of roots lead to it: that one, SHARED where there are several, or NOBODY."""
        colours = [NOBODY] * len(self.next)
        for root, colour in roots:
            waiting = [self.numbers[root]] if root in self.numbers else []
            while waiting:
                node = waiting.pop()
                if colours[node] not in (colour, SHARED):
                    colours[node] = colour if colours[node] == NOBODY else SHARED
                    waiting.extend(self.next[node])
        return colours


SHARED, NOBODY, OTHERS = -1, -2, -3


class Reading:
    """What is known of a tensor. It refers to it, and lives as long as the search."""

    __slots__ = ("tensor", "storage", "bytes", "shown", "shape", "dtype", "device", "pinned", "nodes", "saved", "outputs", "of", "alone", "earlier", "uses")

    def __init__(self, torch: Any, tensor: Any) -> None:
        storage = tensor.untyped_storage()
        self.tensor, self.storage, self.bytes = tensor, (str(tensor.device), storage.data_ptr()), int(storage.nbytes())
        self.shape, self.dtype, self.device = tuple(tensor.shape), str(tensor.dtype).replace("torch.", ""), str(tensor.device)
        self.pinned = tensor.device.type == "cpu"
        self.shown = int(tensor.numel()) * int(tensor.element_size())  # more than its memory where it is expanded
        self.nodes = self.saved = self.outputs = 0
        self.of: Optional[int] = None  # the tensor whose gradient it is
        self.alone = False  # with of: nothing else refers to it
        self.earlier = False  # its graph is of a pass before the latest
        self.uses = _uses(torch, tensor, storage)

    def weight(self) -> int:
        """What goes with the tensor, about: where nothing says what a graph has saved, what its nodes have computed."""
        return self.bytes + (self.saved or self.outputs)


def _uses(torch: Any, tensor: Any, storage: Any) -> Optional[Tuple[int, int]]:
    """Returns how many references to a tensor C++ code has, one of them Python's object, and how many there are to its memory; None where PyTorch does not say so."""
    try:
        return int(tensor._use_count()), int(torch._C._storage_Use_Count(storage._cdata)) - 1  # storage itself is one
    except Exception:  # noqa: BLE001  another version
        return None


def _outputs(node: Any) -> int:
    """Returns the size of what a node has computed on a device; a leaf has computed nothing."""
    size = 0
    try:
        for output in node._input_metadata if node.next_functions and not node.name().startswith(VIEWS) else ():
            if output.device.type == "cuda":
                count = output.dtype.itemsize
                for n in output.shape:
                    count *= int(n)
                size += count
    except Exception:  # noqa: BLE001  a version without it, or a shape that is not known
        return 0
    return size


_saved_names: Dict[type, List[str]] = {}


def _kept(node: Any) -> Iterable[Tuple[Any, bool]]:
    """Yields the objects that a node of a graph keeps, and whether they are memory that it has saved: that as it is, or what hooks of the program made of it, as unpacking might run them, such as those of a checkpoint; and the leaf to which it adds a gradient."""
    kind = type(node)
    if hasattr(kind, "variable"):
        yield node.variable, False
    if kind not in _saved_names:
        _saved_names[kind] = [name for name in dir(kind) if name.startswith("_raw_saved_")]
    for name in _saved_names[kind]:
        try:
            raw = getattr(node, name)
            for one in raw if isinstance(raw, (tuple, list)) else (raw,):
                yield getattr(one, "data", None), getattr(one, "unpack_hook", None) is None
        except Exception:  # noqa: BLE001  freed by a backward pass, or another version's
            continue


def _storages(torch: Any, kept: Iterable[Tuple[Any, bool]]) -> Iterable[Tuple[Storage, int]]:
    """Yields the memory on devices of what a node has saved."""
    for saved, as_it_is in kept:
        try:
            if as_it_is and type(saved) is torch.Tensor and saved.is_cuda:
                storage = saved.untyped_storage()
                yield (str(saved.device), storage.data_ptr()), int(storage.nbytes())
        except Exception:  # noqa: BLE001  without storage
            continue


class Group:
    """Tensors that are reached in the same way, or by entries of the same container."""

    def __init__(self, pinned: bool = False) -> None:
        self.pinned = pinned  # in host memory
        self.routes: List[Route] = []
        self.keys: List[int] = []
        self.garbage = False
        self.certain = True  # whether it is known what ends with it
        self.ended: Set[int] = set()  # tensors
        self.orphans = False  # parameters that only an optimizer has, and what it and they have for them

    def path(self) -> Tuple[str, str]:
        """Returns the path that all have in common, and the types on the way to one of them."""
        same = len(common([route.objects for route in self.routes], same=True))
        return written(common([route.names for route in self.routes]), self.routes[0].objects, same), self.routes[0].types

    def codes(self) -> Set[int]:
        """Returns the ids of the codes of functions at which ways begin."""
        return {id(route.objects[0].__code__) for route in self.routes if route.objects and type(route.objects[0]) is types.FunctionType}

    def request(self, referred: Dict[int, int], functions: Dict[int, List[Any]]) -> List[Any]:
        """Returns what the library is asked with (cshim/adapters/pyfreed.h): which references end. Referred is how many references from objects with a name there are
        to a tensor, and functions are by the ids of their codes: all that have the name end, as hooks of several layers."""
        objects = common([route.objects for route in self.routes], same=True)
        depth = min(len(objects), min(len(route.objects) for route in self.routes) - 1)
        children = {id(route.objects[depth]): route.objects[depth] for route in self.routes}
        if not depth:
            for code in self.codes():
                children.update({id(function): function for function in functions.get(code, ())})
            return [None, max([referred.get(key, 0) for key in children]), *children.values()]
        return [objects[depth - 1], int(self.routes[0].names[depth] == "[*]"), *children.values()]


def common(lists: List[List[Any]], same: bool = False) -> List[Any]:
    """Returns the longest beginning that all lists have in common: equal entries, or the same ones."""
    count = 0
    for entries in zip(*lists):
        if any((one is not entries[0]) if same else (one != entries[0]) for one in entries):
            break
        count += 1
    return lists[0][:count]


def join(groups: Iterable[Group], modules: Tuple[type, ...]) -> List[Group]:
    """Joins groups whose tensors are in the entries of one container, such as a list of dictionaries. Entries that are modules have names of their own."""
    joined: Dict[Any, Group] = {}
    for group in groups:
        key: Any = id(group)
        for depth, name in enumerate(group.routes[0].names[:-1]):
            if name == "[*]" and depth and not issubclass(type(group.routes[0].objects[depth]), modules):
                key = (id(group.routes[0].objects[depth - 1]), group.garbage, group.pinned)
                break
        into = joined.setdefault((key, group.orphans), Group(group.pinned))
        into.orphans = group.orphans
        into.routes += group.routes
        into.keys += group.keys
        into.garbage = into.garbage or group.garbage
        into.certain = into.certain and group.certain
    return list(joined.values())


class Freed:
    """What is freed with each group: bytes of the storages, and where PyTorch does not say what graphs have saved, what their nodes have computed."""

    def __init__(self, graphs: Graphs, groups: List[Group], tensors: Dict[int, Reading], referred: Set[int], unknown: Set[int]) -> None:
        """Unknown are the tensors of which the search did not see who refers to them: what a graph has is that one's."""
        self.bytes, self.outputs = [0] * len(groups), [0] * len(groups)
        self.certain = [group.certain for group in groups]
        self.tensors, self.graphs = tensors, graphs
        self.colour: Dict[int, int] = {}
        for number, group in enumerate(groups):
            for key in group.keys:
                self.colour[key] = number if key in group.ended else OTHERS
        known = referred | (self.colour.keys() - unknown)
        roots = [(reading.tensor.grad_fn, self.colour.get(key, OTHERS)) for key, reading in tensors.items() if key in known and graphs.numbers]
        self.nodes = graphs.colours([(root, colour) for root, colour in roots if root is not None])
        for colour in set(self.nodes) if graphs.guessed else ():
            if colour >= 0:
                self.certain[colour] = False
        self._add_storages(self._users(known, unknown))

    def _users(self, known: Set[int], unknown: Set[int]) -> Dict[Storage, Set[int]]:
        """Returns the colours of what has each storage."""
        users: Dict[Storage, Set[int]] = {}
        for key, reading in self.tensors.items():
            if key in known:
                users.setdefault(reading.storage, set()).add(self.colour.get(key, OTHERS))
        for node, colour in enumerate(self.nodes):
            for storage in self.graphs.saved[node]:
                users.setdefault(storage, set()).add(colour)
            if colour >= 0:
                self.outputs[colour] += self.graphs.outputs[node]
        for key in unknown & self.colour.keys():
            users.setdefault(self.tensors[key].storage, {self.colour[key]})
        return users

    def _add_storages(self, users: Dict[Storage, Set[int]]) -> None:
        sizes, doubtful = self._sizes()
        elsewhere = {colour for node, colour in enumerate(self.nodes) if self.graphs.outputs[node]}
        for storage, colours in users.items():
            colour = next(iter(colours))
            if len(colours) > 1 or colour < 0:
                continue
            self.bytes[colour] += sizes[storage]
            if storage in doubtful and not self.graphs.says and elsewhere - {colour}:
                self.certain[colour] = False  # another graph may have it

    def _sizes(self) -> Tuple[Dict[Storage, int], Set[Storage]]:
        """Returns the bytes of all storages, and those that C++ code may refer to beside the tensors."""
        sizes = dict(self.graphs.sizes)
        left: Dict[Storage, int] = {}  # references that no tensor accounts for
        doubtful: Set[Storage] = set()
        for reading in self.tensors.values():
            sizes[reading.storage] = reading.bytes
            if reading.uses is None or reading.uses[0] > 1:
                doubtful.add(reading.storage)
            else:
                left[reading.storage] = left.get(reading.storage, reading.uses[1]) - 1
        return sizes, doubtful | {storage for storage, count in left.items() if count > 0}
