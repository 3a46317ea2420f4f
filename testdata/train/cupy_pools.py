"""CuPy's pools beside each other: its own, the driver's asynchronous one, managed and pinned memory; each
of them is told apart in the program, which writes what each of them says it holds.

    cupy_pools.py [--pool default|async|managed|none] [--limit BYTES] ...
"""
import cupy

import oracle

NVTX = cupy.cuda.nvtx


def choose(name):
    """The pool's allocator becomes CuPy's, and what the pool says it has in use and holds is returned as a function."""
    if name == "default":
        pool = cupy.get_default_memory_pool()
    elif name == "managed":
        pool = cupy.cuda.MemoryPool(cupy.cuda.malloc_managed)
    elif name == "async":
        pool = cupy.cuda.MemoryAsyncPool()
    else:
        cupy.cuda.set_allocator(None)
        return lambda: (0, 0)
    cupy.cuda.set_allocator(pool.malloc)
    return lambda: (pool.used_bytes(), pool.total_bytes())


def fill(limit):
    """Asks for more than the device has, then for more than the pool may have, and says how that was refused."""
    refused = 0
    pool = cupy.get_default_memory_pool()
    for bound in (0, limit):
        pool.set_limit(size=bound)
        try:
            cupy.empty(1 << 40, dtype=cupy.uint8)
        except cupy.cuda.memory.OutOfMemoryError as error:
            refused += 1
            print("refused:", "limit" if "limit" in str(error) and bound else "device")
    pool.set_limit(size=0)
    return refused


def work(steps):
    """Arrays that stay, made in NVTX ranges and in a tag of the program's own."""
    kept = []
    for i in range(steps):
        oracle.step()
        with oracle.tag("inputs"):
            kept.append(cupy.zeros((512, 500), dtype=cupy.float32))
        NVTX.RangePush("solve")
        kept.append(cupy.empty(1 << (16 + i % 4), dtype=cupy.float32))
        dropped = cupy.empty(300_000, dtype=cupy.float64)
        NVTX.RangePop()
        del dropped
    return kept


def main():
    parser = oracle.parser(__doc__.splitlines()[0])
    parser.add_argument("--pool", choices=("default", "async", "managed", "none"), default="default")
    parser.add_argument("--limit", type=oracle.positive, help="afterwards run into the device's end, and into a pool's limit of so many bytes")
    options = parser.parse_args()
    pinned = cupy.cuda.PinnedMemoryPool()
    cupy.cuda.set_pinned_memory_allocator(pinned.malloc)
    sizes = choose(options.pool)
    kept = work(options.steps)
    host = [cupy.cuda.alloc_pinned_memory(100_000), cupy.cuda.alloc_pinned_memory(5_000_000)]
    if options.limit:
        fill(options.limit)

    def counters():
        used, held = sizes()
        return {"0": {"used": used, "held": held, "arrays": sum(a.nbytes for a in kept), "pinned": sum(m.mem.size for m in host)}}

    oracle.finish(options, kept, host, synchronize=cupy.cuda.runtime.deviceSynchronize, counters=counters)


if __name__ == "__main__":
    main()
