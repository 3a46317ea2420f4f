# SPDX-License-Identifier: Apache-2.0
"""The three calls of the TBD memory profiler: what they say to the library, and what they print of the real one's trace."""

import csv
import os
import re
import subprocess
import sys

import pytest
from conftest import PRELUDE, PYTHON_FOLDER, run_program
from test_recorder import ALLOCATE, COMMAND, LIBRARY, driver  # noqa: F401, a fixture

MODEL = """
class Model:
    def named_parameters(self): return []
"""

LOOP = MODEL + """
profiler = memtrace.memory_profiler(Model(), print_period=PERIOD, csv=True)
for epoch in range(2):
    for batch in range(4):
        allocate(1000000 * (1 + batch))
        profiler.record_stats()
    profiler.epoch_end()
    print("end of epoch", epoch)
profiler.record_stats()
"""

needs_build = pytest.mark.skipif(not (LIBRARY.exists() and COMMAND.exists()), reason="no build")


def test_calls(recorded):
    result = recorded(MODEL + """
        profiler = memtrace.memory_profiler(Model(), 3)
        profiler.record_stats(); profiler.record_stats(); profiler.epoch_end(); profiler.record_stats()
    """.replace("\n        ", "\n"))
    assert result.calls == ["epoch 1", "step 1", "step 2", "step 3", "epoch 2", "step 4"]
    assert result.output == ""


@pytest.mark.parametrize("period, error", [("0", "ValueError"), ("-1", "ValueError"), ("1.5", "TypeError"), ("None", "TypeError")])
def test_bad_period(unrecorded, period, error):
    unrecorded(MODEL + f"""
try:
    memtrace.memory_profiler(Model(), print_period={period})
except {error}: pass
else: raise SystemExit("no error")
""")


def test_bad_model(unrecorded):
    unrecorded("""
        try: memtrace.memory_profiler("model")
        except TypeError as e: assert str(e) == "the model must be a torch.nn.Module, not str", e
        else: raise SystemExit("no error")
    """)


def run_plain(program, tmp_path, **variables):
    """Runs a program that may write on standard error."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("LD_PRELOAD", "MEMTRACE_"))}
    environment.update(variables, PYTHONPATH=str(PYTHON_FOLDER))
    return subprocess.run([sys.executable, "-c", PRELUDE + program], env=environment, cwd=str(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)


def test_without_recorder(tmp_path):
    done = run_plain(MODEL + """
for i in range(2):
    profiler = memtrace.memory_profiler(Model(), csv=True)
    profiler.record_stats()
    profiler.epoch_end()
""", tmp_path)
    assert done.returncode == 0 and done.stdout == ""
    assert re.fullmatch(r"memtrace\.memory_profiler: this program is not recorded, .*; start it with: memtrace run -- python3 -c\n", done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_without_trace(fake_library, tmp_path):
    """The stand-in writes no trace, as the library does before the first CUDA call. That is said once, and ends nothing."""
    done = run_plain(MODEL + """
profiler = memtrace.memory_profiler(Model())
for i in range(3):
    profiler.record_stats()
    profiler.epoch_end()
""", tmp_path, LD_PRELOAD=str(fake_library))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "memtrace.memory_profiler: the program made no CUDA call yet, so there is no trace to show\n"


@needs_build
@pytest.mark.parametrize("spools", ["", "spools"])
def test_tables(driver, tmp_path, monkeypatch, spools):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    environment = {"MEMTRACE_OUTPUT": str(tmp_path / "a trace.bin"), "TEST_DRIVER": str(driver)}
    if spools:
        environment["MEMTRACE_SPOOL_DIR"] = str(tmp_path / spools)
        (tmp_path / spools).mkdir()
    output = run_program(ALLOCATE + LOOP.replace("PERIOD", "2"), tmp_path, LIBRARY, environment).output
    shown = re.findall(r"^(?:Memory Usage for )?(Iteration \d of Epoch \d|end of epoch \d)$", output, re.M)
    assert shown == ["Iteration 2 of Epoch 1", "Iteration 4 of Epoch 1", "end of epoch 0", "Iteration 2 of Epoch 2", "Iteration 4 of Epoch 2", "end of epoch 1"]
    assert len(re.findall(r"^\*{43}$", output, re.M)) == 8
    assert re.findall(r"^Peak cached\.+(\d+ MB)$", output, re.M) == ["3 MB", "10 MB", "13 MB", "20 MB"]  # nothing is freed
    (table,) = (tmp_path / "memory_csv_data").iterdir()
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["epoch"], row["iteration"]) for row in rows] == [("1", "2"), ("1", "4"), ("2", "2"), ("2", "4")]
    assert list(rows[0]) == ["epoch", "iteration", "peak_cached", "current_cached", "total_feature_map_usage", "total_weight_usage", "total_layer_weight_gradient_usage", "intermediate_gradients"]


@needs_build
def test_end_of_the_program(driver, tmp_path, monkeypatch):  # noqa: F811
    """Iterations after the last epoch_end are shown when the program ends, by the parent only."""
    monkeypatch.chdir(tmp_path)
    program = ALLOCATE + MODEL + """
profiler = memtrace.memory_profiler(Model())
allocate(1000)
profiler.record_stats()
child = os.fork()
if child == 0:
    raise SystemExit(0)
os.waitpid(child, 0)
"""
    output = run_program(program, tmp_path, LIBRARY, {"MEMTRACE_OUTPUT": str(tmp_path / "t.%p.bin"), "TEST_DRIVER": str(driver)}).output
    assert re.findall(r"Iteration \d of Epoch \d", output) == ["Iteration 1 of Epoch 1"]


@needs_build
def test_command_that_fails(driver, tmp_path, monkeypatch):  # noqa: F811
    """What the command says goes to standard error, once, and the program goes on."""
    monkeypatch.chdir(tmp_path)
    done = run_plain(ALLOCATE + LOOP.replace("PERIOD", "1") + """
import memtrace._profiler
memtrace._profiler.find_command = lambda: "/bin/false"
profiler.epoch_end()
profiler.record_stats()
profiler.epoch_end()
""", tmp_path, LD_PRELOAD=str(LIBRARY), MEMTRACE_OUTPUT=str(tmp_path / "t.bin"), TEST_DRIVER=str(driver))
    assert done.returncode == 0
    assert done.stderr == "memtrace.memory_profiler: /bin/false ended with status 1\n"
