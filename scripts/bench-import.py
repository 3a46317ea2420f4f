#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a PyTorch memory snapshot of many megabytes, imports it, compares the report with the numbers that it was made from, and says what the import took.

    scripts/bench-import.py [MEMTRACE [MEGABYTES]]      build/memtrace and 1000, if not given

The pickle is made of the instructions that PyTorch's own is made of (protocol 4, every object numbered, frames shared, a list of frames for each record), without PyTorch and without holding it in memory.
"""
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time

UNIT = 512
SEGMENT = 0x7F0000000000
SITES, DEPTH = 1000, 24  # distinct frames, and frames in a call stack
LAYERS = 400             # blocks of one step, each of them freed before the next step


class Pickle:
    """Writes instructions and numbers what they make, as Python's pickler does."""

    def __init__(self) -> None:
        self.count = 0
        self.texts: "dict[str, int]" = {}

    def numbered(self, code: bytes) -> bytes:
        self.count += 1
        return code + b"\x94"

    def again(self, number: int) -> bytes:
        return b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)

    def text(self, value: str) -> bytes:
        if value in self.texts:
            return self.again(self.texts[value])
        self.texts[value] = self.count
        data = value.encode()
        return self.numbered(b"\x8c" + bytes([len(data)]) + data)

    @staticmethod
    def number(value: int) -> bytes:
        if value < 256:
            return b"K" + bytes([value])
        if value < 1 << 31:
            return b"J" + struct.pack("<i", value)
        size = value.bit_length() // 8 + 1
        return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)

    def dict(self, pairs: "list[tuple[str, bytes]]") -> bytes:
        return self.numbered(b"}") + b"(" + b"".join(self.text(key) + (value() if callable(value) else value) for key, value in pairs) + b"u"


def write(path: str, megabytes: int) -> "dict[str, int]":
    with open(path, "wb", buffering=1 << 20) as file:
        p = Pickle()
        file.write(b"\x80\x04" + p.numbered(b"}") + b"(" + p.text("segments") + p.numbered(b"]"))
        file.write(p.text("device_traces") + p.numbered(b"]") + p.numbered(b"]"))
        frames: "dict[int, int]" = {}

        def frame(n: int) -> bytes:
            if n in frames:
                return p.again(frames[n])
            frames[n] = p.count
            return p.dict([("name", lambda: p.text(f"function_{n % 500}")), ("filename", lambda: p.text(f"/venv/model/layer_{n % 97}.py")), ("line", p.number(n + 1))])

        def record(action: str, addr: int, size: int, site: int, when: int) -> bytes:
            def stack() -> bytes:
                return p.numbered(b"]") + b"(" + b"".join(frame((site * 7 + k * 31) % SITES) for k in range(DEPTH)) + b"e"
            return p.dict([("action", lambda: p.text(action)), ("addr", p.number(addr)), ("size", p.number(size)), ("stream", b"K\x00"), ("time_us", p.number(1_700_000_000_000_000 + when)),
                           ("frames", stack)])

        allocated = peak = events = 0
        file.write(b"(" + record("segment_alloc", SEGMENT, 64 << 30, 0, 0))
        pending, when, step = 1, 1, 0  # records of the batch that is open
        while file.tell() < megabytes * 1_000_000:
            at, order = SEGMENT, []
            for layer in range(LAYERS):
                size = (layer * 7919 + step % 3) * 131 + 1
                block = (size + UNIT - 1) // UNIT * UNIT
                order.append((at, size, block))
                allocated += block
                peak = max(peak, allocated)
                batch = [("alloc", at, size)]
                at += block
                if layer == LAYERS - 1:
                    for addr, asked, rounded in reversed(order):
                        batch += [("free_requested", addr, asked), ("free_completed", addr, asked)]
                        allocated -= rounded
                for action, addr, asked in batch:
                    file.write(record(action, addr, asked, layer, when))
                    when, events, pending = when + 3, events + 1, pending + 1
                    if pending == 1000:
                        file.write(b"e(")
                        pending = 0
            step += 1
        file.write(b"eau.")
    return {"allocated": allocated, "peak": peak, "reserved": 64 << 30, "events": events}


def main() -> None:
    memtrace = sys.argv[1] if len(sys.argv) > 1 else "build/memtrace"
    megabytes = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "big.pickle"), os.path.join(folder, "big.bin")
        want = write(path, megabytes)
        began = time.monotonic()
        subprocess.run([memtrace, "-q", "import", path, "-o", out], check=True)
        took, peak = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        report = json.loads(subprocess.run([memtrace, "report", "--json", out], check=True, stdout=subprocess.PIPE).stdout)
        got = {"allocated": report["framework"]["live_bytes"], "peak": report["framework"]["peak_bytes"], "reserved": report["driver"]["peak_bytes"]}
        if got != {name: want[name] for name in got}:
            sys.exit(f"the report says {got}, the snapshot was made of {want}")
        print(f"snapshot {os.path.getsize(path) / 1e6:.0f} MB, {want['events']:,} records: imported in {took:.1f} s, at most {peak / 1024:.0f} MiB resident; trace {os.path.getsize(out) / 1e6:.1f} MB; its figures are the snapshot's")


if __name__ == "__main__":
    main()
