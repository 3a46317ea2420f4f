"""Compares what the Python walker finds with what the interpreter that runs this says.

    [PYWALK_STARTS=N] pywalk.py LIBRARY [CASE...]

LIBRARY is built from pywalk.c and the library's C half. Every case runs in a child of
its own; prints "VERSION: N passed, N failed". Needs nothing but the standard library;
greenlets take part where the package is installed.
"""
import asyncio
import atexit
import contextlib
import ctypes
import dis
import functools
import gc
import os
import random
import shutil
import struct
import sys
import tempfile
import threading
import time
import traceback

import pylibrary

try:
    import greenlet
except ImportError:
    greenlet = None

VERSION = sys.version_info[:2]
CHECKED, TRUSTED, OFF = 3, 4, 1
WHOLE, DEPTH = 0, 2
PYSTACK, CODE = 7, 8
LNOTAB, RANGES, LOCATIONS = 1, 2, 3
MOST = 256

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
    else:
        failures.append(what)
        caller = sys._getframe(1)
        while caller.f_code.co_name in ("equal", "compare", "both", "here"):
            caller = caller.f_back
        print("%s:%d: failed: %s" % (caller.f_code.co_name, caller.f_lineno, " ".join(map(str, what))), file=sys.stderr)


def equal(have, want, *what):
    check(have == want, *what, "is", have, "want", want)


class Walker(pylibrary.Library):
    def __init__(self, path, folder):
        super().__init__(path, folder, "walk.bin")
        for library in self.free, self.held:
            for count in library.pywalk_lost, library.pywalk_asked, library.pywalk_found, library.pywalk_remembered, library.pywalk_different:
                count.restype = ctypes.c_uint64
        self.stack = self.free.pywalk_stack
        while not self.info("drain"):  # the library's own thread has started by then, and holds none of the C library's locks in a forked child
            time.sleep(0.001)

    def code(self, number):
        kind, data = self.entry(number)
        assert kind == CODE, (number, kind)
        line, table, module, *widths = struct.unpack_from("<iBBBBB", data)
        sizes = struct.unpack_from("<IIII", data, 12)
        assert 28 + sum(sizes) == len(data), (sizes, len(data))
        parts, at = [], 28
        for size in sizes:
            parts.append(data[at:at + size])
            at += size
        texts = [text.decode({1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[width], "surrogatepass") for text, width in zip(parts, widths)]
        return dict(zip(("name", "qualname", "file"), texts), line=line, kind=table, module=module, table=parts[3])

    def frames(self, number):
        """Why it ends, and (code, offset, entry, self) for each frame."""
        kind, data = self.entry(number)
        assert kind == PYSTACK, (number, kind)
        end, = struct.unpack_from("<Q", data)
        return end, [(self.code(code), where >> 1, where & 1, at) for code, where, at in struct.iter_unpack("<IIQ", data[8:])]


def chain(frame):
    while frame is not None:
        yield frame
        frame = frame.f_back


def said(frame):
    """What the interpreter says of the stack from that frame on, in the moment it is asked."""
    return [(f.f_code, f.f_lasti, f.f_lineno) for f in chain(frame)]


def here():
    """The walker's stack and the interpreter's, both from the caller's frame on."""
    number = walker.stack(MOST)
    return number, said(sys._getframe(1))


def line_of(code, offset):
    if VERSION >= (3, 10):
        return next((line for start, end, line in code.co_lines() if start <= offset < end), None)
    line = code.co_firstlineno
    for start, at in dis.findlinestarts(code):
        if start > offset:
            break
        line = at
    return line


def table_of(code):
    return code.co_lnotab if VERSION < (3, 10) else code.co_linetable


def compare(pair, what, innermost=None):
    """innermost: here's own frame stands before the ones that were compared."""
    number, frames = pair
    if not number:
        return check(False, what, "has no stack; the walker is", walker.info("python.stacks"))
    end, have = walker.frames(number)
    have = have[1:]
    equal(end, WHOLE, what, "its end")
    equal(len(have), len(frames), what, "its depth")
    kind = LNOTAB if VERSION < (3, 10) else RANGES if VERSION < (3, 11) else LOCATIONS
    found = [(c["file"], line_of(code, at), c["name"], c["qualname"], c["line"], at, c["kind"], c["table"]) for (c, at, _, _), (code, _, _) in zip(have, frames)]
    wanted = [(code.co_filename, line, code.co_name, getattr(code, "co_qualname", ""), code.co_firstlineno, max(last, 0), kind, table_of(code)) for code, last, line in frames]
    check(found == wanted, what, *next((("frame", n, "is", a, "want", b) for n, (a, b) in enumerate(zip(found, wanted)) if a != b), ()))
    return have


def both(what):
    """Compares from the caller's frame on, with the interpreter's lock given away and with it held."""
    for library in walker.free, walker.held:
        walker.stack = library.pywalk_stack
        number, frames = here()
        compare((number, frames), what)
    walker.stack = walker.free.pywalk_stack


# --- What shapes a stack can have ---

@case
def plain():
    both("plain")


@case
def like_traceback():
    number, summary = walker.stack(MOST), traceback.extract_stack()
    _, have = walker.frames(number)
    equal([(c["file"], c["name"]) for c, _, _, _ in have], [(f.filename, f.name) for f in reversed(summary)], "traceback")
    codes = [f.f_code for f in chain(sys._getframe())]
    equal([line_of(code, at) for code, (_, at, _, _) in zip(codes, have)], [f.lineno for f in reversed(summary)], "traceback's lines")


def down(depth, then):
    return then() if depth == 0 else down(depth - 1, then)


@case
def recursion():
    for depth in (1, 2, 30, 200):
        down(depth, lambda: both("recursion"))


@case
def generators():
    def inner():
        both("a generator")
        yield 1
        both("a generator, resumed")

    def outer():
        yield from inner()
        yield from (both("a generator's expression") for _ in range(2))
    list(outer())
    sum(1 for _ in outer())
    for _ in outer():
        both("between")


@case
def coroutines():
    async def leaf(n):
        await asyncio.sleep(0)
        both("a coroutine")
        return n

    async def numbers():
        for n in range(2):
            both("an asynchronous generator")
            yield await leaf(n)

    async def main():
        await asyncio.gather(leaf(1), leaf(2))
        async for _ in numbers():
            both("inside of async for")
        return [n async for n in numbers()]
    asyncio.run(main())


@case
def through_c():
    class Odd:
        def __lt__(self, other):
            both("a comparison")
            return False

        def __format__(self, spec):
            both("a format")
            return ""

        def __getattr__(self, name):
            both("an attribute")
            return name

        def __enter__(self):
            both("enter")

        def __exit__(self, *what):
            both("exit")

        def __del__(self):
            both("a destructor")

        @property
        def prop(self):
            both("a property")

        @functools.lru_cache(None)  # noqa: B019
        def cached(self):
            both("a cached method")
    sorted([Odd(), Odd()])
    list(map(lambda _: both("map"), range(2)))  # noqa: C417
    list(filter(lambda _: both("filter"), range(2)))
    sorted(range(2), key=lambda _: both("a key") or 0)
    functools.reduce(lambda *_: both("reduce"), range(3))
    "{}".format(Odd()), Odd().missing, Odd().prop, Odd().cached()
    with Odd():
        both("inside of with")
    functools.partial(both, "partial")()
    max([1, 2], key=lambda _: both("max") or 0)
    gc.collect()
    callback = ctypes.CFUNCTYPE(ctypes.c_uint32)(lambda: both("a callback of C") or 0)
    walker.free.pywalk_through(callback)


@case
def entries():
    """Where C code entered the interpreter: the native stack has a frame of the interpreter there."""
    def leaf():
        return walker.stack(MOST)

    def middle():
        return leaf()
    _, have = walker.frames(middle())
    entered = [entry for _, _, entry, _ in have]
    equal([c["name"] for c, _, _, _ in have][:3], ["leaf", "middle", "entries"], "names")
    if VERSION <= (3, 10):
        check(all(entered), "every frame has a C function of its own", entered)
    else:
        equal(entered, [0] * (len(have) - 1) + [1], "Python calls Python")
    _, have = walker.frames(functools.reduce(lambda *_: leaf(), [0, 1]))
    entered = [entry for _, _, entry, _ in have]
    equal([c["name"] for c, _, _, _ in have][:3], ["leaf", "<lambda>", "entries"], "names")
    equal(entered[1], 1, "C calls the lambda")
    if VERSION > (3, 10):
        equal(entered[0], 0, "the lambda calls a function")


@case
def bodies():
    class Body:
        both("a class's body")

        class Inner:
            both("a class's body in another one")
            [both("a comprehension") for _ in range(2)]
    {both("a set") for _ in range(1)}
    {0: both("a dictionary") for _ in range(1)}  # noqa: B035
    (lambda: both("a lambda"))()
    try:
        raise ValueError
    except ValueError:
        both("an exception's handler")
    finally:
        both("finally")
    with contextlib.suppress(KeyError):
        both("a manager")
        raise KeyError


@case
def names():
    for name, text in (("ascii", "plain"), ("latin", "caf\xe9"), ("ucs2", "\u4e2d\u6587"), ("ucs4", "\U00020000x")):
        space = {"both": both}
        source = "def %s():\n\n  both(%r)\nclass %s:\n  %s()\n" % (text, name, text.upper() + "K", text)
        exec(compile(source, "<%s \u20ac>" % text, "exec"), space)
        space[text]()
        eval(compile("both(%r)" % name, text + ".py", "eval"), {"both": both})
    space = {}
    exec(compile("def f(stack): return stack(9)", "x" * 5000, "exec"), space)
    equal(walker.frames(space["f"](walker.stack))[1][0][0]["file"], "x" * 4096, "a long path")
    exec(compile("def f(stack):" + "\n" * 70000 + "\n".join(" x = %d" % n for n in range(70000)) + "\n return stack(9)", "large", "exec"), space)
    large = walker.frames(space["f"](walker.stack))[1][0][0]
    table = table_of(space["f"].__code__)
    equal(large["table"], table if len(table) <= 256 << 10 else b"", "a large table")
    equal(large["kind"] == 0, len(table) > 256 << 10, "a table that is left out")


@case
def threads():
    def work():
        for _ in range(20):
            down(random.randrange(5), lambda: both("a thread"))
    many = [threading.Thread(target=work) for _ in range(8)]
    for thread in many:
        thread.start()
    for thread in many:
        thread.join()


@case
def greenlets():
    if greenlet is None:
        return
    def one():
        both("a greenlet")
        other.switch()
        both("a greenlet, resumed")

    def two():
        down(5, lambda: both("another greenlet"))
        first.switch()
    first, other = greenlet.greenlet(one), greenlet.greenlet(two)
    down(3, first.switch)


@case
def depth():
    """As deep as asked for; what is cut is said."""
    def walk(cap):
        return walker.frames(walker.stack(cap))
    for cap in (1, 2, 8):
        end, have = down(20, lambda cap=cap: walk(cap))
        equal((end, len(have)), (DEPTH, cap), "cap", cap)
        equal([c["name"] for c, _, _, _ in have][:2], ["walk", "<lambda>"][:cap], "innermost first")
    equal(walker.stack(0), 0, "no depth")
    end, have = down(400, lambda: walk(MOST))
    equal((end, len(have)), (DEPTH, MOST), "the most")
    whole = len(list(chain(sys._getframe()))) + 1
    end, have = walk(whole)
    equal((end, len(have)), (WHOLE, whole), "just deep enough")
    end, have = walk(whole - 1)
    equal((end, len(have)), (DEPTH, whole - 1), "one too few")


# --- What is written, and when ---

@case
def once():
    """The same stack is one entry, and a code object another one."""
    def walk():
        return walker.stack(MOST)
    first = [walk() for _ in range(50)]
    equal(len(set(first)), 1, "ids of one stack")
    codes = [data for data in walker.entries(CODE) if b"walk" in data]
    equal(len(codes), len(set(codes)), "copies of code objects")
    a, b = walk(), walk()
    check(a != b, "two places are two stacks")


@case
def addresses():
    """Code objects that come to lie where others lay are told apart, whatever they have in common."""
    def churn(source, file):
        space = {"here": here}
        exec(compile(source, file, "exec"), space)
        name = next(key for key in space if key not in ("here", "__builtins__"))
        pair = space[name]()
        compare((pair[0], pair[1]), file)
        return id(space[name].__code__)
    seen = [churn("def f%d(): return here()" % i, "<gen>") for i in range(500)]
    seen += [churn("def f(): return here()", "<gen %d>" % (i + 1000)) for i in range(500)]
    seen += [churn("def f():\n%s return here()" % ("\n" * (i % 7)), "<gen>") for i in range(500)]
    seen += [churn("def f():\n%s return here()" % ("\n" * (i % 7)), "/srv/file%d.py" % (i % 5)) for i in range(500)]
    check(len(set(seen)) < len(seen), "no address was used twice: the case shows nothing")


@case
def modules():
    """Frames that call a framework's modules carry the module."""
    def make(source, file):
        space = {}
        exec(compile(source, "/site-packages/" + file, "exec"), space)
        return space
    torch = make("class M:\n def _wrapped_call_impl(self, *a): return self._call_impl(*a)\n def _call_impl(self, *a): return a[0](256)\n __call__ = _wrapped_call_impl",
                 "torch/nn/modules/module.py")
    older = make("class M:\n def _call_impl(self, *a): return a[0](256)\n __call__ = _call_impl", "torch/nn/modules/module.py")
    mxnet = make("class M:\n def __call__(self, *a): return a[0](256)", "mxnet/gluon/block.py")
    other = make("class M:\n def __call__(self, *a): return a[0](256)", "other/block.py")
    for space, name, at in ((torch, "_wrapped_call_impl", 1), (older, "_call_impl", 0), (mxnet, "__call__", 0)):
        for _ in range(3):
            module = space["M"]()
            _, have = walker.frames(module(walker.stack))
            equal([(c["name"], c["module"], me) for c, _, _, me in have if c["module"]], [(name, 1, id(module))], "a module's frame")
            equal(have[at][0]["name"], name, "where it stands")
            equal([me for c, _, _, me in have if not c["module"]], [0] * (len(have) - 1), "the other frames")
    _, have = walker.frames(other["M"]()(walker.stack))
    equal([c["module"] for c, _, _, _ in have], [0] * len(have), "another one's __call__")


@case
def trust():
    equal(walker.free.pywalk_state(), CHECKED, "at first")
    for _ in range(70):
        walker.stack(MOST)
    equal(walker.free.pywalk_state(), TRUSTED, "after many walks")
    equal(walker.info("python.stacks"), "on", "python.stacks")
    equal(walker.info("python.version"), sys.version.split()[0].rstrip("+"), "python.version") if not sys.version.split()[0].endswith("+") else None
    start, end = (int(part, 16) for part in walker.info("python.eval").split(",")[0].split("-"))
    loop = ctypes.cast(ctypes.pythonapi._PyEval_EvalFrameDefault, ctypes.c_void_p).value
    check(start <= loop < end, "the loop's bounds", hex(start), hex(end), hex(loop))


@case
def selftest():
    """It passes, compares what there is, and leaves no trace in the program."""
    events, listening = [], [False]
    sys.addaudithook(lambda event, arguments: events.append(event) if listening[0] and not event.startswith("ctypes") else None)

    def turn():
        listening[0] = True
        walker.free.pywalk_turn()
        for _ in range(2000):
            pass
        listening[0] = False

    def counts(frame):
        return [sys.getrefcount(thing) for thing in (frame.f_code, frame.f_code.co_name, frame.f_code.co_filename, frame.f_globals)]

    def work():
        before = counts(sys._getframe())
        for _ in range(3):
            turn()
        equal(counts(sys._getframe()), before, "references")
    try:
        raise KeyError("kept")
    except KeyError as error:
        down(20, work)
        equal(sys.exc_info()[1], error, "the exception in hand")
    depth = len(list(chain(sys._getframe()))) + 20
    result = walker.info("python.selftest")
    check(result and result.startswith("passed: ") and int(result.split()[1]) >= depth, "its result", result)
    equal(events, [], "events that were audited")
    equal(walker.free.pywalk_state() in (CHECKED, TRUSTED), True, "it goes on")


def in_child(what, function):
    """The function's checks, in a child that records for itself."""
    child = os.fork()
    if not child:
        walker.open("%d.bin" % os.getpid())
        del failures[:]
        function()
        os._exit(len(failures) != 0)
    equal(os.waitpid(child, 0)[1], 0, what)


def misread(field):
    walker.free.pywalk_log(0)
    walker.free.pywalk_misread(FIELDS.index(field))


FIELDS = ["thread_frame", "frame_code", "frame_back", "frame_position", "code_name", "code_lines", "object_type", "code_bytes", "code_line", "code_file"]


@case
def layout_is_wrong():
    """What is read is checked before it is believed, and what cannot be read is no crash."""
    def try_it(field):
        misread(field)
        for _ in range(100):
            down(3, lambda: walker.stack(MOST))
        equal((walker.free.pywalk_state(), walker.stack(MOST)), (OFF, 0), field)
    for field in ("frame_code", "frame_back", "code_lines", "object_type") + (("frame_position",) if VERSION > (3, 10) else ()):
        in_child(field, lambda field=field: try_it(field))


@case
def selftest_fails():
    """What looks right and is wrong is found by asking the interpreter, and switched off for good."""
    def turns():
        for _ in range(20):
            walker.free.pywalk_turn()
            for _ in range(2000):
                pass

    def try_it(field, differs):
        misread(field)
        down(5, turns)
        equal(walker.info("python.selftest"), "failed: " + differs, field)
        equal(walker.info("python.stacks"), "off: the walker and the interpreter do not tell the same stack", field)
        equal((walker.free.pywalk_state(), walker.stack(MOST)), (OFF, 0), field)
    wrong = {"code_line": "a first line"}
    if VERSION > (3, 10):
        wrong.update(code_name="a function's name", code_bytes="a frame's instruction")
    else:
        wrong.update(code_file="a file's name", frame_position="a frame's instruction")
    for field, differs in wrong.items():
        in_child(field, lambda field=field, differs=differs: try_it(field, differs))


@case
def forks():
    """A child has a spool of its own, and everything is written again."""
    before = here()
    compare(before, "the parent")

    def child():
        equal(len(walker.entries(PYSTACK)), 0, "stacks at first")
        compare(here(), "the child")
        check(walker.entries(CODE), "it writes anew")
        equal(walker.info("python.stacks"), "on", "python.stacks")
    in_child("the child", child)
    compare(here(), "the parent again")


@case
def full():
    """A full dictionary means no stack, counted, and no wrong one."""
    def make(i):
        space = {}
        exec(compile("def f%d(stack): return stack(256)" % i, "<full>", "exec"), space)
        return space["f%d" % i](walker.stack)
    compare(here(), "before")
    first = walker.stack(MOST), walker.stack(MOST)
    walker.free.pywalk_fill()
    equal([make(i) for i in range(10)], [0] * 10, "new stacks")
    check(walker.free.pywalk_lost() >= 10, "losses are counted", walker.free.pywalk_lost())
    check(all(first), "ids of old stacks", first)


@case
def races():
    """Threads that meet the same stacks and code objects at once write right ones."""
    errors = []

    def work(seed):
        order = random.Random(seed)
        for _ in range(30):
            i = order.randrange(12)
            space = {"here": here}
            exec(compile("def f%d():\n%s return here()" % (i, "\n" * i), "<race %d>" % i, "exec"), space)
            number, frames = space["f%d" % i]()
            _, have = walker.frames(number)
            if [(c["file"], c["name"], c["line"], c["table"]) for c, _, _, _ in have[1:]] != [(c.co_filename, c.co_name, c.co_firstlineno, table_of(c)) for c, _, _ in frames]:
                errors.append(i)
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    many = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in many:
        thread.start()
    for thread in many:
        thread.join()
    sys.setswitchinterval(old)
    equal(errors, [], "wrong stacks")


def until(holds):
    """Waits for what the library's threads or the next instructions bring about; the limit ends a test that hangs."""
    end = time.monotonic() + pylibrary.HUNG
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.0005)
    return True


def tested():
    walker.free.pywalk_turn()
    return (walker.info("python.selftest") or "").startswith("passed")


def threads_find_nothing():
    before, asked = walker.free.pywalk_found(), walker.free.pywalk_asked()
    until(lambda: walker.free.pywalk_asked() > asked + 100)
    return walker.free.pywalk_found() == before


def child_goes_on():
    """A child that is forked by the last functions of its parent is a program of its own."""
    child = os.fork()
    if not child:
        walker.open("%d.bin" % os.getpid())
        thread = threading.Thread(target=lambda: os._exit(0 if walker.stack(MOST) else 1))
        thread.start()
        thread.join()
    return os.waitpid(child, 0)[1] == 0


@case
def remembered():
    """Stacks that come again and again, after others."""
    def leaf():
        return walker.stack(MOST)

    def through(depth):
        return through(depth - 1) if depth else leaf()

    ways = [leaf, lambda: leaf(), functools.partial(through, 1), functools.partial(through, 3), lambda: functools.reduce(lambda a, b: leaf(), [0, 0])]
    seen = {}
    for _ in range(60):
        for n in random.sample(range(len(ways)), len(ways)):
            number = ways[n]()
            equal(seen.setdefault(n, number), number, "remembered", n)
    equal(len(set(seen.values())), len(ways), "stacks that differ")
    if walker.free.pywalk_state() == TRUSTED:
        check(walker.free.pywalk_remembered() > 300, "stacks were found by comparing:", walker.free.pywalk_remembered())


NAMES, FILES = [sys.intern("f%d" % i) for i in range(7)], ["made%d.py" % i for i in range(3)]  # stay, through all runs of the case (docs/stacks.md)


@case
def replaced():
    """Code from files that comes to lie where other code lay, called from the same place."""
    places = set()
    for turn in range(300):
        name, file, line = NAMES[turn % 7], FILES[turn % 3], turn % 16 + 1  # no three of them twice
        space = {}
        exec(compile("\n" * (line - 1) + "def %s(stack):\n  return stack(%d)" % (name, MOST), file, "exec"), space)
        places.add(id(space[name].__code__))
        code = walker.frames(space[name](walker.stack))[1][0][0]
        equal((code["name"], code["file"], code["line"]), (name, file, line), "replaced")
        space.clear()  # the function keeps its globals, and they keep the function
    check(len(places) < 200, "addresses were used again:", len(places))


@case
def shutdown():
    """Daemon threads that never stop walking while the interpreter ends and frees their frames."""
    def last():
        """Registered before the library's function, so called after it."""
        right = None
        try:
            right = [threads_find_nothing(), walker.stack(MOST) != 0, again > 0 or VERSION == (3, 12) or child_goes_on()]  # 3.12 forks no more then
        finally:
            if right != [True] * 3:
                print("shutdown: the end is not as it should be:", right, file=sys.stderr)
                os._exit(1)
    walker.free.pywalk_trust(True)
    atexit.register(last)
    before = atexit._ncallbacks()
    passed = until(tested)
    for _ in range(4):
        threading.Thread(target=walker.free.pywalk_forever, daemon=True).start()
    walked = until(lambda: walker.free.pywalk_found() > 100)
    if not (passed and walked and atexit._ncallbacks() == before + 1):
        print("shutdown: it did not begin as it should:", passed, walked, atexit._ncallbacks() - before, file=sys.stderr)
        os._exit(1)
    time.sleep(random.random() / 500)
    sys.exit(ENDED)


ENDED = 7
STARTS = int(os.environ.get("PYWALK_STARTS", 5))  # each another race


def run(function, path, number=0):
    global walker, again
    sys.stdout.flush()
    folder = tempfile.mkdtemp()  # the child may end in any way, so its traces of 64 MiB are removed here
    child = os.fork()
    if not child:
        try:
            walker, again = Walker(path, folder), number
            for trusted in (False, True) if function not in (trust, selftest, selftest_fails, layout_is_wrong, full) else (False,):
                walker.free.pywalk_trust(trusted)
                function()
            equal(walker.free.pywalk_different(), 0, "stacks that were found by comparing, and a walk finds others")
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
    if function is not shutdown or status != ENDED << 8:
        return status
    with open(path + ".sums", "a") as sums:
        print(1, 0, file=sums)
    return 0


def main():
    path, only = os.path.abspath(sys.argv[1]), sys.argv[2:]
    with open(path + ".sums", "w"):
        pass
    broken = 0
    for function in CASES:
        if only and function.__name__ not in only:
            continue
        for number in range(STARTS if function is shutdown else 1):
            status = run(function, path, number)
            if status:
                break
        if status:
            print("%s: %s FAILED (wait status %#x)" % (sys.version.split()[0], function.__name__, status), file=sys.stderr)
        broken += status != 0 and (function is shutdown or not os.WIFEXITED(status))  # it wrote no sums
    with open(path + ".sums") as lines:
        sums = [tuple(map(int, line.split())) for line in lines]
    good, bad = sum(a for a, _ in sums), sum(b for _, b in sums) + broken
    print("Python %s (%s): %d passed, %d failed" % (sys.version.split()[0], sys.executable, good, bad))
    return bad != 0


sys.exit(main())
