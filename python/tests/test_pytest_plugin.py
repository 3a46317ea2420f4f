# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin without a framework: its way under the library, marks, budgets, the table; and sizes as the command reads them."""

import json
import os
import subprocess
import sys

import pytest
from conftest import PYTHON_FOLDER
from test_recorder import ALLOCATE, COMMAND, LIBRARY, driver  # noqa: F401, a fixture

sys.path.insert(0, str(PYTHON_FOLDER))

from memtrace._blocks import Blocks, Stretch, measure  # noqa: E402
from memtrace._limits import Allowed  # noqa: E402
from memtrace._pytest_budget import Budget, BudgetError  # noqa: E402
from memtrace._pytest_table import table  # noqa: E402
from memtrace._size import exact_size, format_size, parse_size  # noqa: E402

needs_build = pytest.mark.skipif(not (LIBRARY.exists() and COMMAND.exists()), reason="no build")

TRACE = """trace version=1
thread id=1 tid=7 name="python3"
device index=0 name="Null GPU" uuid="GPU-0" total=85899345920
alloc seq=1 time=1000 thread=1 level=driver api=cuMemAlloc_v2 mem=device device=0 addr=0x1000 size=4096
end reason="exit" time=7000
"""


@pytest.fixture
def trace(tmp_path):
    (tmp_path / "t.txt").write_text(TRACE)
    subprocess.run([str(COMMAND), "-q", "dump", "--encode", "t.txt", "-o", "t.bin"], cwd=str(tmp_path), check=True)
    return tmp_path / "t.bin"


@needs_build
@pytest.mark.parametrize("text", ["24 MB", "24MiB", "1.5 g", "0", "0 KB", "512", ".5k", "1e3", "3T", " 7 kib ",
                                  "24 XB", "", "MB", "1 M M", "-5", "1..5", "nan"])
def test_sizes_are_those_of_the_command(trace, text):
    done = subprocess.run([str(COMMAND), "check", "--json", "--allow-incomplete", f"--max=peak={text}", str(trace)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode == 2:
        with pytest.raises(ValueError, match="is not a size; write a number with KiB"):
            parse_size(text)
    else:
        assert parse_size(text) == json.loads(done.stdout)["results"][0]["limit"]


def test_sizes_are_written():
    assert [format_size(n) for n in (0, 1023, 1536, 10 << 20, 5 << 30)] == ["0 B", "1023 B", "1.50 KiB", "10.0 MiB", "5.00 GiB"]
    for n in (0, 7, 1024, 1536, 4346 << 10, 24 << 20, 3 << 30, (1 << 40) + 1):
        assert parse_size(exact_size(n)) == n


def test_measure():
    """What is live when a stretch begins is its peak's and not its own; what it allocated and nobody freed is left."""
    value = {"level": "framework", "lost_records": 0, "left_out": 0, "times_ns": [1, 2, 3, 4], "born": [0, 1, 2], "died": [4, 3, 4],
             "bytes": [512, 1024, 512], "requested": [500, 1000, 100], "device": [0, 0, 1], "owner": [0, 1, 1], "marks": [], "by": ["category", "site"],
             "owners": [{"keys": ["Others", "a.py:1"], "function": "", "file": "", "line": 0}, {"keys": ["Others", "a.py:2"], "function": "", "file": "", "line": 0}]}
    stretch = Stretch(1, 4, 4, [(1, 4)])
    measure(Blocks(value), [stretch])
    assert (stretch.peak_bytes, stretch.own_bytes, stretch.left_bytes) == (2048, 1100, 100)
    assert stretch.peak_by_device == {0: 1536, 1: 512}
    assert stretch.left[0].owner.site == "a.py:2"


def test_allowed():
    owner = type("Owner", (), {"tag": "cache.kv", "category": "Parameters", "site": "model.py:4 f", "module": "head.0", "library": "libx.so.1", "operator": "aten::mm"})
    holding = type("Holding", (), {"owner": owner})
    for pattern in ("tag:cache", "category:param*", "category:PARAMETERS", "site:model.py:*", "site:model.py:4", "module:head", "library:libx", "operator:aten::*"):
        assert Allowed(pattern)(holding), pattern
    for pattern in ("tag:cach", "site:model.py:41", "module:he", "category:Param"):
        assert not Allowed(pattern)(holding), pattern
    assert Allowed(filter_fn=lambda one: False)(holding) and not Allowed(filter_fn=lambda one: True)(holding)


def test_budget_keeps_comments(tmp_path):
    path = tmp_path / "b.toml"
    path.write_text('# ours\n\n[tests]\n# large\n"b.py::t" = "2 MiB"  # why\n"a.py::u" = 10\n# the end\n')
    budget = Budget(str(path))
    assert budget.limit("b.py::t") == 2 << 20 and budget.limit("x") is None
    assert budget.unknown({"a.py::v"}, str(tmp_path)) == ["b.py::t", "a.py::u"]
    assert budget.update({"b.py::t": (3 << 20) - 1, "c.py::n": 5, "a.py::u": 10}, ["z"]) == (1, 1, 0)
    assert path.read_text() == '# ours\n\n[tests]\n"a.py::u" = 10\n# large\n"b.py::t" = "3 MiB"  # why\n"c.py::n" = "5 B"\n# the end\n'


def test_budget_as_toml_allows_it(tmp_path):
    """A byte order mark, as some editors write it, and a comment behind the table's name were errors."""
    path = tmp_path / "b.toml"
    path.write_text('\ufeff# ours\n[ tests ]  # of CI\n"a.py::t" = "2 MiB"\n', encoding="utf-8")
    budget = Budget(str(path))
    assert budget.limit("a.py::t") == 2 << 20
    assert budget.update({"a.py::t": 3 << 20}, []) == (0, 1, 0)
    assert path.read_text() == '# ours\n[ tests ]  # of CI\n"a.py::t" = "3 MiB"\n'


@pytest.mark.parametrize("line, error", [('"a" = "1 XB"', ':2: "1 XB" is not a size'), ("x", ":2: write [tests]"),
                                         ('"a" = 1\n"a" = 2', ":3: a second budget of a")])
def test_bad_budget(tmp_path, line, error):
    (tmp_path / "b.toml").write_text(f"[tests]\n{line}\n")
    with pytest.raises(BudgetError) as problem:
        Budget(str(tmp_path / "b.toml"))
    assert error in str(problem.value)


@pytest.mark.parametrize("width", [72, 80, 120])
def test_table_fits(width):
    owner = {"category": "Intermediate gradients", "site": "backward of a_long_module.py:123 Class.method"}
    row = {"own_bytes": 5 << 20, "peak_bytes": 99 << 20, "left_bytes": 0, "owner": owner}
    lines = table([{**row, "test": f"tests/test_a_long_name.py::TestClass::test_{i}[parameter]"} for i in range(3)] + [{**row, "test": "b.py::t"}],
                  [{**row, "fixture": "model", "scope": "module", "held_bytes": 5}], width)
    assert max(len(line) for line in lines) <= width and "test_2[parameter]" in "\n".join(lines)


def run(tmp_path, driver, source, *arguments, **variables):  # noqa: F811
    (tmp_path / "test_it.py").write_text(ALLOCATE + source)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("LD_PRELOAD", "MEMTRACE_", "PYTEST"))}
    environment.update(variables, PYTHONPATH=str(PYTHON_FOLDER), TEST_DRIVER=str(driver))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "memtrace.pytest_plugin", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, env=environment, cwd=str(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    return done.returncode, done.stdout


SOURCE = """
import pytest
@pytest.mark.limit_gpu_memory("1 KB")
def test_over(): allocate(4096)
@pytest.mark.limit_gpu_leaks(4096)
def test_within(): allocate(4096)
def test_nothing(): pass
"""


@needs_build
def test_plugin(driver, tmp_path):  # noqa: F811
    status, output = run(tmp_path, driver, SOURCE, "--memtrace", "-s")
    assert status == 1 and "1 failed, 2 passed" in output, output
    assert "GPU memory reached 4.00 KiB, 3.00 KiB over the limit of 1.00 KiB; most is 4.00 KiB" in output
    value = json.loads((tmp_path / "memtrace-pytest" / "tests.json").read_text())
    assert [(row["outcome"], row["own_bytes"], row["left_bytes"]) for row in value["tests"]] == [("failed", 4096, 4096), ("passed", 4096, 4096), ("passed", 0, 0)]
    first = value["traces"]
    run(tmp_path, driver, SOURCE, "--memtrace")
    assert not os.path.exists(first[0])  # the next session's takes its place


@needs_build
def test_without_memtrace(driver, tmp_path):  # noqa: F811
    status, output = run(tmp_path, driver, SOURCE)
    assert status == 0 and "limits on GPU memory of 2 tests were not checked: this process is not recorded" in output
    assert not (tmp_path / "memtrace-pytest").exists()
    status, output = run(tmp_path, driver, SOURCE, "-o", "memtrace_unchecked=skip")
    assert status == 0 and "1 passed, 2 skipped" in output


@needs_build
def test_never_twice(driver, tmp_path):  # noqa: F811
    status, output = run(tmp_path, driver, SOURCE, "--memtrace", MEMTRACE_DISABLE="1")
    assert status == 4 and "nothing is recorded in this process: recording is switched off" in output, output


@needs_build
@pytest.mark.parametrize("source, error", [('limit_gpu_memory("1 XB")', '"1 XB" is not a size'), ("limit_gpu_memory()", "missing a required argument"),
                                           ('limit_gpu_leaks(allow="tog:x")', "did you mean tag:?")])
def test_bad_marks(driver, tmp_path, source, error):  # noqa: F811
    status, output = run(tmp_path, driver, f"import pytest\n@pytest.mark.{source}\ndef test_x(): pass\n")
    assert status == 4 and f"ERROR: test_it.py::test_x: {source.split('(')[0]}: " in output and error in output, output


FAILED_BEFORE = """
import os
def test_passes(): allocate(4096)
def test_fails():
    allocate(4096)
    assert "FIXED" in os.environ
"""


@needs_build
def test_budget_of_the_last_failed(driver, tmp_path):  # noqa: F811
    """pytest --lf does not collect the tests that passed: their budgets are neither wrong nor gone."""
    (tmp_path / "b.toml").write_text('[tests]\n"test_it.py::test_fails" = "4 KiB"\n"test_it.py::test_passes" = "4 KiB"\n')
    options = ("-p", "cacheprovider", "--memtrace-budget=b.toml")
    status, output = run(tmp_path, driver, FAILED_BEFORE, *options)
    assert status == 1 and "All 2 tests are within their budget." in output, output
    status, output = run(tmp_path, driver, FAILED_BEFORE, *options, "--lf")
    assert status == 1 and "The test is within its budget." in output, output
    status, output = run(tmp_path, driver, FAILED_BEFORE, *options, "--lf", "--memtrace-update", FIXED="1")
    assert status == 0 and "0 budgets are new, 0 changed, 0 removed." in output, output


NAMED = """
import memtrace, pytest
@pytest.fixture(autouse=True)
def named(request):
    allocate(64)
    memtrace.mark(request.node.nodeid)
@pytest.mark.limit_gpu_memory("1 KB")
def test_over(): allocate(4096)
def test_within(): allocate(512)
"""


@needs_build
def test_own_marks(driver, tmp_path):  # noqa: F811
    """Of a suite that marks its tests itself, by the names that the plugin uses, no figure was known."""
    status, output = run(tmp_path, driver, NAMED, "--memtrace")
    value = json.loads((tmp_path / "memtrace-pytest" / "tests.json").read_text())
    assert status == 1 and "GPU memory reached 4.06 KiB, 3.06 KiB over the limit" in output and not value["problems"], output
    assert [(row["outcome"], row["own_bytes"]) for row in value["tests"]] == [("failed", 4160), ("passed", 576)]
    from memtrace._pytest_phases import recovered

    tests = [row["test"] for row in value["tests"]]
    assert [(row["test"], row["own_bytes"]) for row in recovered(value["traces"][0], tests)] == list(zip(tests, (4160, 576)))


PARTS = """
import unittest
class TestParts(unittest.TestCase):
    def test_parts(self):
        allocate(4096)
        for part in (1, 2, 3):
            with self.subTest(part):
                self.assertNotEqual(part, 2)
    def test_whole(self): allocate(4096)
"""


@needs_build
@pytest.mark.skipif(pytest.version_tuple < (9,), reason="pytest reports subtests from 9 on")
def test_failed_part(driver, tmp_path):  # noqa: F811
    """A test of which a part failed was called passed by the report that follows, and got a budget."""
    status, output = run(tmp_path, driver, PARTS, "--memtrace-budget=b.toml", "--memtrace-update")
    value = json.loads((tmp_path / "memtrace-pytest" / "tests.json").read_text())
    assert status == 1 and [row["outcome"] for row in value["tests"]] == ["failed", "passed"], output
    assert "test_parts" not in (tmp_path / "b.toml").read_text() and "test_whole" in (tmp_path / "b.toml").read_text()


LIMITED = """
import asyncio, contextlib, pytest
from memtrace.testing import limit_gpu_leaks, limit_gpu_memory

@limit_gpu_memory("1 KB")
async def hold(size):
    allocate(size)
    await asyncio.sleep(0)
    return size

@limit_gpu_leaks("1 KB")
def leave(size): allocate(size)

def test_within():
    assert asyncio.run(hold(512)) == 512
    leave(512)

def test_over():
    with pytest.raises(AssertionError, match="GPU memory reached 4.00 KiB, 3.00 KiB over the limit of 1.00 KiB"):
        asyncio.run(hold(4096))
    with pytest.raises(AssertionError, match="4.00 KiB of GPU memory were left, 3.00 KiB over the limit"):
        leave(4096)

def test_side_by_side():
    async def both():
        return await asyncio.gather(hold(4096), hold(512), return_exceptions=True)
    assert [type(one) for one in asyncio.run(both())] == [AssertionError, int]  # each from its own beginning

def test_refused():
    def generator(): yield
    async def asynchronous(): yield
    class Test: pass
    for one, error in ((generator, "is a generator"), (asynchronous, "is a generator"), (Test, "decorate its methods")):
        with pytest.raises(TypeError, match=error):
            limit_gpu_memory("1 KB")(one)
"""


@needs_build
def test_limits_as_decorators(driver, tmp_path):  # noqa: F811
    """A limit on an asynchronous function ended before the function began, and one on a generator before its body ran; of a limited class unittest found
    no tests."""
    status, output = run(tmp_path, driver, LIMITED, "--memtrace")
    assert status == 0 and "4 passed" in output, output


@needs_build
def test_load(trace, tmp_path):
    import memtrace

    loaded = memtrace.load(trace)
    assert (loaded.peak.bytes, loaded.peak.level, len(loaded.blocks)) == (4096, "driver", 1)
    assert sum(loaded.peak.by_category.values()) == 4096 and loaded.diff(loaded).bytes == {"base": 4096, "new": 4096, "delta": 0}
    assert loaded.findings[0].id == "peak" and loaded.devices[0].name == "Null GPU"
    for path, error in ((tmp_path / "gone.bin", "no such file"), (tmp_path / "t.txt", "not a memtrace trace")):
        with pytest.raises(memtrace.TraceError, match=error):
            memtrace.load(path)
    with pytest.raises(ValueError, match="choose from category"):
        loaded.peak.by("color")


@needs_build
def test_groupings_are_those_of_the_command(trace):
    """By inner and by line, which report has, load() did not divide."""
    import memtrace
    from memtrace._report import GROUPINGS

    done = subprocess.run([str(COMMAND), "report", "--by", "none", str(trace)], stderr=subprocess.PIPE, universal_newlines=True)
    names = done.stderr.split("\n")[0].partition("choose from ")[2].split(", ")
    assert set(names) == set(GROUPINGS)
    loaded = memtrace.load(trace)
    assert [sum(loaded.peak.by(name).values()) for name in names] == [4096] * len(names)
