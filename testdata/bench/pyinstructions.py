"""The hook path's instructions below Python frames, counted under callgrind.

    pyinstructions.py LIBINSTRUCTIONS NAME FRAMES LEVELS
"""
import ctypes
import sys

from pyrecord import nested_functions

library, name, frames, levels = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
found = ctypes.CDLL(library)
found.instructions_alone()
nested_functions(frames - 3)(lambda: found.instructions_report(name.encode(), levels, False))
