# SPDX-License-Identifier: Apache-2.0
"""Marks, steps, epochs, and the package without a library."""

import subprocess
import sys

from conftest import PYTHON_FOLDER


def test_steps_and_epochs(recorded):
    result = recorded("""
        assert [memtrace.step(), memtrace.step(), memtrace.step(10), memtrace.step()] == [0, 1, 10, 11]
        assert memtrace.epoch() == 0 and memtrace.epoch(2**64 - 1) == 2**64 - 1
        class Index:
            def __index__(self): return 7
        assert memtrace.step(Index()) == 7
    """)
    assert result.calls == ["step 0", "step 1", "step 10", "step 11", "epoch 0", "epoch 18446744073709551615", "step 7"]


def test_counting_is_shared_by_threads(recorded):
    result = recorded("""
        import threading
        threads = [threading.Thread(target=lambda: [memtrace.step() for _ in range(25)]) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    """)
    assert sorted(int(line.split()[1]) for line in result.calls) == list(range(100))


def test_marks(recorded):
    assert recorded("""
        memtrace.mark("loaded")
        memtrace.mark("a b")
    """).calls == ["mark loaded", "mark a b"]


def test_active(recorded):
    recorded("assert memtrace.active() is True")
    recorded("assert memtrace.active() is False", FAKE_MEMTRACE_OFF="1")


def test_first_calls_from_many_threads(recorded):
    result = recorded("""
        import threading
        barrier = threading.Barrier(8)
        def work():
            barrier.wait()
            with memtrace.tag("t"): pass
        threads = [threading.Thread(target=work) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    """)
    assert sorted(result.calls) == ["pop "] * 8 + ["push t"] * 8


def test_everything_works_without_library(unrecorded):
    unrecorded("""
        import asyncio
        assert memtrace.active() is False
        assert [memtrace.step(), memtrace.step(5), memtrace.step()] == [0, 5, 6] and memtrace.epoch() == 0
        memtrace.mark("m")
        with memtrace.tag("a") as t: assert isinstance(t, memtrace.tag)

        @memtrace.tag("f")
        def f(x): return x
        @memtrace.tag("g")
        def g():
            got = yield 1
            return got
        @memtrace.tag("c")
        async def c():
            await asyncio.sleep(0)
            return 2
        @memtrace.tag("ag")
        async def ag():
            for i in range(3): yield i
        async def collect(): return [i async for i in ag()]
        assert f(3) == 3 and list(g()) == [1] and asyncio.run(c()) == 2 and asyncio.run(collect()) == [0, 1, 2]
    """)


def test_incomplete_library_counts_as_none(tmp_path, unrecorded):
    source, library = tmp_path / "old.c", tmp_path / "libold.so"
    source.write_text("int memtrace_tag_push(const char *name) { (void)name; __builtin_trap(); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    from conftest import run_program

    run_program("""
        with memtrace.tag("a"): pass
        assert memtrace.active() is False
    """, tmp_path, library)


def test_import_is_light():
    """Importing the package, without using it, loads nothing that a bare interpreter would have to load from disk in bulk."""
    program = "import sys; before = set(sys.modules); import memtrace; print(' '.join(sorted(set(sys.modules) - before)))"
    finished = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(PYTHON_FOLDER)!r}); {program}"],
                              check=True, stdout=subprocess.PIPE, universal_newlines=True)
    loaded = set(finished.stdout.split())
    assert "memtrace" in loaded
    assert not loaded & {"ctypes", "typing", "inspect", "asyncio", "threading", "logging", "re", "contextlib"}, sorted(loaded)
