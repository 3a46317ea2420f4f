"""Make a libcudart's version script and its placeholder functions.

    exports.py MAJOR NODE OUT.map OUT.c OBJECT...

exports.txt says what each major version exports; what the objects do not
define must be listed in placeholders.txt, so that nothing is pretended by
accident. Exits 1 and names the symbols if a name is in neither, or in both.
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
BODIES = {"accepted": "return rt_done(rt_driver());", "unsupported": "return rt_done(RT_NOT_SUPPORTED);"}


def table(name):
    """The words of each line of a list, comments left out."""
    lines = (HERE / name).read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def defined(objects):
    """Names of the functions that the object files define."""
    out = subprocess.run(["nm", "-g", "--defined-only", *objects], capture_output=True, text=True, check=True).stdout
    return {line.split()[2] for line in out.splitlines() if len(line.split()) == 3}


def write(path, text):
    """Writes a file that appears in one step."""
    fresh = pathlib.Path(f"{path}.{os.getpid()}")
    fresh.write_text(text)
    fresh.replace(path)


def main():
    major, node, map_path, c_path, *objects = sys.argv[1:]
    exported = {name for name, *majors in table("exports.txt") if major in majors}
    placeholders = {name: kind for name, kind in table("placeholders.txt") if name in exported}
    have = defined(objects)
    problems = [f"{name}: neither written nor a placeholder" for name in sorted(exported - have - set(placeholders))]
    problems += [f"{name}: written and a placeholder" for name in sorted(have & set(placeholders))]
    if problems:
        sys.exit("\n".join(problems))
    functions = [f"RT_API {name}(void) {{ {BODIES[kind]} }}" for name, kind in sorted(placeholders.items())]
    write(c_path, "\n".join(['#include "runtime.h"', *functions, ""]))
    names = "\n".join(f"\t\t{name};" for name in sorted(exported))
    write(map_path, f"{node} {{\n\tglobal:\n{names}\n\tlocal:\n\t\t*;\n}};\n")


main()
