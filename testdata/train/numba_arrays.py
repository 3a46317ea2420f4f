"""Arrays by Numba's CUDA target: device, managed, mapped and pinned memory, copies, and frees that Numba puts off."""
from numba import config, cuda
import numpy

import oracle


def counters():
    """What Numba holds: the memory it counts as allocated, and the frees it has put off."""
    manager = cuda.current_context().memory_manager
    free, total = cuda.current_context().get_memory_info()
    kinds = {}
    for memory in manager.allocations.values():
        kind = type(memory).__name__
        kinds[kind] = kinds.get(kind, 0) + memory.size
    return {"0": {**kinds, "put_off": manager.deallocations._size, "put_off_count": len(manager.deallocations), "device_free": free, "device_total": total}}


def main():
    options = oracle.parser(__doc__).parse_args()
    config.CUDA_DEALLOCS_COUNT = 100
    # Numba learns the device's size, and with it how many bytes it may put off, when it first allocates.
    cuda.device_array(1, dtype=numpy.uint8)
    cuda.current_context().memory_manager.deallocations.clear()
    kept = []
    for i in range(options.steps):
        oracle.step()
        with oracle.tag("columns"):
            kept.append(cuda.device_array((500, 700 + i), dtype=numpy.float32))
        kept.append(cuda.to_device(numpy.arange(10_000.0)))
        kept.append(cuda.managed_array(1000, dtype=numpy.float64))
        kept.append(cuda.mapped_array(3000, dtype=numpy.float64))
        kept.append(cuda.pinned_array(5000, dtype=numpy.float64))
        cuda.device_array(100_000, dtype=numpy.uint8)
    first = kept[1].copy_to_host()
    print(f"{options.steps} steps, {len(kept)} arrays, {first.size} numbers copied back")
    oracle.finish(options, kept, synchronize=cuda.synchronize, counters=counters)


if __name__ == "__main__":
    main()
