"""What one framework event costs its thread below Python frames; the counterpart of record.c, with the same output.

    pyrecord.py LIBBURST THREADS BURSTS FRAMES TOUCHED LEVELS [modules]

FRAMES is how many Python frames the reporting thread has, in functions of their own or, with `modules`, as a framework's nested modules leave them:
three for each. LEVELS native frames are added between Python and the report, -1: none.
"""
import ctypes
import sys
import threading
import time

EVENTS, TOUCHED_EVENTS, WARM_UP, PAUSE_S = 500, 100, 20, 0.004
BASE = 5  # frames of the thread's own start and of this script, above the nested ones


class Burst(ctypes.Structure):
    _fields_ = [("events", ctypes.c_uint32), ("thread", ctypes.c_uint32), ("levels", ctypes.c_int32), ("touched", ctypes.c_uint32),
                ("random", ctypes.c_uint32), ("alloc_ns", ctypes.c_double), ("free_ns", ctypes.c_double)]


class Module:
    """Calls its child as torch.nn.Module does: through two frames that every module shares and one of its own."""

    def __init__(self, child):
        self.child = child

    def _wrapped_call_impl(self, *args, **kwargs):
        return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def forward(self, do):
        return self.child(do)

    __call__ = _wrapped_call_impl


def nested_functions(depth):
    """A function that calls `do` from that many frames, each of a code object of its own."""
    names = {}
    source = ["def level_0(do):\n    return do()\n"]
    source += [f"def level_{i}(do):\n" + "    pass\n" * (i % 5) + f"    return level_{i - 1}(do)\n" for i in range(1, depth)]
    exec(compile("\n".join(source), "nested.py", "exec"), names)
    return names[f"level_{depth - 1}"]


def nested_modules(depth):
    """The same with modules: three frames each."""
    found = Module(lambda do: do())
    for _ in range(depth // 3 - 1):
        found = Module(found)
    return found


def work(run, call, thread, bursts, touched, levels, together, costs):
    for i in range(-WARM_UP, bursts):
        burst = Burst(TOUCHED_EVENTS if touched else EVENTS, thread, levels, touched)
        together.wait()
        call(lambda burst=burst: run(ctypes.byref(burst)))
        if i >= 0:
            costs.append((burst.alloc_ns, burst.free_ns))
        time.sleep(PAUSE_S)


def main():
    library, threads, bursts, frames, touched, levels = sys.argv[1], *map(int, sys.argv[2:7])
    make = nested_modules if sys.argv[7:] == ["modules"] else nested_functions
    call = make(max(frames - BASE, 1))
    found = ctypes.CDLL(library)  # gives up the interpreter lock, so that threads report at the same time
    found.burst_ticks_per_ns()
    together, costs = threading.Barrier(threads), [[] for _ in range(threads)]
    started = [threading.Thread(target=work, args=(found.burst_run, call, i, bursts, touched, levels, together, costs[i])) for i in range(threads)]
    for thread in started:
        thread.start()
    while any(thread.is_alive() for thread in started):
        time.sleep(0.02)  # the main thread stays in Python, where the library compares its walker with the interpreter's own stack
    for row in costs:
        for alloc, free in row:
            print(f"{alloc:.2f} {free:.2f}")


if __name__ == "__main__":
    main()
