# SPDX-License-Identifier: Apache-2.0
"""The way from an object to a name, with plain objects. TestReferrers of internal/e2e has real tensors."""

import collections
import functools
import gc
import sys
import threading
import time
import types
import weakref

from conftest import PYTHON_FOLDER

sys.path.insert(0, str(PYTHON_FOLDER))

import memtrace  # noqa: E402
from memtrace import _freed, _paths, _referrers, _ways  # noqa: E402


class Leaf:
    pass


class Holder:
    def __init__(self):
        self.inside = collections.OrderedDict(first=[Leaf()])


class Hostile:
    """Nothing of its own may run."""

    shared = Leaf()

    def __init__(self):
        object.__setattr__(self, "kept", Leaf())

    def __getattribute__(self, name):
        raise AssertionError(name)

    def __eq__(self, other):
        raise AssertionError("compared")

    __hash__ = object.__hash__


HOLDER, HOSTILE, LEAVES, LAYERS = Holder(), Hostile(), {Leaf(): 1}, {"17": Leaf()}
CYCLE = [Leaf()]
CYCLE.append(CYCLE)
NAMESPACE = {}


def path_of(get, budget=100_000):
    """No variable of this function refers to what get returns."""
    walk = _referrers.Walk({id(get()): get()}, budget)
    walk.run()
    return walk.path(id(get()))


def test_paths():
    assert path_of(lambda: HOLDER.inside["first"][0]) == (f"{__name__}.HOLDER.inside['first'][*]", "module, Holder, OrderedDict, list, Leaf")
    assert path_of(lambda: object.__getattribute__(HOSTILE, "kept")) == (f"{__name__}.HOSTILE.kept", "module, Hostile, Leaf")
    assert path_of(lambda: next(iter(LEAVES)))[0] == f"{__name__}.LEAVES[key *]"
    assert path_of(lambda: Hostile.shared) == (f"{__name__}.Hostile.shared", "type, Leaf")
    assert path_of(lambda: CYCLE[0])[0] == f"{__name__}.CYCLE[*]"
    assert path_of(lambda: LAYERS["17"])[0] == f"{__name__}.LAYERS[*]"


class Module:
    """As nn.Module keeps what it has."""

    def __init__(self, parameters=(), **modules):
        vars(self).update(_modules=dict(modules), _parameters={name: Leaf() for name in parameters})


MODEL = Module(layers=Module())
MODEL._modules["layers"]._modules.update({"0": Module(["weight"]), "17": Module(["weight"])})


def test_modules_have_the_names_of_named_parameters(monkeypatch):
    """The path was HOLDER._modules['layers']._modules[*]._parameters['weight'], which nobody writes in a program."""
    path = path_of(lambda: MODEL._modules["layers"]._modules["17"]._parameters["weight"])[0]
    assert path == f"{__name__}.MODEL._modules['layers']._modules[*]._parameters['weight']"  # of a class that is no nn.Module
    monkeypatch.setitem(sys.modules, "torch.nn", types.SimpleNamespace(Module=Module))
    assert path_of(lambda: MODEL._modules["layers"]._modules["17"]._parameters["weight"])[0] == f"{__name__}.MODEL.layers.17.weight"

    leaves = [MODEL._modules["layers"]._modules[number]._parameters["weight"] for number in ("0", "17")]
    walk = _referrers.Walk({id(leaf): leaf for leaf in leaves}, 100_000)
    walk.own.add(id(leaves))
    walk.names, walk.roots.locals = {}, {}
    walk.run()
    group = _referrers.Group()
    group.routes = [walk.route(id(leaf)) for leaf in leaves]
    assert group.path()[0] == f"{__name__}.MODEL.layers.*.weight"


class Plan:
    def __init__(self):
        self.optimizer = Leaf()


PLANS = [Plan() for _ in range(3)]


def test_an_earlier_search_changes_no_path():
    """A search asks objects for their attributes, and from Python 3.11 on they have a dictionary of them since. The ways through those that had one, and through others,
    were two: the list's entries had no name in common, and after another search another path."""
    vars(PLANS[1])
    leaves = [plan.optimizer for plan in PLANS]

    def found():
        walk = _referrers.Walk({id(leaf): leaf for leaf in leaves}, 100_000)
        walk.own.add(id(leaves))
        walk.names, walk.roots.locals = {}, {}
        walk.run()
        group = _referrers.Group()
        group.routes = [walk.route(id(leaf)) for leaf in leaves]
        return group.path(), [list(map(type, route.objects)) for route in group.routes]

    (path, types_), objects = found()
    assert path == f"{__name__}.PLANS[*].optimizer"
    assert types_ == "module, list, Plan, Leaf"
    assert objects == [[dict, list, Plan, Leaf]] * 3
    assert found() == ((path, types_), objects)


@functools.lru_cache(maxsize=None)
def unbounded(n):
    return Leaf()


@functools.lru_cache(maxsize=8)
def bounded(n):
    return Leaf()


def test_caches_of_functions_have_names():
    """The path was unbounded.<dict>[*]."""
    assert path_of(lambda: unbounded(3))[0] == f"{__name__}.unbounded (lru_cache)[*]"
    assert path_of(lambda: bounded(3))[0] == f"{__name__}.bounded (lru_cache)[*]"


def test_entries_of_a_table_have_no_names():
    """A cache by user was as many holders as it had users."""
    NAMESPACE["table"] = {f"user{n}": [Leaf()] for n in range(17)}
    NAMESPACE["few"] = {f"part{n}": [Leaf()] for n in range(16)}
    try:
        assert path_of(lambda: NAMESPACE["table"]["user3"][0])[0] == f"{__name__}.NAMESPACE['table'][*][*]"
        assert path_of(lambda: NAMESPACE["few"]["part3"][0])[0] == f"{__name__}.NAMESPACE['few']['part3'][*]"
    finally:
        NAMESPACE.clear()


def test_names_run_no_code_of_the_program(monkeypatch):
    """A lazy module is not loaded, and a metaclass is not asked."""

    class Lazy(types.ModuleType):
        def __getattribute__(self, name):
            raise AssertionError(name)

    class Meta(type):
        def __getattribute__(cls, name):
            raise AssertionError(name)

    class Odd(metaclass=Meta):
        kept = Leaf()

    def refuse(*_):
        raise AssertionError

    hostile = type("Hostile", (type,), {name: property(refuse) for name in ("__name__", "__module__", "__mro__", "__dict__")})
    odd = hostile("odd", (), {"__dict__": property(refuse), "__class__": property(refuse), "__slots__": ("kept",)})()
    type.__getattribute__(type(odd), "kept").__set__(odd, [Leaf()])
    NAMESPACE["odd"] = odd

    lazy = Lazy("lazy_module")
    types.ModuleType.__dict__["__dict__"].__get__(lazy)["kept"] = Leaf()
    monkeypatch.setitem(sys.modules, "lazy_module", lazy)
    assert path_of(lambda: types.ModuleType.__dict__["__dict__"].__get__(lazy)["kept"])[0] == "lazy_module.kept"
    assert path_of(lambda: type.__getattribute__(Odd, "kept"))[0].endswith(".Odd.kept")
    try:
        path, kinds = path_of(lambda: type.__getattribute__(type(odd), "kept").__get__(odd)[0])
        assert path.endswith("odd.kept[*]") and kinds.endswith("odd, list, Leaf"), (path, kinds)
        assert _paths.Roots().name(type(odd)).endswith(".odd")
    finally:
        NAMESPACE.clear()


def test_running_function():
    mine = Leaf()
    path, _ = path_of(lambda: mine)
    assert path.startswith("in test_running_function (test_referrers.py:") and path.endswith(", variable mine"), path


def test_running_function_of_a_library():
    """Its own variables are found by the program's function that called it; what that has as well is that function's."""
    library: dict = {}
    exec(compile("def call(given, look):\n    own = given.make()\n    return look(given), look(own)\n", "/x/site-packages/layer.py", "exec"), library)
    mine = Leaf()
    Leaf.make = Leaf  # type: ignore[attr-defined]

    def look(*given):
        walk = _referrers.Walk({id(given[0]): given[0]}, 10**6)
        walk.run()
        return walk.path(id(given[0]))[0]

    try:
        given, own = library["call"](mine, look)
    finally:
        del Leaf.make  # type: ignore[attr-defined]
    assert given.endswith(", variable mine"), given
    assert own.startswith("in test_running_function_of_a_library (test_referrers.py:") and own.endswith(", variable own of call (layer.py:3)"), own


def test_closure():
    def make():
        kept = Leaf()
        return lambda: kept

    NAMESPACE["function"] = make()
    path, types = path_of(lambda: NAMESPACE["function"].__closure__[0].cell_contents)
    assert path.endswith("<lambda> (closure: kept)") and types == "function, tuple, cell, Leaf", (path, types)


def test_traceback():
    def fail():
        held = Leaf()
        raise ValueError(id(held))

    try:
        fail()
    except ValueError as error:
        NAMESPACE["error"] = error
    path, _ = path_of(lambda: NAMESPACE["error"].__traceback__.tb_next.tb_frame.f_locals["held"])
    assert "NAMESPACE['error'] (traceback) in fail (test_referrers.py:" in path and path.endswith(", variable held"), path


def test_other_threads_wait_for_a_search():
    """A thread that wants the interpreter gets it before or after a search. Not every time: where a thread that waited already is woken late, it comes in between."""
    interval = sys.getswitchinterval()
    rounds, over = [0], threading.Event()

    def work():
        while not over.is_set():
            rounds[0] += 1

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(50):
            with _referrers._Alone():
                before, until = rounds[0], time.monotonic() + 10 * interval
                while time.monotonic() < until:
                    pass
                undisturbed = rounds[0] == before
            assert sys.getswitchinterval() == interval
            if undisturbed:
                break
    finally:
        over.set()
        worker.join()
    assert undisturbed


def test_budget_is_kept():
    assert path_of(lambda: HOLDER.inside["first"][0], budget=1)[0].startswith("?")


def test_without_torch():
    assert "torch" not in sys.modules
    assert memtrace.referrers(quiet=True) == []


NAMED = [Leaf()]


KEPT = {1: [Leaf()]}


def test_what_holds_an_object_for_a_moment_hides_no_name():
    # A list that the library's own script for PyTorch had for a moment hid the names of variables.
    for found, path in ((NAMED, "NAMED"), (KEPT[1], "KEPT[*]")):
        walk = _referrers.Walk({id(found): found}, 100)
        before, walk.frontier = walk.frontier, {}
        for referrer in ([NAMED, KEPT[1]], (NAMED, found), KEPT, globals()):
            walk.visit(referrer, before)
        before, walk.frontier = walk.frontier, {}
        walk.visit(globals(), before)
        assert walk.path(id(found))[0] == f"{__name__}.{path}"


def test_variables_of_running_functions_are_not_kept():
    # Up to Python 3.12 a frame that is asked for its variables keeps what they were.
    def dropped():
        held = Leaf()
        watched = weakref.ref(held)
        path_of(lambda: NAMESPACE)
        del held
        return watched() is None

    def own_dictionary():
        held = Leaf()
        mine = locals()
        path_of(lambda: NAMESPACE)
        return mine.get("held") is held

    assert dropped() and own_dictionary()


def test_nothing_waits_for_the_garbage_collector():
    held = Leaf()
    watched = weakref.ref(held)
    gc.disable()
    try:
        _referrers.referrers(quiet=True)
        path_of(lambda: held)
        held = None
        assert watched() is None
    finally:
        gc.enable()


def test_variables_that_a_tracer_looks_at_stay():
    # The interpreter takes them back from there when the tracer returns.
    def traced():
        held = Leaf()
        other = 1
        len([])
        return held, other

    def profiler(frame, event, argument):
        if frame.f_code is traced.__code__:
            assert frame.f_locals is not None
            _referrers.Roots()

    sys.setprofile(profiler)
    try:
        held, other = traced()
    finally:
        sys.setprofile(None)
    assert type(held) is Leaf and other == 1


class Node:
    """Of an autograd graph; saved are tensors, as PyTorch tells from 2.8 on."""

    def __init__(self, number, following=(), saved=()):
        self.number, self.next_functions = number, [(node, 0) for node in following]
        self._raw_saved_self = [types.SimpleNamespace(data=one, unpack_hook=None) for one in saved]

    _raw_saved_self = None

    def _sequence_nr(self):
        return self.number


class Tensor:
    is_cuda, device = True, "cuda:0"

    def __init__(self, node=None):
        self.grad_fn = node

    def untyped_storage(self):
        return types.SimpleNamespace(data_ptr=lambda: id(self), nbytes=lambda: 8)


def reading_of(tensor):
    reading = _freed.Reading.__new__(_freed.Reading)
    reading.tensor, reading.storage, reading.bytes, reading.nodes, reading.saved, reading.outputs = tensor, ("cuda:0", id(tensor)), 8, 0, 0, 0
    return reading


def torch_with_graphs():
    return types.SimpleNamespace(Tensor=Tensor, _C=types.SimpleNamespace(_autograd=types.SimpleNamespace(SavedTensor=types.SimpleNamespace(data=None))))


def left_after(until):
    """Returns which tensors have rows: that of a variable, that which only the graph of this has saved, and one that only C++ code has."""
    torch = torch_with_graphs()
    saved = Tensor(Node(1))
    state, other = Tensor(Node(2, [saved.grad_fn], [saved])), Tensor(Node(3))
    tensors = {id(one): reading_of(one) for one in (other, saved, state)}
    graphs, referred = _freed.Graphs(torch), {id(state)}
    late = _referrers._measure_graphs(graphs, tensors, referred, set(), until)
    _referrers._leave_doubtful(graphs, tensors, referred, None)
    return late, [name for name, one in (("state", state), ("saved", saved), ("other", other)) if id(one) in tensors]


def test_graphs_of_which_time_ran_out_may_have_all_tensors():
    """Tensors of a graph that was not measured any more were rows of their own, and others that hold what the graph's own variable does."""
    assert left_after(float("inf")) == (False, ["state", "other"])
    assert left_after(0) == (True, ["state"])


def test_passes_that_are_under_way():
    """A backward pass takes graphs apart without the interpreter's lock; what it lets go of must not live until a search ends."""
    begun, over = threading.Event(), threading.Event()

    def backward():
        begun.set()
        over.wait(60)

    torch = types.SimpleNamespace(autograd=types.SimpleNamespace(backward=backward))
    ours = _referrers.Passes(torch, own=1)
    assert _referrers.Passes(torch).count() == 0 and _referrers.Passes(torch).are_over()
    worker = threading.Thread(target=backward)
    worker.start()
    begun.wait(60)
    try:
        passes = _referrers.Passes(torch)
        assert passes.count() == 1 and not passes.are_over() and ours.are_over()
        graphs = _freed.Graphs(torch_with_graphs(), passes.are_over)
        assert graphs.add(Node(1)) == [] and graphs.unread
    finally:
        over.set()
        worker.join()
    assert _referrers.Passes(torch).are_over()
    assert not passes.are_over(), "a search does not look at half of the graphs"


def test_looking_for_passes_leaves_no_garbage():
    """Its own frame was kept, and with it whatever the search had found."""
    gc.collect()
    gc.disable()
    try:
        _referrers.Passes(types.SimpleNamespace(autograd=types.SimpleNamespace(backward=path_of))).count()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_entries_of_a_table_are_looked_up_once(monkeypatch):
    """Each of n tensors of a dictionary was looked for among all n: of 28,000, for 9 s instead of 1."""
    table = {number: Leaf() for number in range(100)}
    ways = _ways.Ways(None, _paths.Roots(), [], [], 0, None)
    asked = []
    monkeypatch.setattr(_ways, "steps_of_table", lambda mapping: asked.append(mapping) or _paths.steps_of_table(mapping))
    monkeypatch.setattr(_ways, "step_between", lambda *_: None)
    assert {ways._step(table, leaf).text for leaf in table.values()} == {"[*]"}
    assert asked == [table]
