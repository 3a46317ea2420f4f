"""Make stand-ins for the vendor libraries that a set of shared objects needs.

    stubs.py OUT [--version FAMILY=X.Y.Z ...] [--also SONAME ...] [--by-name] ROOT...

ROOT is a shared object or a folder of them, such as an installed wheel. Every
vendor library that one of them links to (and every SONAME) gets a stub in OUT
with the soname and symbol versions that they ask for. A function is either
written by hand in stubs/FAMILY.c or answers 0, "success"; functions that make a
handle (the family's `makes` pattern) also store one through their first
argument, and those of stubs/sizes.txt a size. libcuda, libcudart and libnvidia-ml are not stubs and are left alone.

Prints one line per library on stdout: what was stubbed, how much by hand.
Exits 2 when something cannot be read or built.
"""
import argparse
import collections
import dataclasses
import mmap
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent / "stubs"


@dataclasses.dataclass(frozen=True)
class Family:
    """A vendor library: which sonames and symbols are its own."""
    name: str
    symbols: str        # pattern of the functions it owns
    version: str        # of the stand-in, unless --version says otherwise
    makes: str = r"$^"  # pattern of the functions that store a handle through argument 1
    soname: str = ""    # pattern after "lib", where it is not the name itself
    brings: str = ""    # the family whose library this one links to, for those that link to this one only

    def owns(self, soname):
        return re.match(rf"lib(?:{self.soname or re.escape(self.name)})\.so(\.|$)", soname) is not None


FAMILIES = [
    Family("cublas", r"cublas(?!Lt|Xt)", "12.6.4", brings="cublasLt"),
    Family("cublasLt", r"cublasLt", "12.6.4", makes=r"cublasLt\w+Create$"),
    Family("cudnn", r"cudnn", "9.5.1", makes=r"cudnnCreate", soname=r"cudnn(_\w+)?"),
    Family("cufft", r"cufft", "11.3.0", soname="cufftw?"),
    Family("curand", r"curand", "10.3.7", makes=r"curandCreate"),
    Family("cusolver", r"cusolver", "11.7.1", makes=r"cusolver\w*Create", soname="cusolver(Mg)?"),
    Family("cusparse", r"cusparse(?!Lt)", "12.5.4", makes=r"cusparse(Create|\w+_createDescr$)"),
    Family("cusparseLt", r"cusparseLt", "0.6.3"),
    Family("cutensor", r"cutensor", "2.0.0", makes=r"cutensorCreate", soname="cutensor(Mg)?"),
    Family("nccl", r"p?nccl", "2.26.2"),
    Family("nvrtc", r"nvrtc", "12.6.0", soname="nvrtc(-builtins)?"),
    Family("nvJitLink", r"(__)?nvJitLink", "12.6.0", makes=r"(__)?nvJitLinkCreate"),
    Family("nvToolsExt", r"nvtx", "1.0.0"),
    Family("cupti", r"cupti", "12.6.0"),
    Family("cufile", r"cuFile", "1.11.1"),
    Family("nvshmem_host", r"nvshmem", "3.2.5"),
]
# Repaired wheels carry libraries of their own, with a part of their digest in the name.
OURS = re.compile(r"lib(cuda|cudart|nvidia-ml)(-[0-9a-f]{8})?\.so")
STRINGS = re.compile(r"(Get(Error|Status|Result)(String|Name)|GetLastError)$")


def fail(message):
    sys.exit(f"stubs: {message}")


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        fail(f"{' '.join(command[:2])} failed: {done.stderr.strip() or done.returncode}")
    return done.stdout


def shared_objects(roots):
    """The ELF files below the roots that look like shared objects."""
    for root in map(pathlib.Path, roots):
        if not root.exists():
            fail(f"{root}: no such file or folder")
        candidates = [root] if root.is_file() else sorted(root.rglob("*.so*"))
        for path in candidates:
            if path.is_file():
                with path.open("rb") as file:
                    if file.read(4) == b"\x7fELF":
                        yield path


def needs_of(path):
    """The sonames that an object links to, its undefined symbols as {(name, version)}, version "" if none."""
    sonames = set(re.findall(r"\(NEEDED\).*\[(.+?)\]", output_of("readelf", "-dW", path)))
    undefined = set()
    for line in output_of("nm", "-D", "--undefined-only", path).splitlines():
        name, _, version = line.split()[-1].partition("@")
        undefined.add((name, version.lstrip("@")))
    return sonames, undefined


# A word of at least 5 letters that is a string of its own and may be a function's name.
NAME = re.compile(rb"(?<=\0)[A-Za-z_]\w{4,}(?=\0)")


def names_in(path):
    """{(name, "")} of the strings in an object that could be functions' names."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return {(found.group().decode(), "") for found in NAME.finditer(data)}


def family_of(soname):
    return next((family for family in FAMILIES if family.owns(soname)), None)


def version_of(soname, family, versions):
    """What the stub says it is: as told, else the default, with the soname's major number if that differs."""
    if family.name in versions:
        return versions[family.name]
    major = re.search(r"\.so\.(\d+)", soname)
    if major and int(major[1]) >= 8 and not family.version.startswith(major[1] + "."):
        return major[1] + ".0.0"
    return family.version


def symbols_for(soname, family, undefined):
    """{version: names} of what this library must define. A library of the same family with another
    soname keeps the versions that name it."""
    symbols = collections.defaultdict(set)
    for name, version in undefined:
        if re.match(family.symbols, name) and (version == soname or not version.startswith("lib")):
            symbols[version].add(name)
    return symbols


def load_sizes():
    """[(pattern, C type, positions)] of stubs/sizes.txt."""
    lines = (HERE / "sizes.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return [(re.compile(pattern), of, [int(position) for position in positions]) for pattern, of, *positions in rows]


def answer_sizes(name, of, positions):
    """A function all of whose arguments are integers or pointers, which sets some of those to 0."""
    arguments = ", ".join(f"intptr_t a{i}" for i in range(1, max(positions) + 1))
    body = " ".join(f"if (a{position}) *({of} *)a{position} = 0;" for position in positions)
    return f"STUB int {name}({arguments}) {{ {body} return 0; }}"


def placeholder(family, name, sizes):
    for pattern, of, positions in sizes:
        if pattern.fullmatch(name):
            return answer_sizes(name, of, positions)
    if STRINGS.search(name):
        return f'STUB const char *{name}(void) {{ return "null {family.name}"; }}'
    if re.match(family.makes, name):
        return f"STUB int {name}(void **made) {{ *made = stub_handle(); return 0; }}"
    return f"STUB int {name}(void) {{ return 0; }}"


def compile_object(source, version, path):
    parts = (re.findall(r"\d+", version) + ["0", "0", "0"])[:3]
    defines = [f"-DSTUB_{key}={value}" for key, value in zip(("MAJOR", "MINOR", "PATCH"), parts)]
    output_of("gcc", "-std=gnu11", "-O1", "-fPIC", "-fvisibility=hidden", "-fno-builtin", f"-I{HERE}", *defines,
              "-c", source, "-o", path)


def defined_in(path):
    return {line.split()[-1] for line in output_of("nm", "-g", "--defined-only", path).splitlines()}


def version_script(symbols, by_hand):
    """One node per version asked for; hand-written functions nobody asked for go to the first."""
    nodes = sorted(version for version in symbols if version)
    if not nodes:
        return None
    first, text = nodes[0], []
    for node in nodes:
        names = set(symbols[node])
        if node == first:
            names |= symbols.get("", set()) | by_hand - set().union(*symbols.values())
        text.append(f"{node} {{ global: {' '.join(f'{name};' for name in sorted(names))}"
                    f"{' local: *;' if node == first else ''} }};")
    return "\n".join(text) + "\n"


def build(out, soname, family, version, symbols, links=()):
    """Writes OUT/soname, linked to the stubs in links; returns how many functions are written by hand and how many in all."""
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        hand = HERE / f"{family.name}.c"
        objects, by_hand = [], set()
        if hand.exists():
            compile_object(hand, version, work / "hand.o")
            objects.append(work / "hand.o")
            by_hand = defined_in(work / "hand.o")
        wanted = set().union(*symbols.values()) if symbols else set()
        sizes = load_sizes()
        lines = ['#include "stub.h"'] + [placeholder(family, name, sizes) for name in sorted(wanted - by_hand)]
        (work / "rest.c").write_text("\n".join(lines) + "\n")
        compile_object(work / "rest.c", version, work / "rest.o")
        objects.append(work / "rest.o")
        flags = []
        if script := version_script(symbols, by_hand):
            (work / "versions").write_text(script)
            flags = [f"-Wl,--version-script={work / 'versions'}"]
        # Replaced in one step: a program may have the old one mapped.
        fresh = out / f".{soname}.{os.getpid()}"
        output_of("gcc", "-shared", f"-Wl,-soname,{soname}", "-Wl,-Bsymbolic", *flags, "-o", fresh, *objects,
                  "-Wl,--no-as-needed", *(out / name for name in links))
        fresh.replace(out / soname)
        return len(wanted & by_hand), len(wanted)


def brought_by(sonames, undefined):
    """{soname: the soname of a library that it has to link to, because somebody needs its functions and nobody links to it}."""
    brought = {}
    for soname in sonames:
        family = family_of(soname)
        for other in FAMILIES if family else ():
            if other.name == family.brings and not any(other.owns(name) for name in sonames) and any(re.match(other.symbols, name) for name, _ in undefined):
                brought[soname] = soname.replace(family.name, other.name)
    return brought


def make(out, roots, versions=None, also=(), by_name=False):
    """Builds every stub that the objects below roots need. Returns report lines and the CUDA libraries
    that are needed but are no stubs."""
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    sonames, undefined = set(also), set()
    for path in shared_objects(roots):
        needed, symbols = needs_of(path)
        sonames |= needed
        undefined |= names_in(path) if by_name else symbols
    brought = brought_by(sonames, undefined)
    report = []
    for soname in (*brought.values(), *sorted(sonames)):
        if family := family_of(soname):
            version = version_of(soname, family, versions or {})
            links = [brought[soname]] if soname in brought else []
            hand, total = build(out, soname, family, version, symbols_for(soname, family, undefined), links)
            report.append(f"{soname}: {total} functions, {hand} by hand, says {version}")
    return report, sorted(soname for soname in sonames if OURS.match(soname))


def main():
    parser = argparse.ArgumentParser(description="Stand-ins for vendor libraries that shared objects need.")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("roots", nargs="+", metavar="ROOT")
    parser.add_argument("--version", action="append", default=[], metavar="FAMILY=X.Y.Z")
    parser.add_argument("--also", action="append", default=[], metavar="SONAME", help="stub this library too")
    parser.add_argument("--by-name", action="store_true", help="functions are those whose names stand in the objects")
    options = parser.parse_args()
    versions = dict(item.split("=", 1) for item in options.version)
    if unknown := set(versions) - {family.name for family in FAMILIES}:
        parser.error(f"unknown family {', '.join(sorted(unknown))}; known: {', '.join(f.name for f in FAMILIES)}")
    if unknown := [soname for soname in options.also if not family_of(soname)]:
        parser.error(f"{', '.join(unknown)}: of no known family")
    report, _ = make(options.out, options.roots, versions, options.also, options.by_name)
    print("\n".join(report))


if __name__ == "__main__":
    main()
