"""Print what an interpreter says about the lines of code objects, one code object a line:

    KIND FIRSTLINE CODEBYTES TABLE START:LINE,...

KIND is the number of trace.LineTable, TABLE hexadecimal ("-": empty), and each START:LINE says that from byte START of the bytecode on the line is LINE ("-":
none). Where a line begins anew is not told apart from where it goes on.

    lines.py FILE...        of these sources; see program.txt
    lines.py --library [N]  of every Nth module, 1 if left out, of the standard library
"""
import dis
import glob
import os
import re
import sys
import types


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def starts(code):
    """(start, line or None) where the line changes."""
    if sys.version_info < (3, 10):
        return list(dis.findlinestarts(code))
    found = []
    for start, _, line in code.co_lines():
        if not found or found[-1][1] != line:
            found.append((start, line))
    return found


def describe(code):
    if sys.version_info < (3, 10):
        kind, table = 1, code.co_lnotab
    else:
        kind, table = 2 if sys.version_info < (3, 11) else 3, code.co_linetable
    changes = ",".join("%d:%s" % (start, "-" if line is None else line) for start, line in starts(code))
    print(kind, code.co_firstlineno, len(code.co_code), table.hex() or "-", changes or "-")


def library(step):
    """The modules are compiled anew: which of them have a compiled file depends on what the interpreter has run."""
    folder = os.path.dirname(os.__file__)
    found = [path for path in glob.glob(folder + "/**/*.py", recursive=True) if "-packages" not in path]
    for path in sorted(found)[::step]:
        try:
            with open(path, "rb") as file:
                yield compile(file.read(), path, "exec")
        except (OSError, SyntaxError, ValueError):
            pass  # a link to nowhere; the library's tests have files that are wrong on purpose


def program(path):
    with open(path) as file:
        text = re.sub(r"# (\d+) blank lines\n", lambda match: "\n" * int(match[1]), file.read())
    return compile(text, "program.py", "exec")


def main():
    arguments = sys.argv[1:]
    modules = library(int((arguments + ["1"])[1])) if arguments[0] == "--library" else map(program, arguments)
    for module in modules:
        for code in codes(module):
            describe(code)


main()
