"""Checks entries.def against the typedef header of the CUDA toolkit.

Usage: abi_driver.py ENTRIES_DEF CUDATYPEDEFS_H

Every row must name an ABI that the header declares, with the same version, and
no version that the null driver plays by default may be missing for a name that
has rows. Prints how many rows there are and how many failures; exit status 1 when any failed.
"""
import re
import sys

DEFAULT_DRIVER = 13000
ROW = re.compile(r'^(IMPLEMENTED|PER_THREAD|ACCEPTED|REFUSED|LEGACY)\("(\w+)", (\d+), (\w+)(?:, (\w+))?\)$')
TYPEDEF = re.compile(r'\bPFN_(cu\w+?)_v(\d+)(_pt[ds][sz]z?)?\)')
# Not in that header: declared by cudaProfiler.h, or an alias that cuda.h makes.
ELSEWHERE = {('cuProfilerStart', 4000, False), ('cuProfilerStop', 4000, False), ('cuGraphInstantiate', 12000, False),
             ('cuCtxCreate', 12050, False)}


def main(entries_path, header_path):
    declared = {(name, int(version), bool(suffix)) for name, version, suffix in TYPEDEF.findall(open(header_path).read())}
    rows, names, failures = set(), [], []
    for number, line in enumerate(open(entries_path), 1):
        if line.startswith('//'):
            continue
        match = ROW.match(line.rstrip())
        if not match:
            failures.append(f'line {number}: not a row: {line.rstrip()}')
            continue
        kind, name, version, _, _ = match.groups()
        rows.add((name, int(version), kind == 'PER_THREAD'))
        names.append(name)
    if names != sorted(names):
        failures.append('rows are not sorted by name')
    for row in sorted(rows - declared - ELSEWHERE):
        failures.append(f'{row[0]} version {row[1]}{" per thread" if row[2] else ""} is not in the header')
    for row in sorted(declared - rows):
        if row[0] in names and row[1] <= DEFAULT_DRIVER:
            failures.append(f'{row[0]} version {row[1]}{" per thread" if row[2] else ""} has no row')
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f'abi_driver.py: {len(names)} rows, {len(failures)} failed')
    return 1 if failures or not rows else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:3]))
