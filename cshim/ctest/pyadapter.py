"""Looks on while the adapters' mechanism works in the interpreter that runs this.

    pyadapter.py LIBRARY [CASE...]

LIBRARY is built from pyadapter.c and the library's C half. Every case runs in a child of
its own; prints "VERSION: N passed, N failed". Needs nothing but the standard library.
"""
import collections
import ctypes
import gc
import io
import os
import random
import shutil
import signal
import struct
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
import types

import pylibrary

VERSION = sys.version_info[:2]
TORCH, MXNET = 0, 1
HEAD, ROW = struct.Struct("<Q"), struct.Struct("<QQQII")
RECORD = struct.Struct("<QQQQQIIIHBbQ")  # struct mt_record with the fields of a name

CASES = []
failures = []
passes = 0


def case(function):
    CASES.append(function)
    return function


def check(holds, *what):
    global passes
    if holds:
        passes += 1
        return
    failures.append(what)
    caller = sys._getframe(1)
    while caller.f_code.co_name == "equal":
        caller = caller.f_back
    print("%s:%d: failed: %s" % (caller.f_code.co_name, caller.f_lineno, " ".join(map(str, what))), file=sys.stderr)


def equal(have, want, *what):
    check(have == want, *what, "is", have, "want", want)


def nothing():
    pass


class Adapters(pylibrary.Library):
    """turn is called without the interpreter's lock, as a thread of the library's calls it."""

    def __init__(self, path, folder):
        super().__init__(path, folder, "adapter.bin")
        self.turn = self.free.pyadapter_turn
        self.scripts = []
        for name in "torch", "mxnet":
            module = sys.modules["pyadapter_" + name] = types.ModuleType("pyadapter_" + name)
            module.prepare = module.reporting = nothing
            module.starts = module.reports = 0
            self.scripts.append(module)
        self.torch, self.mxnet = self.scripts

    def names(self):
        """(category, name, address, size, object) of everything that was said."""
        said, record = [], ctypes.create_string_buffer(RECORD.size)
        while self.free.pyadapter_record(len(said), record):
            _, _, address, size, handle, _, _, _, category, _, _, name = RECORD.unpack(record.raw)
            kind, text = self.entry(name)
            said.append((category, text.decode() if kind == pylibrary.STRING else None, address, size, handle))
        return said

    def start(self, framework=TORCH):
        self.free.pyadapter_seen(framework)
        script = self.scripts[framework]
        return until(lambda: (self.turn(), script.starts)[1])


def until(holds):
    """Whether something comes true; the limit ends a test that hangs. Pending calls come between two instructions."""
    end = time.monotonic() + pylibrary.HUNG
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def settle():
    """Enough turns and instructions for all that might be asked for."""
    for _ in range(20):
        library.turn()
        sum(range(1000))
        time.sleep(0)


@case
def asked_for_at_once():
    """Where the interpreter was asked before, the framework's first block asks for the script."""
    library.turn()
    library.free.pyadapter_seen(TORCH)
    check(until(lambda: library.torch.starts), "it starts without a turn of a thread of ours")
    settle()
    equal(library.torch.starts, 1, "starts")


@case
def starts():
    check(library.start(), "it starts")
    equal(library.info("adapter.torch"), "on", "torch")
    equal(library.info("adapter.mxnet"), None, "mxnet")
    settle()
    equal((library.torch.starts, library.torch.reports, library.mxnet.starts), (1, 0, 0), "calls")
    check(library.start(MXNET), "the other one starts")
    settle()
    equal((library.torch.starts, library.mxnet.starts), (1, 1), "calls")
    equal(library.info("adapter.torch.trouble"), None, "trouble")


@case
def script_fails():
    def prepare():
        raise ValueError("on purpose")
    library.torch.prepare = prepare
    output = io.StringIO()
    sys.stderr, stderr = output, sys.stderr
    started = library.start()
    settle()
    sys.stderr = stderr
    check(started, "it starts")
    equal((library.info("adapter.torch"), output.getvalue(), library.torch.starts), ("off: the script failed", "", 1), "says")
    library.free.pyadapter_out_of_memory()
    settle()
    equal(library.torch.reports, 0, "reports")


def tracers():
    """Everything by which a program watches its own code; returns what they saw of ours, and how to end them."""
    seen, watching = [], [True]

    def look(frame, event, argument):
        if frame.f_code.co_filename == "<memtrace>" or "memtrace" in repr(argument) or "memtrace" in getattr(argument, "__name__", ""):
            seen.append((event, frame.f_code.co_name, frame.f_lineno, argument))
        return look
    threading.settrace(look)
    threading.setprofile(look)
    sys.settrace(look)
    sys.setprofile(look)
    if VERSION >= (3, 12):
        monitoring = sys.monitoring
        monitoring.use_tool_id(5, "pyadapter")

        def start(code, *_):
            if watching[0] and code.co_filename == "<memtrace>":
                seen.append(("monitored", code.co_name))
        for event in (monitoring.events.PY_START, monitoring.events.PY_RETURN, monitoring.events.LINE):
            monitoring.register_callback(5, event, start)
        monitoring.set_events(5, monitoring.events.PY_START | monitoring.events.PY_RETURN | monitoring.events.LINE)

    def end():
        watching[0] = False
        for setter in sys.settrace, sys.setprofile, threading.settrace, threading.setprofile:
            setter(None)
        if VERSION >= (3, 12):
            sys.monitoring.set_events(5, 0)
            sys.monitoring.free_tool_id(5)
    return seen, end


@case
def unseen():
    """Neither its start nor its reports nor what it has the program call is seen by a tracer."""
    seen, end = tracers()
    started = library.start()
    quiet = library.torch.quietly(library.torch.report)
    calls = [quiet() for _ in range(3)]
    library.free.pyadapter_out_of_memory()
    reported = until(lambda: (library.turn(), library.torch.reports > 3)[1])
    watching = sys.gettrace() is not None and sys.getprofile() is not None
    end()
    check(started and reported and watching, "it ran:", started, reported, watching)
    equal(calls, [None] * 3, "calls")
    equal(seen, [], "seen")
    seen, end = tracers()  # a check of the check
    library.torch.report()
    end()
    check(seen, "a call that is not quiet is seen")


@case
def exception_in_hand():
    """A script runs between two instructions of a program that handles an exception."""
    library.torch.prepare = lambda: library.torch.__dict__.setdefault("seen", sys.exc_info()[0])
    try:
        raise KeyError("the program's")
    except KeyError as error:
        check(library.start(), "it starts")
        equal(sys.exc_info()[1], error, "in hand")
    equal(sys.exc_info(), (None, None, None), "afterwards")


@case
def contained():
    """What goes wrong in a script is counted and stays there."""
    check(library.start(), "it starts")

    class Odd(Exception):
        def __init__(self, a, b):
            super().__init__(a, b)

        def __str__(self):
            raise RuntimeError("no text")

    def deep(n):
        return deep(n + 1)

    def raising(error):
        def function(*arguments, **keywords):
            raise error
        return function
    wrong = [raising(ValueError("x")), raising(Odd(1, 2)), raising(MemoryError()), raising(SystemExit(3)), raising(GeneratorExit()), lambda: deep(0), lambda: None + 1,
             raising(StopIteration()), raising(RecursionError()), raising(AssertionError)]
    for count, function in enumerate(wrong, 1):
        equal(library.torch.quietly(function)(), None, "result", count)
    equal(library.info("adapter.torch.trouble"), "1", "counted at once")
    equal(library.torch.count_failure(), len(wrong) + 1, "counted")
    equal(library.torch.quietly(lambda *a, **k: (a, k))(1, 2, three=3), ((1, 2), {"three": 3}), "arguments")
    equal(library.torch.contain(ValueError("x")), None, "contain")
    equal(library.mxnet.starts, 0, "the other")
    library.torch.reporting = raising(ValueError("x"))
    library.free.pyadapter_out_of_memory()
    check(until(lambda: (library.turn(), library.torch.reports)[1]), "it reports")
    settle()
    equal(library.info("adapter.torch.trouble"), str(len(wrong) + 3), "said with the report")


@case
def near_the_limit():
    """A call of ours where hardly a frame is left for it."""
    check(library.start(), "it starts")
    called = []

    def ours():
        called.append(1)
        return (lambda: (lambda: 5)())()
    quiet, outcomes = library.torch.quietly(ours), set()

    def down(left):
        if left:
            return down(left - 1)
        return outcomes.add(quiet())
    limit, failed = sys.getrecursionlimit(), 0
    for left in range(limit - 60, limit):
        try:
            down(left)
        except RecursionError as error:
            failed += 1
            names = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
            check("<memtrace>" not in names, "frames of ours in the program's exception")
    check(outcomes <= {5, None} and 5 in outcomes and failed > 0, "outcomes", outcomes, failed)


class Timeout(Exception):
    pass


def on_alarm(number, frame):
    raise Timeout("the program's")


def raise_signal(number):
    """Python's handler runs at the next instruction."""
    signal.raise_signal(number)
    for _ in range(100):
        pass


@case
def signals():
    """What the program's own handlers raise gets out of code of ours as it gets out of the program's, without our frames."""
    check(library.start(), "it starts")

    class Handlers:
        def method(self, number, frame):
            raise Timeout("the method's")
    space = {"raise_signal": raise_signal, "signal": signal}
    exec(compile("def interrupted(number):\n  raise_signal(number)\n"
                 "def caught(number, contain):\n  try:\n    raise_signal(number)\n  except Exception as error:\n    contain(error)\n  return 'swallowed'\n", "<memtrace>", "exec"), space)
    cases = [(signal.SIGALRM, on_alarm, Timeout), (signal.SIGUSR1, Handlers().method, Timeout), (signal.SIGINT, signal.default_int_handler, KeyboardInterrupt)]
    for number, handler, wanted in cases:
        signal.signal(number, handler)
        for function, arguments in (space["interrupted"], (number,)), (space["caught"], (number, library.torch.contain)):
            got = None
            try:
                got = library.torch.quietly(function)(*arguments)
            except BaseException as error:
                got = error
                files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
                check("<memtrace>" not in files, "our frames in", files)
            check(type(got) is wanted, "of", number, "came", got)
    equal(library.info("adapter.torch.trouble"), None, "trouble")


@case
def names():
    torch = library.torch
    check(library.start(), "it starts")
    epoch, weight, bias = torch.epoch(), torch.intern("weight"), torch.intern("bi\u00e4s")
    check(epoch and weight and bias and weight != bias and torch.intern("weight") == weight, "numbers", epoch, weight, bias)
    head, first, second = HEAD.pack(epoch), ROW.pack(4096, 100, 7, weight, 2), ROW.pack(8192, 200, 8, bias, 3)
    torch.emit(head + first + second)
    want = [(2, "weight", 4096, 100, 7), (3, "bi\u00e4s", 8192, 200, 8)]
    equal(library.names(), want, "said")
    torch.emit_at(head + first + second, struct.pack("<QQ", 0, 12288))
    want.append((3, "bi\u00e4s", 12288, 200, 8))
    equal(library.names(), want, "said apart")
    for hostile in (b"", b"x", head, head[:7], head + first[:31], HEAD.pack(epoch + 1) + first, HEAD.pack(0) + first, head + ROW.pack(1, 1, 1, weight, 0),
                    head + ROW.pack(1, 1, 1, weight, 1 << 16), "text", None, 5, bytearray(head + first), (head, first)):
        equal(torch.emit(hostile), None, "emit")
        equal(torch.emit_at(hostile, struct.pack("<Q", 1)) if hostile != b"" else None, None, "emit_at")
    equal(library.names()[:3], want, "the first ones")
    for addresses in b"", b"1234567", None, "text":
        torch.emit_at(head + first, addresses)
    for few in (), (head,):
        torch.emit_at(*few)
    torch.emit_at(1, 2, 3)
    equal(len(library.names()), 3, "names, after what is no name")
    equal([torch.intern(wrong) for wrong in ("", None, 5, b"bytes", "\udc80", ["x"])], [0] * 6, "numbers of what is no text")
    long = torch.intern("x" * 100000)
    check(long == 0 or library.entry(long)[1] == b"x" * 100000, "a long name")
    torch.emit(head + ROW.pack(1, 2, 3, 0xffffffff, 65535))
    equal(library.names()[-1], (65535, None, 1, 2, 3), "a number that is nobody's")


class Base:
    pass


@case
def finds():
    check(library.start(), "it starts")
    torch = library.torch

    class Below(Base):
        def __getattribute__(self, name):
            raise RuntimeError("asked for " + name)

    class Liar:
        __class__ = Base

    class Proxy:
        def __getattr__(self, name):
            raise RuntimeError("asked for " + name)

    class Meta(type):
        def __instancecheck__(cls, object):
            raise RuntimeError("asked")

        def __subclasscheck__(cls, other):
            raise RuntimeError("asked")

    class Weird(Base, metaclass=Meta):
        pass
    kept = [Base(), Below(), Liar(), Proxy(), Weird(), types.SimpleNamespace()]
    kept += [type("Made%d" % i, (Base,) if i % 2 else (), {})() for i in range(2000)]  # more types than are remembered
    want = {id(o) for o in kept if Base in type(o).__mro__}
    some = torch.instances(kept, Base)
    equal([id(o) for o in some], [id(o) for o in kept if id(o) in want], "of a list")
    gc.collect()
    del some
    equal({id(o) for o in torch.all_instances(Base)}, want, "of all")
    equal(torch.all_instances(type("None", (), {})), [], "of none")
    both = {id(o) for o in kept if Base in type(o).__mro__ or types.SimpleNamespace in type(o).__mro__}
    equal({id(o) for o in torch.all_instances((Base, types.SimpleNamespace))} >= both, True, "of two types")
    equal({id(o) for o in torch.instances(kept, (Base, types.SimpleNamespace))}, both, "of two types, of a list")
    equal(len(torch.instances(kept, ())), 0, "of no type")
    heard = []
    if hasattr(sys, "addaudithook"):
        sys.addaudithook(lambda event, _: heard.append(event) if "gc" in event else None)
    for _ in range(50):
        made = [type("Young%d" % i, (Base,), {})() for i in range(20)]
        want = {id(o) for o in gc.get_objects() if Base in type(o).__mro__}
        heard.clear()
        found = {id(o) for o in torch.all_instances(Base)}
        equal(found, want, "as the collector has them")
        gc.collect(random.randrange(3))
        del made
    check(not heard or sysconfig.get_config_var("Py_GIL_DISABLED"), "audit hooks heard", heard)
    for wrong in (5, Base), (kept,), ("text", Base):
        equal(torch.instances(*wrong), None, "instances of what is no list")


@case
def ways():
    """The shortest ways from roots, what something else than objects holds, and what nothing does; within bounds."""
    check(library.start(), "it starts")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return

    class Node:
        pass

    class Slotted:
        __slots__ = ("held", "own")

    find = library.held.pyadapter_ways
    find.restype, find.argtypes = ctypes.py_object, [ctypes.py_object]

    def ask(wanted, roots, visits=10**9, milliseconds=10**9, last=None):
        return find((wanted, roots, visits, milliseconds, last))

    named, garbage, held, slotted = Node(), Node(), Node(), Slotted()
    root = {"far": [[[named]]], "near": (named,)}
    garbage.own = [garbage]
    slotted.held, slotted.own = Node(), slotted
    pair = Node(), Node()
    pair[0].other, pair[1].other = pair[1], pair[0]
    gc.disable()
    wanted = [named, garbage, held, slotted.held, pair[0]]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))
    del pair, slotted, garbage, held
    found, visits = ask(wanted, [root])
    equal(found[0][0], 0, "named")
    equal([id(o) for o in found[0][2:]], [id(root), id(root["near"]), id(named)], "the way")
    equal(found[0][1], 2, "references from what has a name")
    equal([way[0] for way in found], [0, 2, 1, 2, 2], "how")
    check(found[3][-2].__class__ is Slotted, "garbage is reached from its own", found[3])
    equal(found[2][2:], [wanted[2]], "what something else holds has no way")
    found = None
    found, _ = ask([named], [[], None, [named], root])
    equal(found[0][0], 0, "a second root")
    found = None
    found, _ = ask([named], [root, None, [named]])
    equal(len(found[0]), 5, "what stands behind None counts last")

    class Listing(Slotted):
        __slots__ = ()

    listing, only = Listing(), Node()
    listing.held, listing.own = named, only
    found = None
    found, _ = ask([named, only], [[listing], root])
    equal([len(way) for way in found], [5, 5], "the shortest ways")
    found = None
    found, _ = ask([named, only], [[listing], [[[[named]]]]], last=Slotted)
    equal([len(way) for way in found], [7, 5], "through objects of the last type where there is no other way")
    found = listing = only = None
    many = [[n] for n in range(2000000)]
    last = Node()
    many.append([last])
    for bound in 1, 1000, 100000, 1000000:
        found, visits = ask([last, wanted[1]], [many], visits=bound)
        check(visits <= bound, visits, "references were looked at, the bound is", bound)
        equal([way[0] for way in found], [3, 3], "nothing is said of what was not looked at")
    found, visits = ask([last], [many], milliseconds=0)
    check(visits <= 8192, visits, "references were looked at in no time")
    found, visits = ask([last], [many])
    equal([found[0][0], len(found[0]), visits >= 2000000], [0, 5, True], "all of them")
    gc.enable()


@case
def freed():
    """Which objects end with some references, as they do: those that nothing else refers to, cycles among them, and nothing else."""
    check(library.start(), "it starts")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return

    class Node:
        pass

    class Box:
        pass

    find = library.held.pyadapter_freed
    find.restype, find.argtypes = ctypes.py_object, [ctypes.py_object]

    def ask(groups, own=(), visits=10**9, milliseconds=10**9):
        return find((groups, list(own), [globals()], visits, milliseconds, Node))

    def ids(*objects):
        return sorted(map(id, objects))

    nodes = [Node() for _ in range(4)]
    also, box = [nodes[3]], Box()
    box.kept, box.nodes = Node(), nodes
    nodes[0].box = box  # leads back to what holds it
    nodes[1].circle = nodes[1].child = Node()
    nodes[1].child.parent = nodes[1]
    kept = Node()
    nodes[2].kept = kept  # a variable has it
    found = ask([[nodes, 1, *nodes], [nodes, 1, nodes[0]], [box, 0, box.kept], [also, 1, *also]])
    equal(sorted(found[0][0]), ids(*nodes[:3], nodes[1].child), "what only the list has, and what only that has")
    equal(sorted(found[0][1]), ids(nodes[3], kept), "what a single reference is left to")
    equal(found[1][0], ids(nodes[0]), "a part of the list")
    equal(found[2][0], ids(box.kept), "an attribute")
    equal(found[3], ([], [id(nodes[3])]), "what the list has as well")
    equal(ask([[None, 0, kept]])[0][0], ids(kept), "a variable's")
    equal(ask([[None, 1, kept]])[0][0], [], "a variable's that an object has as well")
    equal(ask([[None, 2, kept]])[0], ([], []), "a variable's that two objects have as well")
    twice = [nodes[0], nodes[0], Node()]
    equal(ask([[twice, 1, twice[0]], [twice, 1, twice[2]]])[1][0], ids(twice[2]), "what is in a list")
    twice = None
    many = [[Node()] for _ in range(100000)]
    for bound in 1, 1000:
        equal(ask([[many, 1, *many]], visits=bound), [None], "nothing is said of what was not looked at")
    equal(ask([[many, 1, *many]], milliseconds=0), [None], "nor once the time is over")
    equal(len(ask([[many, 1, *many]])[0][0]), 100000, "all of them")


class Measured:
    """Looks like a tensor to the functions that the case hands over."""

    def __init__(self, address, count=3, offset=0, cuda=True):
        self.address, self.count, self.offset, self.cuda = address, count, offset, cuda


class Other(Measured):
    pass


def fail(_):
    raise ValueError("on purpose")


@case
def packs():
    """Rows of many objects in one call."""
    library.start()
    torch = library.torch
    asked = []

    def numel(tensor):
        asked.append(tensor)
        return tensor.count

    size = numel, lambda tensor: 4
    place = *size, lambda tensor: tensor.cuda, lambda tensor: tensor.address if tensor.address is not None else fail(tensor), lambda tensor: tensor.offset
    tensors = [Measured(4096), Measured(1, cuda=False), Other(8192), Measured(0), Measured(None), Measured(12288, offset=1), Measured(1 << 63, 1 << 40)]
    names = ["name%d" % i for i in range(len(tensors))]
    rows, others = torch.pack(2, names, tensors, (Measured, int), place)
    equal(others, [2, 4, 5], "those it has no row for")
    equal(asked, [tensors[0], tensors[6]], "asked for their size")
    rows = list(ROW.iter_unpack(rows))
    equal([row[:3] for row in rows if row[4]], [(4096, 12, id(tensors[0])), (1 << 63, 4 << 40, id(tensors[6]))], "rows")
    equal([at for at, row in enumerate(rows) if not any(row)], [1, 2, 3, 4, 5], "empty rows")
    torch.emit(HEAD.pack(torch.epoch()) + torch.pack(2, names, tensors, (Measured, int), place)[0])
    element = 4 << 8
    equal(library.names(), [(2 | element, "name0", 4096, 12, id(tensors[0])), (2 | element, "name6", 1 << 63, 4 << 40, id(tensors[6]))], "names")
    rows, others = torch.pack(4, names[:2], tensors, (), size)
    equal(([row[:3] for row in ROW.iter_unpack(rows)], others), ([(0, 12, id(tensors[0])), (0, 12, id(tensors[1]))], []), "without addresses")
    rows, others = torch.pack(1, names, tensors, (), ())
    equal(([row[:3] for row in ROW.iter_unpack(rows)], others), ([(0, 0, id(tensor)) for tensor in tensors], []), "objects")
    equal(torch.pack(1, [], [], (), ()), (b"", []), "nothing")
    equal(torch.pack(1, [1, b"", ""], tensors, (), ())[0][24:28], bytes(4), "no text is no name")
    for wrong in (), (1, names), (1, 2, 3, (), ()), ("1", names, tensors, (), ()), (1, names, tuple(tensors), (), ()):
        torch.pack(*wrong)  # nothing happens
    counts = [sys.getrefcount(tensor) for tensor in tensors]
    for _ in range(100):
        torch.pack(2, names, tensors, (Measured,), place)
    equal([sys.getrefcount(tensor) for tensor in tensors], [count + (100 if at in (0, 6) else 0) for at, count in enumerate(counts)], "references (asked keeps some)")
    equal(library.info("adapter.torch.trouble"), None, "trouble")


class Stepper:
    def __init__(self, groups, state):
        self.param_groups, self.state = groups, state

    def __getattribute__(self, name):
        fail(name)


def unchanged(torch, tensors, ids):
    names = "param_groups", "params", "state"
    groups = [{"params": tensors[:1], "lr": 1}, {"params": []}, {"params": tensors[1:]}]

    def asked(groups, state, size=2, kind=Stepper, ids=ids):
        return torch.unchanged(kind(groups, state), ids, size, *names)

    state = collections.defaultdict(dict, {1: {}, 2: {}})
    counts = list(map(sys.getrefcount, [state, groups, *groups, *tensors]))
    equal([asked(groups, state), asked(groups, {1: 1, 2: 2})], [1, 1], "unchanged")
    equal([asked(groups[:1], state), asked(groups[::-1], state), asked([*groups, {}], state), asked([*groups, 3], state), asked(tuple(groups), state), asked(None, state)], [0] * 6, "other groups")
    equal([asked(groups, state, 1), asked(groups, state, -1), asked(groups, [1, 2]), asked(groups, state, "2"), asked(groups, state, ids=None)], [0] * 5, "another state")
    above = type("Above", (Stepper,), {"param_groups": property(fail, lambda self, value: None)})
    equal([asked(groups, state, kind=above), torch.unchanged(3, ids, 2, *names), torch.unchanged(object(), ids, 2, *names), torch.unchanged(ids)], [0] * 4, "what has no such fields of its own")
    equal(list(map(sys.getrefcount, [state, groups, *groups, *tensors])), counts, "references of optimizers")


@case
def addresses():
    library.start()
    torch = library.torch
    tensors = [Measured(4096), Measured(0), Measured((1 << 64) - 2)]
    words = struct.Struct("<3Q")
    equal(words.unpack(torch.identities(tensors)), tuple(map(id, tensors)), "identities")
    equal(torch.identities([]), b"", "of nothing")
    equal(torch.identities(tuple(tensors)), None, "of what is no list")
    ids = torch.identities(tensors)
    counts = list(map(sys.getrefcount, tensors))
    for lists, wanted in (([tensors], 1), ([tensors[:1], [], tensors[1:]], 1), ([tensors[:2]], 0), ([tensors, tensors], 0), ([tensors[::-1]], 0), ([], 0), ([tuple(tensors)], 0), (7, 0)):
        equal(torch.same(lists, ids), wanted, "the same objects")
    equal([torch.same([], b""), torch.same([[]], b""), torch.same([], b"123"), torch.same([], None), torch.same([]), torch.same(1)], [1, 1, 0, 0, 0, 0], "of nothing")
    equal(list(map(sys.getrefcount, tensors)), counts, "references")
    unchanged(torch, tensors, ids)
    equal(words.unpack(torch.addresses(tensors, lambda tensor: tensor.address, None)), (4096, 0, (1 << 64) - 2), "addresses")
    equal(words.unpack(torch.addresses(tensors, lambda number: number + 1, lambda tensor: tensor.address or None)), (4097, 0, (1 << 64) - 1), "of what belongs to them")
    equal(torch.addresses(tensors, fail, None), None, "a call that fails")
    equal(torch.addresses(tensors, lambda tensor: -1, None), None, "what is no address")
    equal(torch.addresses(tensors, lambda tensor: tensor.address, fail), None, "another one")
    equal(torch.addresses(1, 2, 3), None, "what is no list")
    equal(library.info("adapter.torch.trouble"), None, "trouble")


class Listed(list):
    pass


class Slotted(list):
    __slots__ = ()


@case
def fielded():
    library.start()
    torch = library.torch
    things = [Listed(), Listed(), Listed(), Listed(), Slotted(), Listed()]
    things[1].one = 1
    vars(things[2])
    things[3].gone = 1
    del things[3].gone
    after = sys.getsizeof(things[0])
    found = torch.fielded(things)
    known = sys.version_info < (3, 14) and getattr(sys, "_is_gil_enabled", lambda: True)()
    # From 3.14 on these have their values inside, and a dictionary over them costs the program nothing.
    equal([at for at in found if at != 4], [1, 2, 3] if known else [0, 1, 2, 3, 5], "those that have a dictionary, or attributes")
    equal(torch.fielded(things)[:1], [1] if known else [0], "again: nothing was made")
    equal(after, sys.getsizeof(things[0]), "nor grown")

    class Plain:
        pass

    set_before, empty = Plain(), Plain()
    set_before.one = 1
    check(0 in torch.fielded([set_before, empty]), "an attribute that is in no dictionary yet")
    equal(torch.fielded([]), [], "of nothing")
    equal(torch.fielded((1,)), [], "of what is no list")
    equal(library.info("adapter.torch.trouble"), None, "trouble")


class Paused:
    """A thread that stands still in code of a file, called from code of others, until the end of a with statement."""

    def __init__(self, *files, inner="event.wait()"):
        self.event, self.there = threading.Event(), threading.Event()
        space, body = {"event": self.event, "time": time}, "there()\n    " + inner
        space["there"] = self.there.set
        for file in files:
            exec(compile("def call():\n    " + body, file, "exec"), space)
            space, body = {"inner": space["call"]}, "inner()"
        self.thread = threading.Thread(target=space["inner"], daemon=True)

    def __enter__(self):
        self.thread.start()
        check(self.there.wait(pylibrary.HUNG), "the thread got there")

    def __exit__(self, *_):
        self.event.set()
        self.thread.join()


@case
def gradients():
    """Read only where no other thread can be writing them."""
    library.start()
    torch = library.torch
    kept = [object(), None, object()]
    tensors = [Measured(at) for at in range(3)]
    collector = gc.isenabled, gc.disable, gc.enable
    folders = "/lib/torch/autograd/", "/lib/torch/", os.path.dirname(threading.__file__) + "/"
    during = []

    def grad(tensor):
        during.append(gc.isenabled())
        return kept[tensor.address]

    def ask(**changed):
        wanted = {"tensors": tensors, "grad": grad, "frames": sys._current_frames, "collector": collector, "folders": folders}
        wanted.update(changed)
        return torch.gradients(*wanted.values())

    threaded = sysconfig.get_config_var("Py_GIL_DISABLED") and not getattr(sys, "_is_gil_enabled", lambda: True)()
    equal(ask(), kept, "alone")
    equal((during, gc.isenabled()), ([False] * 3, True), "the collector")
    gc.disable()
    equal((ask(), gc.isenabled()), (kept, False), "without the collector")
    gc.enable()
    equal(ask(grad=lambda tensor: fail(tensor) if tensor is tensors[1] else tensor), [tensors[0], None, tensors[2]], "where one fails")
    equal(ask(tensors=[]), [], "of none")
    busy = "time.sleep(0)\n    while not event.is_set(): time.sleep(0.01)"
    library_file, program = "/x/site-packages/other.py", "/x/train.py"
    for what, files, inner, want in [
        ("waits in the standard library", [program], "event.wait()", True),
        ("of libraries", [library_file, library_file], busy, True),
        ("of Debian's libraries", ["/usr/lib/python3/dist-packages/other.py"], busy, True),
        ("of the program", [program], busy, False),
        ("of a library that the program called", [library_file, program], busy, False),
        ("of the framework", ["/lib/torch/optim.py", library_file], busy, False),
        ("waits for the framework", ["/lib/torch/data.py", program], "event.wait()", True),
        ("waits in a backward pass", ["/lib/torch/autograd/graph.py", program], "event.wait()", False),
        ("waits in a hook of one", [program, "/lib/torch/autograd/graph.py", program], "event.wait()", False),
    ]:
        with Paused(*files, inner=inner):
            equal(ask(), kept if want and not threaded else None, what)
        equal(ask(), kept, "after one that " + what)
    space = {"ask": ask}
    exec(compile("def backward(): return ask()", "/lib/torch/autograd/graph.py", "exec"), space)
    equal(space["backward"](), None, "in a backward pass of its own")
    for what, changed in [
        ("frames of the program's", {"frames": lambda: sys._current_frames()}), ("a collector of its own", {"collector": (gc.isenabled, lambda: gc.disable(), gc.enable)}),
        ("no list", {"tensors": tuple(tensors)}), ("too few folders", {"folders": folders[:2]}), ("no folders", {"folders": 5}), ("no text", {"folders": (b"", b"", b"")}),
        ("no collector", {"collector": ()}),
    ]:
        equal((ask(**changed), gc.isenabled()), (None, True), what)
    equal(torch.gradients(), None, "nothing")
    counts = [sys.getrefcount(thing) for thing in kept + tensors]
    for _ in range(100):
        ask()
    equal([sys.getrefcount(thing) for thing in kept + tensors][::2], counts[::2], "references")
    equal(library.info("adapter.torch.trouble"), None, "trouble")


@case
def accounts():
    """What a framework says of its memory is kept as it is, under the framework's name; the latest counts."""
    check(library.start() and library.start(MXNET), "they start")
    for account in b"first", b"sec\0nd", b"x" * (1 << 20):
        equal(library.torch.account(account), None, "account")
        check(library.raw("account.torch") == account, "kept:", len(account))
    for wrong in b"", b"x" * ((1 << 20) + 1), "text", 7, None, bytearray(b"x"):
        equal(library.torch.account(wrong), None, "account")
        check(library.raw("account.torch") == b"x" * (1 << 20), "kept in place of it:", type(wrong))
    equal(library.raw("account.mxnet"), None, "the other one's")
    library.mxnet.account(b"its own")
    equal(library.raw("account.mxnet"), b"its own", "the other one's")


@case
def again():
    check(library.start(), "it starts")
    settle()
    equal(library.torch.reports, 0, "reports")
    before = time.monotonic()
    library.torch.schedule(30)
    check(until(lambda: (library.turn(), library.torch.reports)[1]), "it is called again")
    check(time.monotonic() - before >= 0.03, "too early")
    settle()
    equal(library.torch.reports, 1, "reports")
    library.torch.schedule(1)
    library.torch.schedule(0)
    time.sleep(0.01)
    settle()
    equal(library.torch.reports, 1, "reports after it was taken back")
    for wrong in -1, 1 << 40, "x", None, 1.5:
        equal(library.torch.schedule(wrong), None, "again")
    for _ in range(18):
        library.free.pyadapter_out_of_memory()
        settle()
    check(2 <= library.torch.reports <= 11, "reports after memory ran out again and again:", library.torch.reports)


@case
def full():
    """The interpreter's list of pending calls has no room."""
    held = ctypes.PyDLL(library.free._name)
    library.free.pyadapter_seen(TORCH)
    count = held.pyadapter_full(ctypes.cast(ctypes.pythonapi.Py_AddPendingCall, ctypes.c_void_p))
    check(0 < count < 1 << 20, "calls in the list", count)
    check(library.start(), "it starts later")
    settle()
    equal(library.torch.starts, 1, "starts")


@case
def forked():
    """A call that waits is inherited, and so is a script that runs."""
    held = library.held.pyadapter_turn
    held()
    library.free.pyadapter_seen(TORCH)
    held()  # asked for; runs at one of the next instructions, in either process
    child = os.fork()
    if not child:
        settle()
        os._exit(library.torch.starts if library.torch.starts <= 1 else 9)
    status = os.waitpid(child, 0)[1]
    check(os.WIFEXITED(status) and os.WEXITSTATUS(status) <= 1, "child ended", status)
    check(library.start(), "it starts in the parent")
    number = library.torch.intern("the parent's")
    epoch = library.torch.epoch()
    child = os.fork()
    if not child:
        good = library.torch.epoch() == 0
        library.torch.emit(HEAD.pack(epoch) + ROW.pack(1, 2, 3, number, 2))
        library.open("child.bin")
        good = good and library.torch.epoch() not in (0, epoch)
        library.torch.emit(HEAD.pack(epoch) + ROW.pack(1, 2, 3, number, 2))  # another recording's
        good = good and library.names() == []
        library.torch.emit(HEAD.pack(library.torch.epoch()) + ROW.pack(4, 5, 6, library.torch.intern("the child's"), 2))
        good = good and library.names() == [(2, "the child's", 4, 5, 6)]
        settle()
        os._exit(good)
    equal(os.waitpid(child, 0)[1], 1 << 8, "child that goes on")
    equal(library.names(), [], "names in the parent")


@case
def subinterpreter():
    """A script never runs in another interpreter than the first."""
    try:
        interpreters = __import__("_interpreters" if VERSION >= (3, 13) else "_xxsubinterpreters")
    except ImportError:
        return
    library.free.pyadapter_seen(TORCH)
    inner = interpreters.create("legacy") if VERSION >= (3, 13) else interpreters.create(isolated=False) if VERSION >= (3, 9) else interpreters.create()
    failed = interpreters.run_string(inner, "import ctypes, sys\nturn = ctypes.PyDLL(%r).pyadapter_turn\nturn()\nfor i in range(3000):\n  turn() if i %% 1000 == 0 else None\n"
                                            "assert 'pyadapter_torch' not in sys.modules" % library.free._name)
    check(not failed, "inside:", failed)
    check(library.start(), "it starts in the first one")
    failed = interpreters.run_string(inner, "import sys\nassert 'pyadapter_torch' not in sys.modules")
    check(not failed, "inside, later:", failed)
    equal(library.torch.starts, 1, "starts")
    equal(library.info("adapter.torch"), "on", "says")


@case
def threads():
    """Threads that call what a script left behind, at the same time."""
    check(library.start(), "it starts")
    torch, kept = library.torch, [Base() for _ in range(500)]
    bodies = HEAD.pack(torch.epoch()) + b"".join(ROW.pack(i + 1, 1, i, torch.intern("t"), 2) for i in range(20))
    wrong = []

    def work():
        for _ in range(50):
            if len(torch.instances(kept, Base)) != 500 or len(torch.all_instances(Base)) < 500:
                wrong.append("instances")
            torch.emit(bodies)
            torch.count_failure()
            torch.quietly(lambda: 1 / 0)()
    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    equal(wrong, [], "wrong")
    equal(torch.count_failure(), 401, "trouble")
    equal(len(library.names()), 4 * 50 * 20, "names")


@case
def waits_at_the_end():
    """The interpreter ends while a call waits."""
    library.free.pyadapter_seen(TORCH)
    held = library.held.pyadapter_turn
    held()
    held()
    sys.exit(ENDED)


@case
def reports_at_the_end():
    check(library.start(), "it starts")
    ended = []

    def reporting():
        ended.append(1)
        print(passes, len(failures), file=open(library.path + ".sums", "a"))
        raise ValueError("nobody hears of it")
    import atexit
    check(until(lambda: (library.turn(), atexit._ncallbacks() > 0)[1]), "it is told of the end")
    library.torch.reporting = reporting
    library.turn = None
    sys.exit(ENDED)


@case
def starts_at_the_end():
    """The interpreter ends before anybody asked for a script."""
    def reporting():
        equal((library.torch.starts, library.torch.reports), (1, 1), "calls")
        equal(library.info("adapter.torch"), "on", "torch")
        equal(library.mxnet.starts, 0, "a framework that is not there")
        print(passes, len(failures), file=open(library.path + ".sums", "a"))
    import atexit
    before = atexit._ncallbacks()
    check(until(lambda: (library.turn(), atexit._ncallbacks() > before)[1]), "it is told of the end")
    library.free.pyadapter_seen(TORCH)
    library.torch.reporting = reporting
    sys.exit(ENDED)


ENDED = 7
ENDING = (waits_at_the_end, reports_at_the_end, starts_at_the_end)


def run(function, path):
    global library
    sys.stdout.flush()
    folder = tempfile.mkdtemp()  # the child may end in any way, so its traces of 64 MiB are removed here
    child = os.fork()
    if not child:
        try:
            library = Adapters(path, folder)
            library.path = path
            function()
        except BaseException as error:
            if isinstance(error, SystemExit) and error.code == ENDED:
                raise
            traceback.print_exc()
            failures.append(error)
        with open(path + ".sums", "a") as sums:
            print(passes, len(failures), file=sums)
        sys.stderr.flush()
        os._exit(len(failures) != 0)
    status = os.waitpid(child, 0)[1]
    shutil.rmtree(folder, ignore_errors=True)
    return status


def main():
    path, only = os.path.abspath(sys.argv[1]), sys.argv[2:]
    with open(path + ".sums", "w"):
        pass
    good = bad = 0
    for function in CASES:
        if only and function.__name__ not in only:
            continue
        status = run(function, path)
        wanted = ENDED << 8 if function in ENDING else 0
        good += function in ENDING and status == wanted
        if status != wanted:
            print("%s: %s FAILED (wait status %#x)" % (sys.version.split()[0], function.__name__, status), file=sys.stderr)
        bad += status != wanted and (function in ENDING or not os.WIFEXITED(status))
    with open(path + ".sums") as lines:
        sums = [tuple(map(int, line.split())) for line in lines]
    good, bad = good + sum(a for a, _ in sums), bad + sum(b for _, b in sums)
    print("Python %s (%s), adapters: %d passed, %d failed" % (sys.version.split()[0], sys.executable, good, bad))
    return bad != 0


sys.exit(main())
