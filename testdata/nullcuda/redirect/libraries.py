"""The stand-ins for the vendor's libraries that are shipped, which work for frameworks as they are installed.

    libraries.py OUT [--compiler CC]     build them: libraries.txt says which, and what each has
    libraries.py --list SPEC=SITE...     write libraries.txt from what frameworks need: torch==2.7.1=/venv/lib/python3.11/site-packages

Where two frameworks ask for one library, its stand-in has the functions of both, and says the newer version. What a function does, stubs.py has.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import stubs  # noqa: E402
import venv  # noqa: E402

LIST = HERE / "libraries.txt"
HEAD = """# What PyTorch needs of the vendor's libraries, made by libraries.py --list of {0}.
# A library: its name, whose it is, the version that it says. A function: its name, and the symbol version that it is asked for with.
"""


def newer(one, other):
    return max(one, other, key=lambda version: [int(part) for part in re.findall(r"\d+", version)])


def listed(frameworks):
    """The text of libraries.txt."""
    functions, versions = collections.defaultdict(set), {}
    for spec, site in frameworks:
        recipe = venv.recipe_of(spec)
        sonames, undefined = set(recipe.also), set()
        for path in stubs.shared_objects([site]):
            needed, symbols = stubs.needs_of(path)
            sonames |= needed
            undefined |= symbols
        said = {**recipe.versions, **venv.required_versions(pathlib.Path(site), spec)}
        for soname in sonames:
            if family := stubs.family_of(soname):
                version = stubs.version_of(soname, family, said)
                versions[soname] = newer(version, versions.get(soname, version))
                functions[soname] |= {f"{name}@{node}" for node, names in stubs.symbols_for(soname, family, undefined).items() for name in names}
    text = HEAD.format(", ".join(spec for spec, _ in frameworks))
    for soname in sorted(versions):
        text += f"{soname} {stubs.family_of(soname).name} {versions[soname]}\n" + "".join(f"\t{name}\n" for name in sorted(functions[soname]))
    return text


def wanted():
    """[(soname, family, version, {symbol version: names})] of libraries.txt."""
    rows = []
    for line in LIST.read_text().splitlines():
        if line.startswith("\t"):
            name, _, node = line.strip().partition("@")
            rows[-1][3][node].add(name)
        elif not line.startswith("#"):
            soname, family, version = line.split()
            rows.append((soname, next(f for f in stubs.FAMILIES if f.name == family), version, collections.defaultdict(set)))
    return rows


def source(family, names):
    """What answers for functions that are not written by hand, which win over it."""
    sizes = stubs.load_sizes()
    placeholders = [stubs.placeholder(family, name, sizes) for name in sorted(names)]
    return '#include "stub.h"\n#undef STUB\n#define STUB __attribute__((visibility("default"), weak))\n' + "\n".join(placeholders) + "\n"


def build(out, compiler, soname, family, version, symbols):
    nodes = sorted(node for node in symbols if node)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "rest.c").write_text(source(family, set().union(*symbols.values()) if symbols else set()))
        by_hand = stubs.HERE / f"{family.name}.c"
        flags = [f"-DSTUB_{key}={part}" for key, part in zip(("MAJOR", "MINOR", "PATCH"), [*re.findall(r"\d+", version), "0", "0"])]
        if nodes:  # what has no version of its own, the functions by hand that nobody asked for among it, has the first
            lines = [f"{node} {{ global: {' '.join(f'{name};' for name in sorted(symbols[node]))} }};" for node in nodes[1:]]
            (work / "versions").write_text("\n".join([*lines, f"{nodes[0]} {{ *; }};"]) + "\n")
            flags.append(f"-Wl,--version-script={work / 'versions'}")
        fresh = work / soname  # a program may have the old one mapped
        command = [*shlex.split(compiler), "-std=gnu11", "-O1", "-fPIC", "-fvisibility=hidden", "-fno-builtin", f"-I{stubs.HERE}", *flags, "-shared",
                   f"-Wl,-soname,{soname}", "-Wl,-Bsymbolic", "-o", str(fresh), *([str(by_hand)] if by_hand.exists() else []), str(work / "rest.c"),
                   *shlex.split(os.environ.get("LDFLAGS", ""))]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"libraries: {soname}: {done.stderr.strip()}")
        new = out / f".{soname}.{os.getpid()}"
        new.write_bytes(fresh.read_bytes())
        new.chmod(0o755)
        new.replace(out / soname)


def main():
    parser = argparse.ArgumentParser(description="The stand-ins for the vendor's libraries that are shipped.")
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--list", nargs="+", metavar="SPEC=SITE")
    options = parser.parse_args()
    if options.list:
        LIST.write_text(listed([item.rsplit("=", 1) for item in options.list]))
    elif options.out:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda row: build(options.out, options.compiler, *row), wanted()))
    else:
        parser.error("name the folder to build into, or --list")


if __name__ == "__main__":
    main()
