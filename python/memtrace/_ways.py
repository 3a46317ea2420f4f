# SPDX-License-Identifier: Apache-2.0
"""The ways from what has a name to tensors: found step by step among the garbage collector's objects, or by the library in one pass."""

from __future__ import annotations

import gc
import sys
import time
import types

from ._freed import Graphs, Group, Reading
from ._paths import Roots, Route, Step, entries, instance_dict, is_table, step_between, steps_of_table, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Set, Tuple

DEPTH = 24  # steps from a tensor to a name
WAYS = 8  # referrers without a name that are noted of an object


class Walk:
    """Goes from tensors to what refers to them, to what refers to that, and so on, one step of all of them at a time: each step passes over all objects once."""

    def __init__(self, targets: Dict[int, Any], budget: int, until: float = float("inf"), last: Optional[type] = None) -> None:
        self.roots = Roots()
        self.last = last
        self.budget = budget
        self.until = until  # by time.monotonic
        self.late = False
        self.ways: Dict[int, List[Tuple[int, Step]]] = {}  # by object: what refers to it, and how; what has a name first
        self.seen: Dict[int, Any] = dict(targets)  # keeps them alive, so that no other object has their id
        self.names: Dict[int, str] = {}  # of objects that have one by themselves
        self.own = {id(self), id(self.__dict__), id(targets), id(self.seen), id(self.ways), id(self.names), id(self.roots), id(self.roots.__dict__), id(self.roots.values)}
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
        """Returns the shortest way from an object to one that has a name; what holds it for a moment only, such as another thread's list, leads to none. Else any way, as far as it goes. Ways through objects of the last type are taken where there is no other."""
        before: Dict[int, Tuple[int, Step]] = {}
        waiting: List[int] = [key]
        deferred: List[int] = []
        for at in waiting:
            if at in self.names:
                return self.back(key, at, before)
            for parent, step in self.ways.get(at, ()):
                if parent != key and parent not in before:
                    before[parent] = (at, step)
                    (deferred if self.last and issubclass(type(self.seen[parent]), self.last) else waiting).append(parent)
            if at == waiting[-1]:
                waiting.extend(deferred)
                deferred = []
        return self.back(key, waiting[-1], before)

    @staticmethod
    def back(key: int, at: int, before: Dict[int, Tuple[int, Step]]) -> List[Tuple[int, Step]]:
        way: List[Tuple[int, Step]] = []
        while at != key:
            child, step = before[at]
            way.append((at, step))
            at = child
        return way[::-1]

    def route(self, key: int) -> Route:
        """Returns the way to a tensor."""
        way = [self.seen[key]]
        steps = []
        for at, step in self.way(key):
            way.append(self.seen[at])
            steps.append(step)
        return Route.of(self.roots, way, steps, self.names.get(id(way[-1]), ""))

    def path(self, key: int) -> Tuple[str, str]:
        """Returns the path to a tensor and the types on it."""
        return self.route(key).text()

    @staticmethod
    def is_garbage(key: int) -> bool:
        """Is not known here."""
        return False

    @staticmethod
    def is_named(key: int) -> bool:
        """Is not known here."""
        return False

    @staticmethod
    def orphans(_: Dict[int, Reading]) -> Dict[int, Route]:
        """Are not known here."""
        return {}

    visits = 0


class Ways:
    """The shortest ways from names to tensors, which the library finds in one pass (cshim/adapters/pypaths.h)."""

    NAMED, FOREIGN, GARBAGE, UNKNOWN = range(4)

    def __init__(self, collector: Any, roots: Roots, found: List[List[Any]], keys: List[int], visits: int, last: Optional[type]) -> None:
        self.collector, self.roots, self.visits, self.last = collector, roots, visits, last
        self.tables: Dict[int, Dict[int, Step]] = {}  # by dictionary, by value
        self.steps: Dict[Tuple[int, int], Optional[Step]] = {}  # by the two objects, which the ways keep alive
        self.how = {key: way[0] for key, way in zip(keys, found)}
        self.referred_by = {key: way[1] for key, way in zip(keys, found)}  # how many references from objects with a name
        self.ways = {key: way[:1:-1] for key, way in zip(keys, found)}  # from a tensor on
        self.late = self.UNKNOWN in self.how.values()

    @staticmethod
    def of(collector: Any, objects: List[Any], budget: int, until: float, last: Optional[type]) -> Optional[Ways]:
        """Returns None where the collector cannot be asked. Ways through objects of type last are taken where there is no other."""
        roots = Roots()
        left = max(min(until - time.monotonic(), 3600), 0)
        answer = collector.ways(objects, roots.values, budget, int(left * 1000), last)
        return Ways(collector, roots, answer[0], [id(one) for one in objects], answer[1], last) if answer else None

    def referred(self) -> Set[int]:
        """Returns which tensors a name or an object leads to; the others something in C++ holds, or it is not known."""
        return {key for key, how in self.how.items() if how in (self.NAMED, self.GARBAGE) or len(self.ways[key]) > 1}

    def unknown(self) -> Set[int]:
        """Returns which tensors were not reached before the search was cut short."""
        return {key for key, how in self.how.items() if how == self.UNKNOWN}

    def is_foreign(self, key: int) -> bool:
        """Reports whether something else than objects holds it, or an object on the way to it."""
        return self.how.get(key) == self.FOREIGN

    def node_of(self, key: int, graphs: Graphs) -> Optional[int]:
        """Returns the node of a graph that alone leads to a tensor: from a tensor that has a name, or from nothing that has one. None if there is none."""
        way = self.ways.get(key, [])
        if self.is_foreign(key):
            return None if len(way) == 1 and key in graphs.roots else graphs.node_of(way[1:] or way)
        after = [node for node, at in zip(way[1:], way[2:]) if id(at) in self.how and at.grad_fn is node]
        return graphs.node_of(after) if self.is_named(key) else None

    def decide(self, groups: List[Group], tensors: Dict[int, Reading], budget: int, until: float) -> None:
        """Finds the tensors that end with each group. Garbage does; of what is held by something else than objects it is not known."""
        asked = [group for group in groups if group.certain and not group.garbage and not group.orphans]
        asked.sort(key=lambda group: -sum([tensors[key].weight() for key in group.keys]))
        left = max(min(until - time.monotonic(), 3600), 0)
        functions = self._functions({code for group in asked for code in group.codes()})
        requests = [group.request(self.referred_by, functions) for group in asked]
        own = [self.roots.values, *functions.values(), *self.ways.values(), *tensors.values(), *[route.objects for group in groups for route in group.routes]]
        kept = [value for value in self.roots.values if id(value) in self.roots.modules]
        answer = self.collector.freed(requests, own, kept, budget, int(left * 1000), sys.modules["torch"].Tensor) or [None] * len(asked)
        for group in groups:
            group.ended = set(group.keys)
            group.certain = group.certain or group.garbage
        for group, ended in zip(asked, answer):
            if ended is None:
                group.certain = False
            else:
                group.ended = {*ended[0], *[key for key in ended[1] if _is_kept_by_code(tensors.get(key))]}

    def orphans(self, tensors: Dict[int, Reading]) -> Dict[int, Route]:
        """Returns parameters to which only ways through optimizers lead, as where a model was replaced, and what their optimizer has for them, each with the way to that optimizer."""
        optimizers, parameter = self.last, getattr(sys.modules.get("torch.nn"), "Parameter", None)
        found: Dict[int, Route] = {}
        states: Dict[int, Dict[int, Any]] = {}  # by optimizer, by parameter
        if optimizers is None or parameter is None:
            return found
        for key, reading in tensors.items():
            if not (issubclass(type(reading.tensor), parameter) and self.is_named(key)):
                continue
            way = self.route(key).without_inner(optimizers)
            if way is None:
                continue
            optimizer = way.objects[-2]
            if id(optimizer) not in states:
                state: Any = (instance_dict(optimizer) or {}).get("state")
                states[id(optimizer)] = {id(of): has for of, has in entries(state) if type(has) is dict} if issubclass(type(state), dict) else {}
            found[key] = way
            for one in map(id, dict.values(states[id(optimizer)].get(key, {}))):
                if one in tensors and self.is_named(one) and self.route(one).without_inner(optimizers) is not None:
                    found[one] = way
        return found

    def _functions(self, codes: Set[int]) -> Dict[int, List[Any]]:
        """Returns all functions that have one of the codes with these ids, by these."""
        functions: Dict[int, List[Any]] = {code: [] for code in codes}
        for function in self.collector.instances(types.FunctionType) if codes else ():
            if id(function.__code__) in functions:
                functions[id(function.__code__)].append(function)
        return functions

    def is_named(self, key: int) -> bool:
        """Reports whether a name leads to it."""
        return self.how.get(key) == self.NAMED

    def is_garbage(self, key: int) -> bool:
        """Reports whether the collector would free it."""
        return bool(self.how[key] == self.GARBAGE)

    def route(self, key: int) -> Route:
        """Returns the way to a tensor."""
        way: List[Any] = []
        steps: List[Step] = []
        name = ""
        for at in self.ways[key]:
            if way:
                steps.append(self._step(at, way[-1]) or Step(f".<{type_name(type(way[-1]))}>"))
            way.append(at)
            name = self.roots.name(at)
            if (name and (id(at) not in self.roots.inner or at is self.ways[key][-1])) or (self.is_garbage(key) and len(way) > 1 and not self._is_inner(at)):
                break
        return Route.of(self.roots, way, steps, name) if way else Route(["?"], [], "")

    def _step(self, at: Any, child: Any) -> Optional[Step]:
        """Says how an object reaches another one, as step_between does."""
        if is_table(at) and id(at) not in self.tables:
            self.tables[id(at)] = steps_of_table(at)
        pair = id(at), id(child)
        if pair not in self.steps:
            self.steps[pair] = self.tables.get(id(at), {}).get(id(child)) or step_between(at, child)
        return self.steps[pair]

    @staticmethod
    def _is_inner(found: Any) -> bool:
        """Reports whether an object says little by itself, so that what refers to it is wanted as well."""
        return type(found) in (dict, list, tuple, set, type((lambda: found).__closure__[0]))  # type: ignore[index]


def _is_kept_by_code(reading: Optional[Reading]) -> bool:
    """Reports whether the reference that nothing accounts for is that of C++ code: since PyTorch 2.10 (its pull request 167564) the tensor's object has one as long as any such code has the tensor."""
    try:
        major, minor = str(sys.modules["torch"].__version__).split(".")[:2]
        return (int(major), int(minor)) >= (2, 10) and reading is not None and reading.uses is not None and reading.uses[0] > 1
    except ValueError:
        return False
