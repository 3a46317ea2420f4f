"""Allocates on the device from every shape that a Python stack can have.

    shapes.py [--rounds N]

Prints how many allocations PyTorch counted. Every shape is a function of SHAPES;
what it allocates is freed before it returns, by the shape's own means. Runs with
CPython 3.8 and later; greenlets take part where the package is installed.
"""
import argparse
import asyncio
import concurrent.futures
import contextlib
import functools
import gc
import sys
import threading
import weakref

import torch

try:
    import greenlet
except ImportError:
    greenlet = None

SHAPES = []


def shape(function):
    SHAPES.append(function)
    return function


def block():
    return torch.empty(1000, device="cuda")


@shape
def plain():
    block()


@shape
def recursion():
    def down(depth):
        return block() if depth == 0 else down(depth - 1)
    for depth in (1, 40, 127, 128, 129, 300):
        down(depth)


@shape
def through_c():
    """C code between the frames: sort, map, reduce, partial, a format's method."""
    class Formatted:
        def __format__(self, spec):
            block()
            return spec

        def __lt__(self, other):
            block()
            return False
    sorted([3, 1, 2], key=lambda value: (block(), value)[1])
    list(map(type(3).__add__, map(functools.partial(max, key=lambda value: (block(), value)[1]), range(3), range(3)), range(3)))
    functools.reduce(lambda a, b: (block(), a + b)[1], range(4))
    functools.partial(functools.partial(block))()
    f"{Formatted():x}{Formatted()!s:.0}"
    sorted([Formatted(), Formatted()])


@shape
def generators():
    def inner():
        for _ in range(3):
            yield block()

    def outer():
        kept = block()
        yield from inner()
        yield kept
    for _ in outer():
        block()
    unfinished = outer()
    next(unfinished)
    del unfinished  # closed here: its blocks are freed inside it
    sum((block(), 1)[1] for _ in range(3))


@shape
def comprehensions():
    [block() for _ in range(2)]
    {i: block() for i in range(2)}
    [[block() for _ in range(2)] for _ in range(2)]


@shape
def coroutines():
    async def leaf(depth):
        await asyncio.sleep(0)
        kept = block()
        if depth:
            await leaf(depth - 1)
        del kept

    async def numbers():
        for _ in range(2):
            yield block()
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(*(leaf(3) for _ in range(3)))
        async for _ in numbers():
            block()
        await asyncio.get_running_loop().run_in_executor(None, block)
    asyncio.run(main())


@shape
def greenlets():
    if greenlet is None:
        return

    def deep(depth):
        if depth:
            return deep(depth - 1)
        block()
        other.switch()
        return block()

    def back():
        block()
        first.switch()
        block()
    first, other = greenlet.greenlet(lambda: deep(5)), greenlet.greenlet(back)
    first.switch()
    block()
    other.switch()


@shape
def fresh_code():
    """Code that comes and goes, often at the address of what was there before."""
    for i in range(20):
        names = {"block": block}
        exec(compile("\n" * (i * 7) + f"def fresh_{i}(\n  n\n):\n  if n:\n    return fresh_{i}(\n      n - 1)\n  return block()\nfresh_{i}(2)", f"<fresh {i}>", "exec"), names)
        eval("[block() for _ in range(1)]", names)
        del names
        gc.collect()


@shape
def names_of_the_world():
    source = "def größe():\n  return block()\ndef 大きさ():\n  return größe()\ndef 𝔣():\n  return 大きさ()\n𝔣()\n"
    for name in ("latin-é.py", "ucs2-大.py", "ucs4-\U0001f40d.py"):
        exec(compile(source, name, "exec"), {"block": block})


@shape
def many_lines():
    """Calls that begin and end on different lines, far down in a file, and backwards."""
    def ignore(*_, **__):
        pass
    ignore(
        block(),
        1 +
        2,
        (
            block()
        ),
        key=block(
        ),
    )
    for (
        _
    ) in (
        block(), block()
    ):
        pass
    source = "f(" + "\n" * 5000 + "block(),\n" + "\n" * 300 + "block())"
    exec(compile(source, "<far>", "exec"), {"f": ignore, "block": block})
    lines = "\n".join(f"x{i} = {i}" for i in range(3000)) + "\nblock()\n" + "\n".join(f"y{i} = x{i} + 1" for i in range(500)) + "\nblock()\n"
    exec(compile(lines, "<long>", "exec"), {"block": block})


@shape
def exceptions():
    def fail(depth):
        kept = block()
        if depth:
            fail(depth - 1)
        raise ValueError(kept.shape)
    for depth in (0, 5):
        try:
            fail(depth)
        except ValueError:
            block()
        finally:
            block()
    with contextlib.suppress(RuntimeError):
        torch.ones(3, device="cuda") @ torch.ones(4, device="cuda")  # raised through C++


@shape
def managers():
    @contextlib.contextmanager
    def manager():
        kept = block()
        yield kept
        block()
    with manager(), manager() as kept, contextlib.ExitStack() as stack:
        stack.callback(block)
        del kept


@shape
def classes():
    class Meta(type):
        def __call__(cls, *args):
            block()
            return super().__call__(*args)

    class Thing(metaclass=Meta):
        kept = block()

        def __init__(self):
            self.own = block()

        def __del__(self):
            block()

        def __getattr__(self, name):
            return block()

        @property
        def value(self):
            return block()

        @staticmethod
        @functools.lru_cache(maxsize=1)
        def cached():
            return block()
    thing = Thing()
    thing.value, thing.missing, Thing.cached()
    watched = weakref.ref(thing, lambda _: block())
    del thing
    circle = Thing()
    circle.circle = circle
    del circle
    gc.collect()
    return watched


@shape
def threads():
    def work(depth):
        for _ in range(5):
            recursive(depth)

    def recursive(depth):
        return block() if depth == 0 else recursive(depth - 1)
    workers = [threading.Thread(target=work, args=(depth,), name=f"worker {depth}") for depth in (0, 10, 60)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(work, range(4)))


@shape
def autograd():
    """Backward of Python functions, hooks: Python frames in the threads of autograd."""
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(context, value):
            context.save_for_backward(value)
            return value * 2

        @staticmethod
        def backward(context, gradient):
            block()
            return gradient * 2
    value = torch.ones(100, device="cuda", requires_grad=True)
    value.register_hook(lambda gradient: gradient + block()[0])
    result = Twice.apply(Twice.apply(value) + 1).sum()
    result.backward()
    from torch.utils.checkpoint import checkpoint
    checkpoint(lambda x: Twice.apply(x * 3).exp(), value, use_reentrant=False).sum().backward()
    checkpoint(lambda x: Twice.apply(x * 3).exp(), value, use_reentrant=True).sum().backward()


@shape
def modules():
    class Doubling(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Sequential(torch.nn.Linear(10, 10), torch.nn.ReLU())

        def forward(self, x):
            return self.inner(x) * 2
    model = torch.nn.Sequential(Doubling(), Doubling()).cuda()
    model[0].register_forward_hook(lambda *_: (block(), None)[1])
    model(torch.ones(2, 10, device="cuda")).sum().backward()


@shape
def profiled():
    """While the interpreter calls a profile function and a trace function."""
    calls = []

    def watch(frame, event, argument):
        if event == "call" and frame.f_code is block.__code__ and len(calls) < 3:
            calls.append(torch.empty(10, device="cuda"))
        return watch
    sys.setprofile(watch)
    block()
    sys.setprofile(None)
    sys.settrace(watch)
    block()
    sys.settrace(None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    rounds = parser.parse_args().rounds
    gc.freeze()  # what was imported is not looked through each time
    for _ in range(rounds):
        for function in SHAPES:
            function()
            gc.collect()
    print(len(SHAPES), "shapes,", torch.cuda.memory_stats()["allocation.all.allocated"], "allocations")


if __name__ == "__main__":
    main()
