#!/usr/bin/env python3
"""Compares the unwinder's rows with readelf's, over whole libraries: at the first and the last byte that each row of each function holds for.

Usage: scripts/check-rows.py [--every N] LIBRARY...   only every Nth function
Needs gcc and readelf. Prints, per library, how many addresses were compared, which kinds of rows they have, and what differs.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FUNCTION = re.compile(r"^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=[0-9a-f]+ pc=([0-9a-f]+)\.\.([0-9a-f]+)")
ROW = re.compile(r"^[0-9a-f]{16} ")


def build(folder):
    program = os.path.join(folder, "rows_program")
    sources = ["ctest/rows_program.c", "elf/frametable.c", "unwind/unwindrow.c", "unwind/expression.c"]
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "cshim"]
    subprocess.run([os.environ.get("CC", "gcc"), *flags, *(ROOT / "cshim" / s for s in sources), "-o", program], check=True)
    return program


def rows_of(library, every):
    """Yields (first address, last address, {column: rule}) for each row of every Nth function."""
    command = ["readelf", "--wide", "--debug-dump=frames-interp", library]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace") as dump:
        count, function, columns, pending = 0, None, [], None
        for line in dump.stdout:
            found = FUNCTION.match(line)
            if found or not line.strip() or "CIE" in line:
                if pending and function:
                    yield pending[0], function[1] - 1, pending[1]
                function, columns, pending = None, [], None
            if found:
                count += 1
                if count % every == 0:
                    function = int(found[1], 16), int(found[2], 16)
            elif function and line.lstrip().startswith("LOC"):
                columns = line.split()[1:]
            elif function and ROW.match(line):
                fields = line.replace(" (", "(").split()  # a register reads r3 (rbx)
                location, rules = int(fields[0], 16), dict(zip(columns, fields[1:]))
                if pending and location > pending[0]:
                    yield pending[0], location - 1, pending[1]
                pending = location, rules


def expected(rules):
    """What readelf's rules mean to the unwinder: (CFA, frame pointer, return address), or why it ends."""
    caller, cfa, bp = rules.get("ra", "u"), rules["CFA"], rules.get("rbp", "u")
    if caller == "u":
        return "outermost"
    return cfa, {"u": "rbp+0", "s": "rbp+0"}.get(bp, bp), caller


def plain(value):
    """*(c-16)+0 is what readelf writes as c-16, a word saved there."""
    saved = re.match(r"^\*\(c([+-]\d+)\)\+0$", value)
    return f"c{saved[1]}" if saved else value


def agree(rules, answer):
    want, kind = expected(rules), answer[0]
    if want == "outermost" or kind == "outermost":
        return want == kind
    cfa, bp, caller = want
    other = not cfa.startswith(("rsp", "rbp", "exp"))
    if kind == "realigned":
        return other and bp == "exp"
    if kind == "unsupported":
        return other or "exp" in want or bp.startswith(("r", "v"))
    if kind != "step":
        return False
    have = [plain(v) for v in answer[1:]]
    return all(w == h or w in ("exp", "vexp") for w, h in zip(want, have))


def describe(rules, answer):
    if answer[0] != "step":
        return f"{answer[0]} (CFA {re.sub('[-+].*', '', rules['CFA'])})" if answer[0] != "outermost" else "outermost"
    cfa = answer[1]
    base = "expression: " + re.sub(r"[-+]\d+", "", cfa) if rules["CFA"] == "exp" or "*" in cfa else re.sub(r"[-+].*", "", cfa)
    return f"CFA by {base}" + (", frame pointer by expression" if rules.get("rbp") == "exp" else "")


def check(program, library, every):
    with tempfile.NamedTemporaryFile("w+") as questions, tempfile.NamedTemporaryFile("w+") as rows:
        for first, last, rules in rows_of(library, every):
            for address in {first, last}:
                questions.write(f"{address:x}\n")
                rows.write(" ".join(f"{k}={v}" for k, v in rules.items()) + "\n")
        questions.flush(), rows.flush(), questions.seek(0), rows.seek(0)
        with subprocess.Popen([program, library], stdin=open(questions.name), stdout=subprocess.PIPE, text=True) as answers:
            kinds, compared, different = collections.Counter(), 0, []
            for question, row, answer in zip(questions, rows, answers.stdout):
                rules = dict(field.split("=", 1) for field in row.split())
                answer = answer.split()
                compared += 1
                kinds[describe(rules, answer)] += 1
                if not agree(rules, answer):
                    different.append(f"{question.strip()}: {row.strip()}: {' '.join(answer)}")
    print(f"{os.path.basename(library)}: {compared} addresses compared, {len(different)} differ")
    for kind, count in kinds.most_common():
        print(f"  {100 * count / max(compared, 1):7.3f} % {kind}")
    for line in different[:10]:
        print("  differs at", line)
    return compared > 0 and not different


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="compare only every Nth function")
    parser.add_argument("library", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder)
        good = [check(program, library, options.every) for library in options.library]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
