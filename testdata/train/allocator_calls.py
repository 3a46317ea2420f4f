"""Does to PyTorch's allocator whatever it can be told, and writes what its own snapshot says at marks of memtrace's.

    allocator_calls.py OUTPUT [late]      writes a list of moments as JSON; late: begins to record by itself, late
"""
import json
import random
import sys

import torch

from memtrace import mark, start

moments = []


def note(name):
    mark(name)
    stats = torch.cuda.memory_stats()
    streams, pools, pending = {}, {}, 0
    for segment in torch.cuda.memory_snapshot():
        for block in segment["blocks"]:
            if block["state"] == "active_pending_free":
                pending += block["size"]
            if block["state"] != "active_allocated":
                continue
            for sums, key in ((streams, segment["stream"]), (pools, str(tuple(segment["segment_pool_id"])))):
                row = sums.setdefault(key, [0, 0])
                row[0] += block["size"]
                row[1] += block["requested_size"]
    moments.append({"name": name, "streams": streams, "pools": pools, "pending": pending,
                    "allocated": stats["allocated_bytes.all.current"], "requested": stats["requested_bytes.all.current"]})


def shuffle(streams, live, rounds, chance):
    """Allocates on random streams, lends blocks to others, frees some."""
    for _ in range(rounds):
        with torch.cuda.stream(chance.choice(streams)):
            live.append(torch.empty(chance.randrange(1, 6_000_000), dtype=torch.uint8, device="cuda"))
        if chance.random() < 0.6:
            for stream in chance.sample(streams, chance.randrange(1, 3)):
                chance.choice(live).record_stream(stream)
        if chance.random() < 0.6:
            live.pop(chance.randrange(len(live)))


def main(output):
    chance = random.Random(7)
    torch.cuda.memory._set_allocator_settings("roundup_power2_divisions:8")
    torch.cuda.set_per_process_memory_fraction(0.75)
    keep = torch.empty(1000, device="cuda")
    note("one stream")
    streams = [torch.cuda.current_stream()] + [torch.cuda.Stream() for _ in range(4)]
    live = []
    for step in range(6):
        shuffle(streams, live, 20, chance)
        note(f"streams {step}")
    pools = [torch.cuda.MemPool(), torch.cuda.MemPool()]
    for step in range(4):
        with torch.cuda.use_mem_pool(pools[step % 2]):
            live.append(torch.empty(chance.randrange(1, 9_000_000), dtype=torch.uint8, device="cuda"))
        live.append(torch.empty(chance.randrange(1, 9_000_000), dtype=torch.uint8, device="cuda"))
        note(f"after pool {step}")
    raw = torch.cuda.caching_allocator_alloc(123_456, stream=streams[2])
    note("raw")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        inside = torch.zeros(3_000_000, device="cuda")
        note("captured")
    note("after graph")
    torch.cuda.caching_allocator_delete(raw)
    mark("before emptying")
    before = torch.cuda.memory_reserved()
    live.clear()
    torch.cuda.empty_cache()
    given = before - torch.cuda.memory_reserved()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.5)
    free = [torch.cuda.mem_get_info() for _ in range(3)]
    note("end")
    with open(output, "w", encoding="utf-8") as file:
        json.dump({"moments": moments, "given": given, "free": free, "kept": keep.numel() + inside.numel()}, file)


def late(output):
    """Begins to record when blocks are there, in two streams and a pool."""
    pool, stream = torch.cuda.MemPool(), torch.cuda.Stream()
    live = [torch.empty(1_000_001, device="cuda")]
    with torch.cuda.stream(stream):
        live.append(torch.empty(2_000_001, device="cuda"))
    with torch.cuda.use_mem_pool(pool):
        live.append(torch.empty(3_000_001, device="cuda"))
    start()
    note("started")
    with torch.cuda.stream(stream):
        live.append(torch.empty(4_000_001, device="cuda"))
    live[1].record_stream(torch.cuda.current_stream())
    del live[1]
    note("later")
    with open(output, "w", encoding="utf-8") as file:
        json.dump({"moments": moments, "count": len(live)}, file)


(late if "late" in sys.argv else main)(sys.argv[1])
