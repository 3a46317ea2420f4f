"""Ends of programs whose threads for backward passes still work."""
import pathlib
import time


def _sleep():
    """Reports whether each of the threads waits for something."""
    fields = (stat.read_text().replace("(", ")").split(")") for stat in pathlib.Path("/proc/self/task").glob("*/stat"))
    return all(state.split()[0] == "S" for _, name, state in fields if name.startswith("pt_autograd"))


def wait():
    """Returns when the threads have given up the objects of their last pass. PyTorch 2.15 aborts, with the library and without, if the interpreter ends before that."""
    quiet = 0
    while quiet < 10:
        quiet = quiet + 1 if _sleep() else 0
        time.sleep(0.01)
