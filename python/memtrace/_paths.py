# SPDX-License-Identifier: Apache-2.0
"""How one object refers to another, and which objects have names of their own: modules, classes, functions, variables of functions."""

from __future__ import annotations

import gc
import os
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

ENTRIES = 100_000  # of a container, that are looked at for one object
NAMED_ENTRIES = 16  # of a dictionary; one that has more is a table, of which no entry has a name of its own
ORPHANS = " (parameters that nothing else has)"  # behind an optimizer; report.Orphans of the reader


CO_OPTIMIZED = 1  # a function's code
_STANDARD = os.path.dirname(os.__file__) + "/"
OURS = os.path.dirname(__file__)  # "" where this is not a file


class Step:
    """Text is what stands behind the referrer's own, such as `.cache`, `[*]`, `(closure kept)`."""

    def __init__(self, text: str) -> None:
        self.text = text

    def below(self, attributes: bool) -> str:
        """The text, where the referrer may be a dictionary of attributes."""
        if attributes and self.text.startswith("['") and self.text[2:-2].isidentifier():
            return "." + self.text[2:-2]
        return self.text


_NAMESPACE: Any = vars(types.ModuleType)["__dict__"]


def namespace(module: types.ModuleType) -> Dict[str, Any]:
    """Returns a module's variables, past anything that its class defines: a lazy one stays unloaded."""
    found: Dict[str, Any] = _NAMESPACE.__get__(module)
    return found


_OF_TYPES = vars(type)
_OF_FUNCTIONS = vars(types.FunctionType)


def type_name(kind: type) -> str:
    """Returns the name of a class, past anything that its metaclass defines."""
    return str(_OF_TYPES["__name__"].__get__(kind))


def _full_name(found: Any, kind: Any) -> str:
    """Returns the name of a class or function, past anything that its type defines."""
    of_kind = _OF_TYPES if kind is type else _OF_FUNCTIONS
    try:
        module = of_kind["__module__"].__get__(found)
    except Exception:  # noqa: BLE001  without a module
        return f"?.{of_kind['__name__'].__get__(found)}"
    return f"{module}.{of_kind['__qualname__'].__get__(found)}"


def closure_variable(function: types.FunctionType, cell: Any) -> str:
    """Returns the name of the variable of a function's closure that lies in cell, "" if there is none."""
    for name, one in zip(function.__code__.co_freevars, function.__closure__ or ()):
        if one is cell:
            return name
    return ""


def step_between(referrer: Any, child: Any) -> Optional[Step]:
    """Says how referrer reaches child; None if it cannot be told, or if the way is not one that keeps it."""
    kind = type(referrer)
    if kind is dict:
        return _step_of_dict(referrer, child)
    if issubclass(kind, (list, tuple, set, frozenset)) or type_name(kind) == "deque":
        return Step("[*]")
    if kind is types.CellType:
        return Step("")
    if issubclass(kind, types.FunctionType):
        return _step_of_function(referrer, child)
    if issubclass(kind, types.MethodType):
        return Step(".__self__")
    if issubclass(kind, types.TracebackType):
        return Step("")
    if issubclass(kind, types.FrameType):
        return _step_of_frame(referrer, child)
    if issubclass(kind, BaseException) and type(child) is types.TracebackType:
        return Step(" (traceback)")
    if issubclass(kind, dict):  # OrderedDict and others
        return _step_of_dict(referrer, child) or _step_of_instance(referrer, child)
    if type_name(kind) == "_lru_cache_wrapper" and child is not instance_dict(referrer):  # of functools; with a limit it has the results itself
        return Step(" (lru_cache)" if type(child) is dict else " (lru_cache)[*]")
    return _step_of_instance(referrer, child)


def entries(mapping: Dict[Any, Any]) -> Iterator[Tuple[Any, Any]]:
    try:
        for n, item in enumerate(dict.items(mapping)):
            if n == ENTRIES:
                return
            yield item
    except RuntimeError:  # another thread changed it meanwhile
        return


def _key_text(key: Any) -> str:
    """A key as the program would write it, but numbers, which differ from entry to entry, are all the same; so are those of nn.Sequential's layers."""
    if type(key) is str and len(key) <= 40 and not key.isdigit():
        return repr(key)
    return "*"


def _step_of_dict(mapping: Dict[Any, Any], child: Any) -> Optional[Step]:
    for key, value in entries(mapping):
        if value is child:
            return Step(f"[{_key_text(key)}]")
        if key is child:
            return Step("[key *]")
    return None


def steps_of_table(mapping: Dict[Any, Any]) -> Dict[int, Step]:
    """Says how a dictionary reaches each of its values, by their ids: looking for one after another takes the square of their number."""
    found: Dict[int, Step] = {}
    for key, value in entries(mapping):
        if id(value) not in found:
            found[id(value)] = Step(f"[{_key_text(key)}]")
    return found


def is_table(found: Any) -> bool:
    """Reports whether an object is a dictionary of many entries."""
    return issubclass(type(found), dict) and dict.__len__(found) > NAMED_ENTRIES


def _step_of_function(function: types.FunctionType, child: Any) -> Optional[Step]:
    if child is function.__closure__:
        return Step("")
    if child is function.__defaults__ or child is function.__kwdefaults__:
        return Step(" (default)")
    if child is function.__dict__:
        return Step("")
    return None


def _step_of_frame(frame: types.FrameType, child: Any) -> Optional[Step]:
    for name, value in entries(frame_variables(frame)):
        if value is child:
            return Step(f" {_place(frame)}, variable {name}")
    if frame.f_back is child:  # a frame that is kept keeps its callers
        return None
    return Step(f" {_place(frame)}")


def frame_variables(frame: types.FrameType, inner: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
    """Returns the variables of a frame; inner are those of the one that it called, if it is running.

    Before Python 3.13 a function's frame keeps what it was asked for, and so the objects that its variables had at that time. That is emptied again, unless somebody
    else has it, or needs it: a tracer, by which it becomes the variables' values.
    """
    asked = frame.f_locals
    found = dict(asked)
    code = frame.f_code
    if sys.version_info >= (3, 13) or not code.co_flags & CO_OPTIMIZED or frame.f_trace is not None:
        return found
    if inner and any(value is frame for value in inner.values()):
        return found
    if found.keys() <= {*code.co_varnames, *code.co_cellvars, *code.co_freevars} and sys.getrefcount(asked) == 3:
        asked.clear()
    return found


def _place(frame: types.FrameType) -> str:
    return f"in {frame.f_code.co_name} ({os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno})"


def instance_dict(owner: Any) -> Optional[Dict[str, Any]]:
    """Returns an object's attributes, past anything that its class defines; a class's own."""
    found: Any = None
    try:
        if issubclass(type(owner), type):
            return next((found for found in gc.get_referents(_OF_TYPES["__dict__"].__get__(owner)) if type(found) is dict), None)
        for defined in _namespaces(owner):
            if type(defined.get("__dict__")) in (types.GetSetDescriptorType, types.MemberDescriptorType):
                found = defined["__dict__"].__get__(owner)
                break
    except Exception:  # noqa: BLE001
        return None
    return found if type(found) is dict else None


def _namespaces(owner: Any) -> Iterator[Any]:
    """Yields what the classes of an object define, its own first, past anything that their metaclass defines."""
    for base in _OF_TYPES["__mro__"].__get__(type(owner)):
        yield _OF_TYPES["__dict__"].__get__(base)


def _step_of_instance(owner: Any, child: Any) -> Optional[Step]:
    attributes = instance_dict(owner)
    if attributes is child:
        return Step("")
    for key, value in entries(attributes or {}):
        if value is child:
            return Step(f".{key}")
    for defined in _namespaces(owner):
        for name, slot in list(defined.items()):
            if type(slot) is types.MemberDescriptorType:
                try:
                    if slot.__get__(owner) is child:
                        return Step(f".{name}")
                except Exception:  # noqa: BLE001  not set
                    continue
    return Step(f".<{type_name(type(child))}>")


def _is_ours(file: str) -> bool:
    return file == __file__ or bool(OURS) and os.path.dirname(file) == OURS


def _is_library(file: str) -> bool:
    return "/site-packages/" in file or "/dist-packages/" in file or file.startswith(_STANDARD)


class Roots:
    """What has a name of its own, at which a way ends; values are the modules' dictionaries and the values of variables, None before those of libraries' functions. Variables of functions that are running are found by their frames, which collect no garbage and so have no referrers."""

    def __init__(self) -> None:
        self.modules = {id(namespace(module)): name for name, module in reversed(list(sys.modules.items())) if issubclass(type(module), types.ModuleType)}
        self.running = set()
        self.locals: Dict[int, str] = {}
        libraries: List[Any] = [None]
        self.inner: Set[int] = set()  # variables of libraries' functions
        self.values: List[Any] = [namespace(module) for module in list(sys.modules.values()) if issubclass(type(module), types.ModuleType)]
        for frame in list(sys._current_frames().values()):
            at: Optional[types.FrameType] = frame
            found: Dict[str, Any] = {}
            inner: Dict[int, str] = {}  # variables of the libraries' functions that the next of the program's has called
            while at is not None:
                self.running.add(id(at))
                library = _is_library(at.f_code.co_filename)
                if not library and not _is_ours(at.f_code.co_filename):
                    self.locals.update({key: f"{_place(at)}, {text}" for key, text in inner.items()})
                    inner = {}
                found = {} if _is_ours(at.f_code.co_filename) or at.f_code.co_name == "<module>" else frame_variables(at, found)
                for name, value in found.items():
                    if id(value) in self.locals and (library or id(value) not in self.inner):
                        continue
                    self.locals[id(value)] = f"{_place(at)}, variable {name}"
                    (libraries if library else self.values).append(value)
                    if library:
                        self.inner.add(id(value))
                        inner[id(value)] = f"variable {name} of {_place(at)[len('in ') :]}"
                    else:
                        self.inner.discard(id(value))
                at = at.f_back
        self.values += libraries
        frame = None  # type: ignore[assignment]  # a variable that refers to its own frame keeps that, and all those that called it

    def local_name(self, found: Any) -> str:
        """Returns the running function's variable that found is, "" if it is none."""
        return self.locals.get(id(found), "")

    def skip(self, found: Any) -> bool:
        """Reports whether found is a running function, whose variables have their names already, or what the interpreter keeps for itself."""
        return id(found) in self.running or type(found) in (types.CodeType, types.BuiltinFunctionType)

    def name(self, found: Any) -> str:
        """Returns what found is called by itself, "" if by nothing."""
        if id(found) in self.modules:
            return self.modules[id(found)]
        if issubclass(type(found), types.ModuleType):
            return str(namespace(found).get("__name__", "?"))
        for kind in (type, types.FunctionType):
            if issubclass(type(found), kind):
                return _full_name(found, kind)
        return self.local_name(found)


def module_types() -> Tuple[type, ...]:
    """Returns PyTorch's nn.Module, for issubclass; nothing while it is not imported."""
    kind = getattr(sys.modules.get("torch.nn"), "Module", None)
    return () if kind is None else (kind,)


_CHILDREN = ("._modules", "._parameters", "._buffers")


def written(names: List[str], objects: List[Any], same: int) -> str:
    """The path of these names, which lead to these objects; other ways with these names share the first so many. What an nn.Module has is written as in named_parameters: model.layers.0.weight, or model.layers.*.weight of several."""
    modules = module_types()
    texts = list(names)
    for n, name in enumerate(names[:-1]):
        if name not in _CHILDREN or not any(issubclass(type(owner), modules) for owner in objects[n - 1 : n]):
            continue
        key = names[n + 1][1:-1].strip("'")
        if n + 1 < same:
            key = next((str(one) for one, value in entries(objects[n]) if value is objects[n + 1]), key)
        texts[n : n + 2] = ["", f".{key}"]
    return "".join(texts)


def _without_attributes(way: List[Any], steps: List[Step]) -> Tuple[List[Any], List[Step]]:
    """Returns the way without dictionaries of attributes. From Python 3.11 on an object has one only since somebody asked for it, such as a search before: with and
    without, the way is the same."""
    objects = way[:1]
    direct: List[Step] = []
    attribute: Optional[Step] = None
    for n, (at, step) in enumerate(zip(way[1:], steps)):
        if n + 2 < len(way) and instance_dict(way[n + 2]) is at:
            attribute = _step_of_instance(way[n + 2], way[n])
            continue
        objects.append(at)
        direct.append(attribute or step)
        attribute = None
    return objects, direct


class Route:
    """A way from what has a name to a tensor. Objects are those on the way, the tensor last, and names how each is reached from the one before; "" where it is the
    same as that by name."""

    def __init__(self, names: List[str], objects: List[Any], types: str) -> None:
        self.names, self.objects, self.types = names, objects, types

    @staticmethod
    def of(roots: Roots, way: List[Any], steps: List[Step], name: str) -> Route:
        """Way begins with the tensor, and each step leads to the next object on it. Name is that of the last, "" if it has none."""
        way, steps = _without_attributes(way, steps)
        texts: List[str] = []
        types_ = [type_name(type(way[0]))]
        for n, (at, step) in enumerate(zip(way[1:], steps)):
            module = id(at) in roots.modules
            children = n + 1 < len(steps) and steps[n + 1].below(True) in _CHILDREN
            texts.append("[*]" if is_table(at) and not (module or children) else step.below(module))
            types_.append("module" if module else type_name(type(at)))
        if len(way) > 2 and types_[-1] == "function":  # function, closure, cell
            variable = closure_variable(way[-1], way[-3])
            if variable:
                texts[-2] = f" (closure: {variable})"
        names = [name or f"?{type_name(type(way[-1]))}", *reversed(texts)]
        return Route(names, way[::-1], ", ".join(reversed(types_)))

    def without_inner(self, kind: type) -> Optional[Route]:
        """Returns the way to the first object of a kind on it, an optimizer, and from there to the tensor as to a parameter that only that has; None if there is none, or it has the tensor otherwise."""
        for n, at in enumerate(self.objects[:-1]):
            if issubclass(type(at), kind):
                if self.names[n + 1] not in (".param_groups", ".state"):
                    return None
                return Route([*self.names[: n + 1], ORPHANS], [*self.objects[: n + 1], self.objects[-1]], ", ".join([*self.types.split(", ")[: n + 1], "Parameter"]))
        return None

    def begins_in(self, values: Set[int]) -> bool:
        """Reports whether it begins at one of the objects with these ids."""
        return bool(self.objects) and id(self.objects[0]) in values

    def text(self) -> Tuple[str, str]:
        """Returns the path and the types on it."""
        return written(self.names, self.objects, len(self.objects)), self.types
