# SPDX-License-Identifier: Apache-2.0
"""Decorated generators and coroutines: the tag is there exactly while the body runs, and nothing is kept alive."""


def test_generator(recorded):
    recorded("""
        import inspect
        @memtrace.tag("g")
        def counting(n):
            assert path().endswith("g")
            for i in range(n):
                sent = yield (i, path())
                assert path().endswith("g")
            return "done"
        assert inspect.isgeneratorfunction(counting)
        g = counting(2)
        assert depth() == 0
        assert next(g) == (0, "g") and depth() == 0
        with memtrace.tag("outer"):
            assert g.send(None) == (1, "outer.g") and path() == "outer"
        try: next(g)
        except StopIteration as stop: assert stop.value == "done"
        assert depth() == 0
    """)


def test_generator_protocol(recorded):
    recorded("""
        seen = []
        @memtrace.tag("g")
        def g():
            try:
                while True:
                    try:
                        seen.append((yield path()))
                    except KeyError as error:
                        seen.append((path(), error.args))
            finally:
                seen.append(("closed", path()))
        i = g(); next(i)
        i.send(1)
        assert i.throw(KeyError("k")) == "g" and depth() == 0
        i.close()
        assert seen == [1, ("g", ("k",)), ("closed", "g")] and depth() == 0
        i = g(); next(i)
        try: i.throw(ZeroDivisionError)
        except ZeroDivisionError: pass
        assert depth() == 0 and list(i) == []

        @memtrace.tag("stubborn")
        def stubborn():
            try: yield
            except GeneratorExit: yield
        i = stubborn(); next(i)
        try: i.close()
        except RuntimeError: pass
        else: raise AssertionError("the refusal to close was hidden")
        assert depth() == 0

        @memtrace.tag("stop")
        def raises_stop():
            try: yield 1
            except StopIteration: yield 2
        i = raises_stop(); next(i)
        assert i.throw(StopIteration) == 2
    """)


def test_interleaved_generators(recorded):
    recorded("""
        def body():
            for _ in range(3): yield path()
        a, b = memtrace.tag("a")(body)(), memtrace.tag("b")(body)()
        assert [pair for pair in zip(a, b)] == [("a", "b")] * 3 and depth() == 0
    """)


def test_coroutines_interleave(recorded):
    recorded("""
        import asyncio, inspect
        @memtrace.tag("outer")
        async def outer(name):
            assert path() == "outer"
            await inner(name)
            assert path() == "outer"
            return name
        async def inner(name):
            for _ in range(5):
                with memtrace.tag(name): assert path() == "outer." + name
                await asyncio.sleep(0)
                assert path() == "outer"
        assert inspect.iscoroutinefunction(outer)
        async def main():
            bystander = asyncio.ensure_future(watch())
            assert await asyncio.gather(outer("a"), outer("b")) == ["a", "b"]
            assert depth() == 0
            await bystander
        async def watch():
            for _ in range(8):
                assert depth() == 0
                await asyncio.sleep(0)
        asyncio.run(main())
        assert depth() == 0
    """)


def test_cancelled_coroutine(recorded):
    recorded("""
        import asyncio
        seen = []
        @memtrace.tag("job")
        async def job():
            try: await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                seen.append(path())
                raise
        async def main():
            task = asyncio.ensure_future(job())
            await asyncio.sleep(0)
            task.cancel()
            try: await task
            except asyncio.CancelledError: seen.append("cancelled")
        asyncio.run(main())
        assert seen == ["job", "cancelled"] and depth() == 0
    """)


def test_async_generator(recorded):
    recorded("""
        import asyncio, inspect
        seen = []
        @memtrace.tag("ag")
        async def produce():
            try:
                for i in range(10):
                    await asyncio.sleep(0)
                    assert path() == "ag"
                    try: seen.append((yield i))
                    except KeyError: seen.append("key in " + path())
            finally:
                await asyncio.sleep(0)
                seen.append("closed in " + path())
        assert inspect.isasyncgenfunction(produce)
        async def main():
            assert [i async for i in produce()] == list(range(10))
            seen.clear()
            g = produce()
            assert await g.asend(None) == 0 and depth() == 0
            assert await g.asend("x") == 1 and await g.athrow(KeyError()) == 2
            await g.aclose()
            assert seen == ["x", "key in ag", "closed in ag"] and depth() == 0
            g = produce(); await g.asend(None)
            try: await g.athrow(ZeroDivisionError())
            except ZeroDivisionError: pass
            assert depth() == 0
        asyncio.run(main())
    """)


def test_old_style_coroutine(recorded):
    recorded("""
        import asyncio, types
        @memtrace.tag("old")
        @types.coroutine
        def old():
            yield
            return path()
        async def main(): return await old()
        assert asyncio.run(main()) == "old" and depth() == 0
    """)


def test_partials_and_callable_objects(recorded):
    recorded("""
        import asyncio, functools
        async def f(x):
            await asyncio.sleep(0)
            return x, path()
        class Callable:
            async def __call__(self, x): return await f(x)
        assert asyncio.run(memtrace.tag("p")(functools.partial(f, 1))()) == (1, "p")
        assert asyncio.run(memtrace.tag("c")(Callable())(2)) == (2, "c")
        assert asyncio.run(memtrace.tag("m")(Callable().__call__)(3)) == (3, "m")
    """)


def test_nothing_is_kept_alive(recorded):
    recorded("""
        import asyncio, gc, weakref
        gc.disable()
        class Tensor: pass

        @memtrace.tag("g")
        def g(x):
            del x
            while True:
                got = yield Tensor()
                del got
        argument = Tensor(); watch = weakref.ref(argument)
        i = g(argument); del argument
        product = weakref.ref(next(i))
        assert watch() is None, "the argument lives on"
        assert product() is None, "the value handed out lives on"
        sent = Tensor(); watch = weakref.ref(sent)
        i.send(sent); del sent
        assert watch() is None, "the value sent in lives on"

        class Failure(Exception): pass
        def failing(call):
            error = Failure(); watch = weakref.ref(error)
            try: call(error)
            except Failure: pass
            del error
            return watch
        i = g(0); next(i)
        assert failing(i.throw)() is None, "the error lives on in a cycle"

        @memtrace.tag("ag")
        async def ag(x):
            del x
            while True:
                got = yield Tensor()
                del got
        async def main():
            argument = Tensor(); watch = weakref.ref(argument)
            i = ag(argument); del argument
            product = weakref.ref(await i.asend(None))
            assert watch() is None and product() is None
            error = Failure(); watch = weakref.ref(error)
            try: await i.athrow(error)
            except Failure: pass
            del error
            return watch
        assert asyncio.run(main())() is None, "the error lives on in a cycle"

        @memtrace.tag("c")
        async def c(x):
            watch = weakref.ref(x); del x
            await asyncio.sleep(0)
            return watch() is None
        assert asyncio.run(c(Tensor())), "the argument lives on"
    """)
