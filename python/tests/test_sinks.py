# SPDX-License-Identifier: Apache-2.0
"""Sinks: this process's figures reach a function, wandb and mlflow. Those two are stand-ins here that have the documented calls; TestSinks of internal/e2e has the real ones."""

import sys
import textwrap

import pytest
from conftest import PYTHON_FOLDER, run_program
from test_recorder import ALLOCATE, COMMAND, LIBRARY, driver  # noqa: F401  driver is a fixture

sys.path.insert(0, str(PYTHON_FOLDER))

from memtrace import _figures, sinks  # noqa: E402

TEXT = r"""# TYPE memtrace_memory_bytes gauge
memtrace_memory_bytes{process_pid="7",device="0",hw_id="GPU-a",level="driver"} 2097152
memtrace_memory_bytes{process_pid="7",device="0",hw_id="GPU-a",level="framework"} 1048576
memtrace_memory_bytes{process_pid="8",device="0",hw_id="GPU-a",level="driver"} 5
memtrace_memory_peak_bytes{process_pid="7",device="0",level="driver"} 3e6
memtrace_device_memory_bytes{process_pid="7",device="1"} 11
memtrace_slack_bytes{process_pid="7",device="0"} -12
memtrace_remainder_bytes{process_pid="7",device="0"} 13
memtrace_owner_memory_bytes{process_pid="7",device="0",level="framework",grouping="tag",owner="a \"b\" \\n\n} 1"} 14
memtrace_owner_memory_bytes{process_pid="7",device="0",level="framework",grouping="tag",owner="libx.so"} 15
memtrace_owner_memory_bytes{process_pid="7",device="0",level="driver",grouping="library",owner="libx.so"} 16
memtrace_category_memory_bytes{process_pid="7",device="0",level="framework",category="Feature maps"} 17
memtrace_out_of_memory_total{process_pid="7",outcome="failed"} 2
memtrace_out_of_memory_total{process_pid="7",outcome="recovered"} 9
memtrace_growth_bytes_per_second{process_pid="7"} 1.5
memtrace_growth_bytes{process_pid="7"} 18
memtrace_nvml_up 1
"""

needs_build = pytest.mark.skipif(not (LIBRARY.exists() and COMMAND.exists()), reason="needs a build (make)")


def test_figures():
    assert _figures.figures_of(_figures.parse(TEXT.splitlines()), 7) == {
        "device0/driver_bytes": 2097152, "device0/framework_bytes": 1048576, "device0/driver_peak_bytes": 3e6, "device1/used_bytes": 11, "device0/slack_bytes": -12, "device0/remainder_bytes": 13,
        'device0/owner/a "b" \\n\n} 1': 14, "device0/owner/libx.so": 31, "device0/category/Feature maps": 17, "out_of_memory": 2, "growth_bytes_per_second": 1.5, "growth_bytes": 18}
    assert _figures.figures_of(_figures.parse(TEXT.splitlines()), 9) == {}


@pytest.mark.parametrize("name, expected", [
    ("memtrace/device0/driver_bytes", "memtrace/device0/driver_bytes"), ("owner/../../etc", "owner/__/__/etc"), ("a//b/./c", "a/b/_/c"), ('x:"é\n', "x____"), ("y" * 400, "y" * 250)])
def test_mlflow_names(name, expected):
    assert sinks._mlflow_name(name) == expected


def test_interval():
    with pytest.raises(ValueError, match="shortest is 1 second"):
        sinks.Sink(lambda figures, seconds: None, interval=0.5)


SLOW = """#!/bin/bash
sleep 1
figures() { echo "memtrace_memory_bytes{process_pid=\\"$PPID\\",device=\\"0\\",level=\\"framework\\"} $1"; echo "# EOF"; }
trap 'figures 2; exit' TERM
figures 1
while :; do sleep 0.05; done
"""


def test_the_last_figures_of_a_command_that_starts_slowly(monkeypatch, tmp_path):
    """It was ended before it had begun, and wrote nothing."""
    command = tmp_path / "memtrace"
    command.write_text(SLOW)
    command.chmod(0o755)
    monkeypatch.setattr(_figures, "active", lambda: True)
    monkeypatch.setattr(_figures, "find_command", lambda: str(command))
    sent = []
    _figures.Follower(lambda figures, seconds: sent.append(figures), 1).close()
    assert sent == [{"device0/framework_bytes": 1.0}, {"device0/framework_bytes": 2.0}]


def test_unrecorded(unrecorded):
    result = unrecorded("""
        import threading
        from memtrace.sinks import Sink
        with Sink(lambda figures, seconds: print("sent")):
            print(threading.active_count())
    """)
    assert result.output == "1\n"


FOLLOWED = """
import logging, threading
from memtrace import sinks

logging.basicConfig(format="%(message)s", stream=__import__("sys").stdout)
enough = threading.Event()
"""


def record(program, driver, tmp_path, **files):  # noqa: F811
    """Runs a program under the library; files are modules that it can import."""
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    prelude = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    return run_program(prelude + ALLOCATE + FOLLOWED + textwrap.dedent(program), tmp_path, LIBRARY, {"MEMTRACE_OUTPUT": str(tmp_path / "%p.bin"), "TEST_DRIVER": str(driver)}).output


@needs_build
def test_figures_arrive(driver, tmp_path):  # noqa: F811
    """What is there when the sink is closed is told, also if it came a moment before."""
    output = record("""
        sent = []
        def send(figures, seconds):
            sent.append((figures["x/device0/driver_bytes"], seconds))
            enough.set()
        allocate(3 << 20)
        with sinks.Sink(send, interval=1, prefix="x/"):
            assert enough.wait(900)
            allocate(5 << 20)
        print(sent[0][0] / 2**20, sent[-1][0] / 2**20, all(a[1] <= b[1] for a, b in zip(sent, sent[1:])), threading.active_count())
    """, driver, tmp_path)
    assert output == "3.0 8.0 True 1\n"


@needs_build
def test_failing_service(driver, tmp_path):  # noqa: F811
    output = record("""
        def send(figures, seconds):
            enough.set()
            raise OSError("no network")
        allocate(1 << 20)
        sink = sinks.Sink(send, interval=1)
        assert enough.wait(900)
        sink.close()
        sink.close()
        print("goes on")
    """, driver, tmp_path)
    assert output == "no more figures are sent: OSError: no network\ngoes on\n"


@needs_build
def test_wandb(driver, tmp_path):  # noqa: F811
    """The stand-in has wandb's documented calls: define_metric(name, step_metric, hidden) and log(data, commit)."""
    output = record("""
        import wandb
        wandb.run = wandb.Run(enough)
        allocate(3 << 20)
        with sinks.WandbSink(interval=1, prefix="m/"):
            assert enough.wait(900)
        data = wandb.run.logged[-1]
        print(wandb.run.metrics, data["m/device0/driver_bytes"], sorted(data)[-1], data["m/seconds"] >= 0)
        wandb.run = None
        try:
            sinks.WandbSink()
        except RuntimeError as problem:
            print(problem)
    """, driver, tmp_path, wandb="""
        class Run:
            def __init__(self, enough):
                self.enough, self.metrics, self.logged = enough, [], []
            def define_metric(self, name, step_metric=None, *, hidden=None):
                self.metrics.append((name, step_metric, hidden))
            def log(self, data, step=None, commit=None):
                assert step is None and commit is False
                self.logged.append(data)
                self.enough.set()
    """)
    assert output == ("[('m/seconds', None, True), ('m/*', 'm/seconds', None)] 3145728.0 m/seconds True\n"
                      "there is no run to add to: call wandb.init() first, or give the run\n")


@needs_build
def test_mlflow(driver, tmp_path):  # noqa: F811
    """The stand-in has mlflow's documented calls: active_run(), MlflowClient().log_batch(run_id, metrics) and entities.Metric(key, value, timestamp, step)."""
    (tmp_path / "mlflow").mkdir()
    (tmp_path / "mlflow" / "entities.py").write_text("from collections import namedtuple\nMetric = namedtuple('Metric', 'key value timestamp step')\n")
    (tmp_path / "mlflow" / "__init__.py").write_text(textwrap.dedent("""
        from types import SimpleNamespace
        logged, enough, running = [], None, None
        def active_run():
            return running and SimpleNamespace(info=SimpleNamespace(run_id=running))
        class MlflowClient:
            def log_batch(self, run_id, metrics=(), params=(), tags=()):
                logged.append((run_id, list(metrics)))
                enough.set()
    """))
    output = record("""
        import mlflow, time
        mlflow.enough, mlflow.running = enough, "run7"
        allocate(3 << 20)
        time.time = lambda: 1.5e9
        with sinks.MlflowSink(interval=1):
            assert enough.wait(900)
        run, metrics = mlflow.logged[-1]
        metric, = [m for m in metrics if m.key == "memtrace/device0/driver_bytes"]
        print(run, metric.value, metric.timestamp, type(metric.step).__name__)
        mlflow.running = None
        try:
            sinks.MlflowSink()
        except RuntimeError as problem:
            print(problem)
    """, driver, tmp_path)
    assert output == ("run7 3145728.0 1500000000000 int\n"
                      "there is no run to add to: call mlflow.start_run() first, or give its id\n")
