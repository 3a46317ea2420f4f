# SPDX-License-Identifier: Apache-2.0
"""Gives a tensor on the device to another process, which opens it and sets the mark "open". Prints who was who."""

import json
import os

import memtrace
import torch

BYTES = 64 << 20  # torch takes a segment of exactly this size for it


def taker(tensors, answers):
    tensor = tensors.get(timeout=60)
    shape = tuple(tensor.shape)
    torch.cuda.synchronize()
    memtrace.mark("open")
    del tensor
    answers.put((os.getpid(), shape))


def main():
    processes = torch.multiprocessing.get_context("spawn")
    tensors, answers = processes.Queue(), processes.Queue()
    other = processes.Process(target=taker, args=(tensors, answers))
    other.start()
    with memtrace.tag("shared"):
        tensor = torch.zeros(BYTES, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    tensors.put(tensor)
    pid, shape = answers.get(timeout=60)
    other.join(30)
    if shape != (BYTES,) or other.exitcode != 0:
        raise SystemExit(f"the other process got {shape} and ended with status {other.exitcode}")
    print(json.dumps({"giver": os.getpid(), "taker": pid, "bytes": BYTES}))


if __name__ == "__main__":
    main()
