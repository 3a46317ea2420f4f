# SPDX-License-Identifier: Apache-2.0
"""Sends what memtrace knows of this program's GPU memory to experiment trackers while it runs.

    from memtrace.sinks import MlflowSink, WandbSink

    run = wandb.init()
    with WandbSink(run):             # or: sink = WandbSink(run), and sink.close() before run.finish()
        train()

    with mlflow.start_run(), MlflowSink():
        train()

Sink sends to any function. Figures are bytes, under names such as memtrace/device0/framework_bytes, memtrace/device0/slack_bytes, memtrace/device0/category/Parameters,
memtrace/device0/owner/train.py:42 forward, memtrace/growth_bytes, memtrace/growth_bytes_per_second and memtrace/out_of_memory; docs/metrics.md says what they are. The program has to be recorded, as by
`memtrace run -- python train.py`: otherwise a sink does nothing. Nothing that goes wrong in a sink disturbs the program: it is logged as a warning of the logger "memtrace".
"""

from __future__ import annotations

import re
import time

from ._figures import Follower

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Callable, Dict

    Figures = Dict[str, float]

__all__ = ["MlflowSink", "Sink", "WandbSink"]

INTERVAL = 15.0
PREFIX = "memtrace/"

# What MLflow takes in the name of a metric, in all its versions; no more than so many characters, and no parts such as "..".
_NOT_MLFLOW = re.compile(r"[^\w\-. /]", re.ASCII)
_MLFLOW_LENGTH = 250


class Sink:
    """Calls a function with the figures and the seconds since the sink began, every interval of at least a second, on a thread of its own.

    by names what owners are: tag, site, module and so on, as `memtrace top --by`. The last call comes while the sink is closed. Raises ValueError for an interval below a second.
    """

    def __init__(self, send: Callable[[Figures, float], None], *, interval: float = INTERVAL, prefix: str = PREFIX, by: str | None = None) -> None:
        def named(figures: Figures, seconds: float) -> None:
            send({prefix + name: value for name, value in figures.items()}, seconds)

        self._follower = Follower(named, interval, by)

    def close(self) -> None:
        """Sends the last figures and ends. May be called again."""
        self._follower.close()

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class WandbSink(Sink):
    """Adds the figures to a run of Weights & Biases: the one given, or the one that wandb.init() began last.

    They become part of the row that the program logs next, so that they count no steps of their own and stand beside the program's figures of the same moment. Raises ImportError without
    wandb, RuntimeError without a run.
    """

    def __init__(self, run: Any = None, *, interval: float = INTERVAL, prefix: str = PREFIX, by: str | None = None) -> None:
        if run is None:
            import wandb

            run = wandb.run
            if run is None:
                raise RuntimeError("there is no run to add to: call wandb.init() first, or give the run")
        seconds_key = prefix + "seconds"
        run.define_metric(seconds_key, hidden=True)
        run.define_metric(prefix + "*", step_metric=seconds_key)

        def send(figures: Figures, seconds: float) -> None:
            run.log({**figures, seconds_key: seconds}, commit=False)

        super().__init__(send, interval=interval, prefix=prefix, by=by)


class MlflowSink(Sink):
    """Adds the figures to a run of MLflow: the one with the given id, or the active one. Steps are whole seconds since the sink began.

    Characters that MLflow does not take in names become underscores. client is an mlflow.MlflowClient, by default one of the tracking server that is set. Raises ImportError without
    mlflow, RuntimeError without a run.
    """

    def __init__(self, run_id: str | None = None, *, client: Any = None, interval: float = INTERVAL, prefix: str = PREFIX, by: str | None = None) -> None:
        import mlflow
        from mlflow.entities import Metric

        if run_id is None:
            run = mlflow.active_run()
            if run is None:
                raise RuntimeError("there is no run to add to: call mlflow.start_run() first, or give its id")
            run_id = run.info.run_id
        tracking = client if client is not None else mlflow.MlflowClient()

        def send(figures: Figures, seconds: float) -> None:
            now = int(time.time() * 1000)
            named: Figures = {}
            for name, value in figures.items():
                key = _mlflow_name(name)
                named[key] = named.get(key, 0.0) + value  # of names that are the same to MLflow
            tracking.log_batch(run_id, metrics=[Metric(name, value, now, int(seconds)) for name, value in named.items()])

        super().__init__(send, interval=interval, prefix=prefix, by=by)


def _mlflow_name(name: str) -> str:
    """Returns what MLflow takes as a metric's name: it may become a path of files."""
    parts = [part if part.strip(".") else "_" * len(part) for part in _NOT_MLFLOW.sub("_", name).split("/") if part]
    text = "/".join(parts)
    return text if len(text) <= _MLFLOW_LENGTH else text[:_MLFLOW_LENGTH].rstrip("/.")
