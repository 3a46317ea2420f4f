"""Writes the table of what CUDA's headers declare: facts, one function a line.

    make.py CUDA_INCLUDE_FOLDER... > cuda.txt

The folders are those of one version each; pip has them as nvidia-cuda-runtime-cu11
(11.8.89), nvidia-cuda-runtime-cu12 (12.9.79) and nvidia-cuda-runtime (13.5.37).
Columns: level (driver, runtime), exported symbol, base name that cuGetProcAddress
knows ("-" for the runtime), CUDA version under which the base has this ABI (0 where
the headers do not say), variant (2: per-thread default stream), then the versions of
CUDA whose headers declare it.
"""
import pathlib
import re
import sys

DECLARED = re.compile(r"\bCUresult\s+CUDAAPI\s+(cu\w+)\s*\(")
RENAMED = re.compile(r"^\s*#define\s+(cu\w+)\s+(?:__CUDA_API_PT[DS][SZ]Z?\()?(cu\w+?)\)?\s*$", re.M)
TYPEDEF = re.compile(r"\bPFN_(cu\w+?)_v(\d+)(_pt[ds][sz]z?)?\)")
RUNTIME = re.compile(r"\bCUDARTAPI(?:_CDECL)?\s+(cuda\w+)\s*\(")
RUNTIME_VARIANT = re.compile(r"#\s*define\s+(cuda\w+)\s+__CUDART_API_(PTDS|PTSZ)\((cuda\w+)\)")
VERSION = re.compile(r"#define CUDA_VERSION (\d+)")


def base_of(symbol):
    match = re.fullmatch(r"(cu\w+?)(_v(\d+))?(_pt[ds]s?z)?", symbol)
    return match.group(1), int(match.group(3) or 1), match.group(4) or ""


def driver(cuda_h, typedefs_h):
    """{symbol: (base, version, variant)}: the n-th ABI of a base name is its n-th version."""
    names = set(DECLARED.findall(cuda_h)) | {new for _, new in RENAMED.findall(cuda_h) if base_of(new)[0] in DECLARED.findall(cuda_h)}
    versions, plain = {}, {}
    for base, version, suffix in TYPEDEF.findall(typedefs_h):
        versions.setdefault((base, suffix), set()).add(int(version))
    for name in names:
        base, number, suffix = base_of(name)
        if not suffix:
            plain.setdefault(base, set()).add(number)
    table = {}
    for base, numbers in plain.items():
        for suffix in ("", "_ptsz", "_ptds"):
            known = sorted(versions.get((base, suffix), ()))
            if suffix and not known:
                continue
            every = sorted(versions.get((base, ""), ()))
            for place, number in enumerate(sorted(numbers)):
                symbol = base + (f"_v{number}" if number > 1 else "") + suffix
                if suffix and len(known) < len(numbers):  # only the later ABIs have the variant
                    place -= len(numbers) - len(known)
                    if place < 0:
                        continue
                version = known[place] if len(known) >= len(numbers) or suffix else every[place] if len(every) == len(numbers) else 0
                table[symbol] = base, version, 2 if suffix else 0
    return table


def declared(folder):
    """The version of CUDA, and its rows."""
    include = pathlib.Path(folder)
    cuda_h = "".join((include / name).read_text() for name in ("cuda.h", "cudaProfiler.h") if (include / name).exists())
    cuda_h = re.sub(r"/\*.*?\*/", "", cuda_h, flags=re.S)
    api_h = re.sub(r"/\*.*?\*/", "", (include / "cuda_runtime_api.h").read_text(), flags=re.S)
    rows = {("driver", symbol, *row) for symbol, row in driver(cuda_h, (include / "cudaTypedefs.h").read_text()).items()}
    rows |= {("runtime", symbol, "-", 0, 2 if re.search("_pt[ds]s?z$", symbol) else 0) for symbol in RUNTIME.findall(api_h)}
    rows |= {("runtime", f"{target}_{suffix.lower()}", "-", 0, 2) for _, suffix, target in RUNTIME_VARIANT.findall(api_h)}
    return int(VERSION.search(cuda_h).group(1)), rows


def main(folders):
    found = {}
    for version, rows in map(declared, folders):
        for row in rows:
            found.setdefault(row, []).append(f"{version // 1000}.{version % 1000 // 10}")
    print("# What CUDA's headers declare, by make.py: level symbol base version variant, and the headers that have it.")
    for row, versions in sorted(found.items()):
        print(*row, *versions)


if __name__ == "__main__":
    main(sys.argv[1:])
