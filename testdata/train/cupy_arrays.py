"""Allocates, copies and frees arrays with CuPy's memory pool."""
import cupy

import oracle


def counters():
    """{device: the pool's bytes in use and held, and what the device reports}."""
    pool = cupy.get_default_memory_pool()
    free, total = cupy.cuda.runtime.memGetInfo()
    return {"0": {"used": pool.used_bytes(), "held": pool.total_bytes(), "device_free": free, "device_total": total}}


def main():
    options = oracle.parser(__doc__).parse_args()
    kept = []
    for i in range(options.steps):
        oracle.step()
        a = cupy.zeros((512, 512), dtype=cupy.float32)
        b = cupy.asarray(a.get())
        kept.append(cupy.empty(1 << (16 + i % 4), dtype=cupy.float32))
        del a, b
    print(f"{options.steps} steps, {counters()['0']['used']} bytes in use")
    oracle.finish(options, kept, synchronize=cupy.cuda.runtime.deviceSynchronize, counters=counters)


if __name__ == "__main__":
    main()
