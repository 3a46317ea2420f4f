"""Trains under both sinks, wandb's offline and mlflow's in a folder, then reads back what these services kept and prints it as JSON, beside PyTorch's own count.

    sinks.py FOLDER
"""
import glob
import json
import os
import struct
import sys
import time

folder = sys.argv[1]
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=folder, WANDB_DATA_DIR=folder, MLFLOW_ALLOW_FILE_STORE="true", HOME=folder)

import mlflow  # noqa: E402
import torch  # noqa: E402
import wandb  # noqa: E402
from torch import nn  # noqa: E402
from wandb.proto import wandb_internal_pb2  # noqa: E402

from memtrace.sinks import MlflowSink, WandbSink  # noqa: E402


def records(path):
    """The records of a run's file: a log of LevelDB's form, in blocks of 32 KiB, behind seven bytes that name it."""
    with open(path, "rb") as file:
        data = file.read()
    at, record = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        size, kind = struct.unpack_from("<HB", data, at + 4)
        record += data[at + 7:at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or its last part
            yield wandb_internal_pb2.Record.FromString(record)
            record = b""


def wandb_rows():
    """The rows of a run that is over. wandb's own process writes them, and on a busy machine it may still do so when finish() has returned: it ends with a record that says so."""
    path, = glob.glob(os.path.join(folder, "wandb", "offline-run-*", "run-*.wandb"))
    for _ in range(3000):  # five minutes, only so that it ends
        kept = list(records(path))
        if any(record.HasField("exit") for record in kept):
            break
        time.sleep(0.1)
    for record in kept:
        if record.HasField("history"):
            yield {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}


mlflow.set_tracking_uri("file://" + os.path.join(folder, "mlruns"))
run = wandb.init(project="memtrace")
net = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)).cuda()
optimizer = torch.optim.Adam(net.parameters())
with mlflow.start_run() as active, WandbSink(run, interval=1), MlflowSink(interval=1):
    for step in range(5):
        loss = net(torch.ones(64, 1024, device="cuda")).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        run.log({"loss": step}, step=10 * step)
    del loss
    torch.cuda.synchronize()
allocated = torch.cuda.memory_allocated()
run.finish()
client = mlflow.MlflowClient()
keys = client.get_run(active.info.run_id).data.metrics
json.dump({"allocated": allocated, "wandb": list(wandb_rows()), "mlflow": keys}, sys.stdout)
