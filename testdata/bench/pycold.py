"""What a code object costs that is seen for the first time, and a stack of known ones that is new.

    pycold.py LIBBURST code|stack TIMES FRAMES

Prints two numbers a line, in nanoseconds: the first event and a second one from the same place.
"""
import ctypes
import sys

from pyrecord import Burst, nested_functions

ONE = 1  # an allocation and a free from one place: the first finds everything new, the second has seen it


def main():
    library, kind, times, frames = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    found = ctypes.CDLL(library)
    found.burst_ticks_per_ns()
    call, names = nested_functions(frames), {}

    def measure(around):
        burst = Burst(ONE, 0, -1, 1)
        around(lambda: call(lambda: found.burst_run(ctypes.byref(burst))))
        return burst

    for _ in range(64):
        measure(lambda do: do())
    for i in range(times):
        exec(compile("\n" * i + f"def fresh_{i}(do):\n    return do()\n", f"fresh_{i}.py", "exec"), names)
        fresh = names[f"fresh_{i}"]
        if kind == "stack":  # the code object becomes known in one place, and is then met in another
            measure(fresh)
            burst = measure(lambda do, fresh=fresh: fresh(do))
        else:
            burst = measure(fresh)
        print(f"{burst.alloc_ns:.0f} {burst.free_ns:.0f}")


if __name__ == "__main__":
    main()
