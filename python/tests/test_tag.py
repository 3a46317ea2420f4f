# SPDX-License-Identifier: Apache-2.0
"""Tags around blocks and plain functions, as the library sees them."""


def test_block(recorded):
    result = recorded("""
        with memtrace.tag("a"):
            assert path() == "a"
            with memtrace.tag("b.1"):
                assert path() == "a.b.1"
            assert path() == "a"
        assert path() == "" and depth() == 0
    """)
    assert result.calls == ["push a", "push a.b.1", "pop a", "pop "]


def test_block_restores_after_exception(recorded):
    recorded("""
        class Stop(BaseException): pass
        try:
            with memtrace.tag("a"), memtrace.tag("b"):
                raise Stop
        except Stop:
            assert path() == "" and depth() == 0
        else:
            raise AssertionError("the exception was swallowed")
    """)


def test_one_object_nests_in_itself(recorded):
    recorded("""
        t = memtrace.tag("a")
        with t, t:
            with t:
                assert path() == "a.a.a"
            assert path() == "a.a"
        assert depth() == 0
    """)


def test_function(recorded):
    recorded("""
        @memtrace.tag("a")
        def f(x, *, y):
            "doc"
            assert path() == "a"
            return x + y
        assert f(1, y=2) == 3 and depth() == 0
        assert f.__name__ == "f" and f.__doc__ == "doc"

        @memtrace.tag("r")
        def recurse(n):
            assert path() == ".".join(["r"] * depth())
            return n if n == 0 else recurse(n - 1)
        recurse(5)

        @memtrace.tag("e")
        def fail(): raise KeyError(path())
        try: fail()
        except KeyError as error: assert error.args == ("e",)
        assert depth() == 0
    """)


def test_methods(recorded):
    recorded("""
        class Model:
            @memtrace.tag("forward")
            def forward(self): return self, path()
            @staticmethod
            @memtrace.tag("static")
            def static(): return path()
            @classmethod
            @memtrace.tag("class")
            def make(cls): return cls, path()
        m = Model()
        assert m.forward() == (m, "forward")
        assert m.static() == Model.static() == "static"
        assert Model.make() == (Model, "class")
        assert memtrace.tag("bound")(m.forward)() == (m, "bound.forward")
    """)


def test_builtins_and_partials(recorded):
    result = recorded("""
        import functools
        assert memtrace.tag("len")(len)([1, 2]) == 2
        assert memtrace.tag("p")(functools.partial(max, 3))(4) == 4
    """)
    assert result.calls == ["push len", "pop ", "push p", "pop "]


def test_deep_nesting_stays_balanced(recorded):
    recorded("""
        import contextlib
        with contextlib.ExitStack() as levels:
            for i in range(100):
                levels.enter_context(memtrace.tag(str(i)))
            assert path() == ".".join(map(str, range(64))) and depth() == 100
        assert path() == "" and depth() == 0
    """)


def test_long_paths_stay_balanced(recorded):
    recorded("""
        import contextlib
        with contextlib.ExitStack() as levels:
            for i in range(20):
                levels.enter_context(memtrace.tag("x" * 255))
            assert len(path()) == 4095 and depth() == 20
            with memtrace.tag("x"): assert len(path()) == 4095
        assert path() == "" and depth() == 0
    """)


def test_threads_have_stacks_of_their_own(recorded):
    recorded("""
        import threading
        t, failures, barrier = memtrace.tag("shared"), [], threading.Barrier(4)
        def work(name):
            try:
                assert path() == ""
                with memtrace.tag(name):
                    for _ in range(50):
                        barrier.wait()
                        with t:
                            barrier.wait()
                            assert path() == name + ".shared"
            except BaseException as error:
                failures.append(error)
                barrier.abort()
        with memtrace.tag("main"):
            threads = [threading.Thread(target=work, args=("t%d" % i,)) for i in range(4)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            assert path() == "main"
        assert not failures, failures
    """)


def test_names_reach_the_library_unchanged(recorded):
    result = recorded("""
        for name in ("größe", "a b", "x" * 255, "é" * 127, "bad\\udc80"):
            with memtrace.tag(name): pass
    """)
    assert [line[5:] for line in result.calls if line.startswith("push")] == ["größe", "a b", "x" * 255, "é" * 127, "bad\\udc80"]


REFUSALS = """
    import functools
    def refused(kind, call, *arguments):
        try: call(*arguments)
        except kind as error: assert str(error), error
        else: raise AssertionError((call, arguments))
    for name in ("", "x" * 256, "é" * 128, "a\\0b"):
        refused(ValueError, memtrace.tag, name)
        refused(ValueError, memtrace.mark, name)
    for name in (None, 1, b"bytes", ["a"]):
        refused(TypeError, memtrace.tag, name)
        refused(TypeError, memtrace.mark, name)
    refused(TypeError, memtrace.tag, lambda: 0)           # @memtrace.tag without a name
    for thing in (1, "f", int, staticmethod(len), classmethod(len), property(len)):
        refused(TypeError, memtrace.tag("a"), thing)
    for number in (-1, 2**64):
        refused(ValueError, memtrace.step, number)
        refused(ValueError, memtrace.epoch, number)
    for number in ("1", 1.0):
        refused(TypeError, memtrace.step, number)
        refused(TypeError, memtrace.epoch, number)
"""


def test_refusals(recorded):
    assert recorded(REFUSALS).calls == []


def test_refusals_are_the_same_without_library(unrecorded):
    unrecorded(REFUSALS)


def test_tag_is_a_value(recorded):
    recorded("""
        import copy, pickle
        t = memtrace.tag("a'b")
        assert repr(t) == '''memtrace.tag("a'b")'''
        for twin in (copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
            with twin: assert path() == "a'b"
    """)


def test_forked_child(recorded):
    recorded("""
        import os
        with memtrace.tag("parent"):
            child = os.fork()
            if child == 0:
                with memtrace.tag("child"):
                    os._exit(0 if path() == "parent.child" else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert path() == "parent"
    """)


def test_tasks(recorded):
    """Each task has tags of its own, whichever order they run in; the loop's own work and what comes after it have none of them."""
    recorded("""
        import asyncio
        seen = {}
        async def request(i, turns):
            with memtrace.tag(f"req{i}"):
                for n in range(turns):
                    await asyncio.sleep(0)
                    assert path() == f"outer.req{i}", path()
                    with memtrace.tag("inner"):
                        await asyncio.sleep(0.001 * ((i + n) % 3))
                        assert path() == f"outer.req{i}.inner", path()
                    seen[i] = path()
            assert path() == "outer", path()
        @memtrace.tag("decorated")
        async def decorated():
            with memtrace.tag("block"):
                await asyncio.sleep(0.001)
                assert path() == "outer.decorated.block", path()
            await asyncio.sleep(0)
            assert path() == "outer.decorated", path()
        async def child():
            await asyncio.sleep(0)
            assert path() == "outer.parent", path()
        async def parent():
            with memtrace.tag("parent"):
                task = asyncio.ensure_future(child())
                await asyncio.sleep(0.002)
                await task
        async def fails():
            with memtrace.tag("fails"):
                await asyncio.sleep(0)
                raise KeyError("on purpose")
        async def cancelled():
            with memtrace.tag("cancelled"):
                await asyncio.get_running_loop().create_future()
        async def main():
            tasks = [asyncio.ensure_future(t) for t in (request(0, 3), request(1, 5), request(2, 1), decorated(), parent(), fails(), cancelled())]
            await asyncio.sleep(0.01)
            assert path() == "outer", path()
            tasks[-1].cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(r) for r in results if r is not None] == [KeyError, asyncio.CancelledError], results
        with memtrace.tag("outer"):
            for _ in range(2):
                loop = asyncio.new_event_loop()
                loop.run_until_complete(main())
                loop.close()
                assert path() == "outer"
        assert depth() == 0 and seen == {0: "outer.req0", 1: "outer.req1", 2: "outer.req2"}, seen
    """)


def test_first_tag_inside_a_task(recorded):
    """The callback that runs when tags are first used in a loop is not watched yet; it leaves nothing behind all the same."""
    recorded("""
        import asyncio
        async def request(i):
            with memtrace.tag(f"req{i}"):
                await asyncio.sleep(0.001)
                assert path() == f"req{i}", path()
        async def main():
            await asyncio.gather(*[request(i) for i in range(3)])
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        loop.close()
        assert depth() == 0, depth()
    """)
