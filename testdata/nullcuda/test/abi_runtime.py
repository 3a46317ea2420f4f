"""Checks the null runtime against the vendor's, whose packages are the oracle.

    abi_runtime.py LIBDIR

For each major version: our struct layouts and error codes against the headers,
our exported symbols against the library's, and how each of the two libraries
reaches the driver. The packages are downloaded into the cache once (6 MB).
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ORACLES = {11: ("nvidia-cuda-runtime-cu11", "11.8.89", "libcudart.so.11.0"),
           12: ("nvidia-cuda-runtime-cu12", "12.9.79", "libcudart.so.12"),
           13: ("nvidia-cuda-runtime", "13.2.75", "libcudart.so.13")}
# Kernels that belong to no context: ours asks for them in every version, the vendor's 11.8 has another way.
OURS_ALONE = {11: {"cuLibraryLoadData", "cuLibraryGetKernel", "cuLibraryUnload"}}
# The vendor's headers ask for this file of the compiler's package, of which only these words matter here.
HOST_DEFINES = """
#pragma once
#define __host__
#define __device__
#define __global__
#define __constant__
#define __managed__
#define __device_builtin__
#define __cudart_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __align__(n) __attribute__((aligned(n)))
#define __cuda_builtin_vector_align8(tag, ...) struct __attribute__((aligned(8))) tag { __VA_ARGS__ }
#define __no_return__ __attribute__((noreturn))
#define __forceinline__ inline
#define __inline__ inline
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define __specialization_static static
"""


def cache():
    if folder := os.environ.get("MEMTRACE_CACHE"):
        return pathlib.Path(folder)
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "memtrace"


def output_of(*command, **environment):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        sys.exit(f"abi_runtime: {command[0]} failed:\n{done.stderr[-3000:]}")
    return done.stdout + done.stderr


def oracle(package, version):
    """The folder of an unpacked vendor package."""
    folder = cache() / "oracles" / f"{package}-{version}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            output_of(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", work, f"{package}=={version}")
            wheel = next(pathlib.Path(work).glob("*.whl"))
            zipfile.ZipFile(wheel).extractall(f"{work}/unpacked")
            pathlib.Path(work, "unpacked").rename(folder)
    return folder


def exports(library):
    """Names of the functions a library exports, which must all carry one version."""
    lines = output_of("nm", "-D", "--defined-only", library).splitlines()
    return {line.split()[2] for line in lines if line.split()[1] == "T"}


def requests(library, work):
    """({(name, version, flags)} asked of the driver, the dlopen and dlsym calls)."""
    lines = output_of(work / "caller", library, LD_LIBRARY_PATH=str(work)).splitlines()
    asked = {tuple(line.split()[1:]) for line in lines if line.startswith("request")}
    links = [line for line in lines if line.startswith(("dlopen libcuda.so", "dlsym cu"))]
    return asked, links


def check(major, ours_dir, work):
    """What is wrong with one major version, as sentences."""
    package, version, soname = ORACLES[major]
    root = oracle(package, version)
    include = next(root.rglob("cuda_runtime_api.h")).parent
    theirs, ours = next(root.rglob(soname)), ours_dir / soname
    problems = []
    done = subprocess.run(["gcc", "-std=gnu11", "-fsyntax-only", "-w", f"-DRT_MAJOR={major}", f"-I{work}", f"-I{include}",
                           HERE / "abi_runtime.c"], capture_output=True, text=True)
    if done.returncode:
        problems += [line for line in done.stderr.splitlines() if "error" in line][:20]
    missing, extra = exports(theirs) - exports(ours), exports(ours) - exports(theirs)
    if missing or extra:
        problems.append(f"exports differ: missing {sorted(missing)}, extra {sorted(extra)}")
    their_requests, their_links = requests(theirs, work)
    our_requests, our_links = requests(ours, work)
    if our_links != their_links:
        problems.append(f"reaches the driver by {our_links}, the vendor's by {their_links}")
    alien = {request for request in our_requests - their_requests if request[0] not in OURS_ALONE.get(major, set())}
    if alien:
        problems.append(f"asks the driver for what the vendor's does not: {sorted(alien)}")
    if len(our_requests) < 100:
        problems.append(f"asked the driver for {len(our_requests)} functions only")
    print(f"CUDA {major}: {len(exports(ours))} exports, {len(our_requests)} of the vendor's {len(their_requests)} driver requests")
    return problems


def main():
    ours_dir = pathlib.Path(sys.argv[1]).resolve()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "crt").mkdir()
        (work / "crt" / "host_defines.h").write_text(HOST_DEFINES)
        output_of("gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", work / "libcuda.so.1", HERE / "route_recorder.c")
        output_of("gcc", "-D_GNU_SOURCE", "-rdynamic", "-o", work / "caller", HERE / "route_caller.c", "-ldl")
        for major in ORACLES:
            problems = check(major, ours_dir, work)
            for problem in problems:
                print(f"CUDA {major}: {problem}", file=sys.stderr)
            failed += bool(problems)
    print(f"abi_runtime: {len(ORACLES) - failed} passed, {failed} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
