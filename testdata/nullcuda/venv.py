"""Make a virtual environment with a framework that runs on the null GPU.

    venv.py torch==2.7.1 [--dir DIR] [--python PYTHON] [--foreign]

Installs the framework without the vendor packages it asks for, and puts stand-ins
for them into DIR/nullcuda: the null driver, runtime and NVML, and stubs for every
other vendor library. Run programs with DIR/bin/nullcuda-run:

    $(venv.py torch==2.7.1)/bin/nullcuda-run python train.py

Prints DIR on stdout, progress on stderr. DIR defaults to a folder of the cache
named after the framework. Nothing is done twice: the packages are installed once,
the libraries are rebuilt when the null GPU's sources change. Two callers of one
DIR wait for each other.
"""
import argparse
import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import relink
import stubs

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CUDA_LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How to install a framework without its vendor packages."""
    module: str
    packages: tuple                  # what it needs besides itself
    versions: dict = dataclasses.field(default_factory=dict)  # of stubs, where the wheel does not say
    also: tuple = ()                 # vendor libraries it opens by name at run time
    by_name: bool = False            # it links to none of them and looks their functions up
    parts: tuple = ()                # packages of the framework itself, of the same version
    roots: tuple = (".",)            # folders of site-packages whose libraries ask for vendor libraries
    edits: tuple = ()                # (file in site-packages, text, its replacement)
    relinked: tuple = ()             # objects of site-packages that have the vendor's runtime inside
    tools: tuple = ()                # of the folder tools: (name there, place in the environment)


TORCH = Recipe("torch", ("numpy<3", "typing_extensions", "sympy", "networkx", "jinja2", "fsspec", "filelock", "setuptools<81"),
               also=("libnvToolsExt.so.1", "libnvJitLink.so.12"))  # the latter for bitsandbytes
# Compiled against the first NumPy's interface.
OLD_TORCH = dataclasses.replace(TORCH, packages=("numpy<2", *TORCH.packages[1:]))
TORCH_1 = dataclasses.replace(OLD_TORCH, relinked=("torch/lib/libc10_cuda.so", "torch/lib/libtorch_python.so", "torch/lib/libtorch_cuda_linalg.so"))
MXNET = Recipe("mxnet", ("numpy==1.23.5", "graphviz<0.9", "requests<3"), {
    "cublas": "11.4.1", "cudnn": "8.1.1", "cufft": "10.4.1", "curand": "10.2.3", "cusolver": "11.1.0",
    "nccl": "2.8.4", "nvrtc": "11.2.0"})
CUPY = Recipe("cupy", ("numpy<1.27", "fastrlock"))
# JAX asks for a GPU's device file before it starts its plugin, compiles for the GPU by itself, and starts an assembler.
JAX = Recipe("jax", ("numpy<3", "ml_dtypes", "opt_einsum", "scipy"),
             {"cublas": "12.9.1", "cublasLt": "12.9.1", "cudnn": "9.12.0", "cufft": "11.4.1", "cusolver": "11.7.5", "cusparse": "12.5.10", "nccl": "2.27.3"},
             also=("libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12", "libcudnn.so.9", "libcufft.so.11", "libcusolver.so.11", "libcusparse.so.12",
                   "libcupti.so.12", "libnccl.so.2", "libnvshmem_host.so.3"),
             by_name=True, parts=("jax", "jaxlib", "jax-cuda12-pjrt"), roots=("jax_plugins", "jax_cuda12_plugin"),
             edits=(("jax/_src/hardware_utils.py", "'/dev/nvidia0'", "'/dev/null'"),),
             tools=(("ptxas", "bin/ptxas"), ("libdevice.ll", "nvvm/libdevice/libdevice.10.bc")))
NUMBA = Recipe("numba.cuda", ("numpy<2.4", "numba==0.64.0", "cuda-bindings==12.9.10", "cuda-core==1.2.2", "cuda-pathfinder==1.9.0", "packaging"), also=("libcudart.so.12",))
RECIPES = [
    (r"torch==1\..+", TORCH_1),
    (r"torch==2\.[0-2]\..+", OLD_TORCH),
    (r"torch==.+", TORCH),
    (r"mxnet-cu112==.+", MXNET),
    (r"cupy-cuda1[12]x==1[12]\..+", CUPY),
    (r"jax-cuda12-plugin==.+", JAX),
    (r"numba-cuda==.+", NUMBA),
]
# What cannot work, and why.
REFUSED = [
    (r"(lib)?rmm-cu\d+==.+", "RMM's packages carry the vendor's own runtime, which needs undocumented parts of the driver; its headers compile against ours (../train/rmm_pools.cpp)"),
    (r"cupy-cuda\w+==.+", "CuPy from 13 on carries the vendor's own runtime, which needs undocumented parts of the driver; take 12.3.0"),
]
# The wheel's own requirements name the vendor libraries' versions.
REQUIRED = re.compile(r"Requires-Dist: nvidia-([a-z-]+?)(?:-cu1\d)? ?\(?==([\d.]+)")
FAMILY_OF = {"cublas": ("cublas", "cublasLt"), "cudnn": ("cudnn",), "cufft": ("cufft",), "curand": ("curand",),
             "cusolver": ("cusolver",), "cusparse": ("cusparse",), "cusparselt": ("cusparseLt",), "nccl": ("nccl",),
             "cuda-nvrtc": ("nvrtc",), "cuda-cupti": ("cupti",), "cufile": ("cufile",), "nvshmem": ("nvshmem_host",)}


class Failure(Exception):
    """Something the caller can act on; the message says what."""


def say(text):
    print(f"venv: {text}", file=sys.stderr, flush=True)


def run(*command, **kwargs):
    """Runs a command with its output on stderr."""
    shown = " ".join(str(part) for part in command[:6] if "\n" not in str(part))
    try:
        done = subprocess.run([str(part) for part in command], stdout=sys.stderr, **kwargs)
    except subprocess.TimeoutExpired:
        raise Failure(f"{shown} ... did not end in {kwargs['timeout']} s") from None
    if done.returncode:
        raise Failure(f"{shown} ... ended with status {done.returncode}; see above")


def cache():
    if folder := os.environ.get("MEMTRACE_CACHE"):
        return pathlib.Path(folder)
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "memtrace"


@contextlib.contextmanager
def locked(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another run that holds {path}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def recipe_of(spec):
    if not re.fullmatch(r"[A-Za-z0-9_-]+==[\w.]+", spec):
        raise Failure(f"{spec}: say a package and its exact version, such as torch==2.7.1")
    for pattern, recipe in RECIPES:
        if re.fullmatch(pattern, spec):
            return recipe
    for pattern, reason in REFUSED:
        if re.fullmatch(pattern, spec):
            raise Failure(f"{spec}: {reason}")
    raise Failure(f"{spec}: no recipe; there are some for torch, mxnet-cu112, cupy-cuda11x, cupy-cuda12x, jax-cuda12-plugin and numba-cuda")


def digest_of_sources():
    """Changes when anything changes that the libraries in DIR/nullcuda are made from."""
    digest = hashlib.sha256()
    for folder in ("driver", "nvml", "shared", "runtime", "stubs", "tools"):
        for path in sorted((HERE / folder).rglob("*")):
            if path.is_file() and path.suffix in (".c", ".h", ".def", ".txt", ".py", ".ll", ""):
                digest.update(f"{path.relative_to(HERE)}\0".encode() + path.read_bytes())
    for name in ("stubs.py", "relink.py", "venv.py", "driver.mk", "cudart.mk"):
        digest.update((HERE / name).read_bytes())
    return digest.hexdigest()


def stamp_of(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def install(directory, spec, recipe, python):
    """The environment with the framework and what it needs, but no vendor package."""
    if directory.exists():
        if any(directory.iterdir()) and not (directory / "pyvenv.cfg").exists():
            raise Failure(f"{directory} is not empty and no virtual environment; choose another --dir")
        shutil.rmtree(directory)
    say(f"creating {directory}")
    run(python, "-m", "venv", directory)
    environment = {**os.environ, "PIP_CACHE_DIR": str(cache() / "pip"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    pip = [directory / "bin" / "python", "-m", "pip", "install", "-q", "--no-compile"]  # of thousands of files programs import a few hundred
    say(f"installing {spec} without its vendor packages (0.2 to 0.8 GB the first time)")
    run(*pip, *recipe.packages, env=environment)
    version = spec.split("==")[1]
    run(*pip, "--no-deps", spec, *(f"{part}=={version}" for part in recipe.parts), env=environment)
    edit(site_packages(directory), recipe)
    without_vendor(site_packages(directory), recipe)


def edit(site, recipe):
    """What the framework asks of the machine and not of CUDA."""
    for name, text, replacement in recipe.edits:
        path = site / name
        before = path.read_text()
        if text not in before:
            raise Failure(f"{path}: has no {text}, which the recipe replaces")
        path.write_text(before.replace(text, replacement))


def without_vendor(site, recipe):
    """The vendor's libraries that the wheel has beside its own would be found before ours of the same name, those inside of its own before any."""
    for path in site.glob("*/lib/lib*.so*"):
        if stubs.OURS.match(path.name):
            path.unlink()
    for name in recipe.relinked:
        if not relink.relink(site / name):
            raise Failure(f"{name}: has no CUDA runtime inside, or not the names of its functions")


def site_packages(directory):
    found = list(directory.glob("lib/python*/site-packages"))
    if len(found) != 1:
        raise Failure(f"{directory}: expected one site-packages folder, found {len(found)}; remove {directory} and try again")
    return found[0]


def required_versions(site, spec):
    """Versions of the vendor libraries that the wheel was made for, by stub family."""
    versions = {}
    name = re.sub(r"[-_.]+", "_", spec.split("==")[0])
    for metadata in site.glob(f"{name}-*.dist-info/METADATA"):
        for package, version in REQUIRED.findall(metadata.read_text(errors="replace")):
            for family in FAMILY_OF.get(package, ()):
                versions[family] = version
    return versions


def build_null_gpu():
    """The driver, NVML and runtimes, in the tree's build folder."""
    say("building the null GPU")
    for fragment, targets in (("driver.mk", ["nullcuda-driver", "nullcuda-nvml"]), ("cudart.mk", ["nullcuda-runtime"])):
        run("make", "-s", "-C", ROOT, "-f", f"testdata/nullcuda/{fragment}", *targets,
            env={key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "NULLCUDA_OUT"))})
    return ROOT / "build" / "nullcuda" / "lib"


RUN_SCRIPT = """#!/bin/sh
# Runs a command of this environment on the null GPU. Made by venv.py.
here=$(CDPATH= cd -- "$(dirname -- "$(readlink -f -- "$0")")/.." && pwd) || exit 2
for vendor in "$here"/lib/python*/site-packages/nvidia/*/lib; do
\tif [ -d "$vendor" ]; then
\t\techo "nullcuda-run: $vendor holds a vendor's library, which would be found before the null one." >&2
\t\techo "nullcuda-run: uninstall that package; install packages that ask for it with pip install --no-deps." >&2
\t\texit 2
\tfi
done
if [ $# -eq 0 ]; then
\techo "usage: nullcuda-run COMMAND [ARGUMENT...]" >&2
\texit 2
fi
LD_LIBRARY_PATH=$here/nullcuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PATH=$here/bin:$PATH
VIRTUAL_ENV=$here
# The stub of cuDNN plans nothing; PyTorch's attention has other ways.
: "${TORCH_CUDNN_SDPA_DEPRIORITIZED=1}"
export LD_LIBRARY_PATH PATH VIRTUAL_ENV TORCH_CUDNN_SDPA_DEPRIORITIZED
exec "$@"
"""


def add_null_gpu(directory, spec, recipe):
    """DIR/nullcuda and DIR/bin/nullcuda-run."""
    site = site_packages(directory)
    with locked(ROOT / "build" / "nullcuda" / ".lock"):
        built = build_null_gpu()
        folder = directory / "nullcuda"
        folder.mkdir(exist_ok=True)
        versions = {**recipe.versions, **required_versions(site, spec)}
        report, needed = stubs.make(folder, [site / root for root in recipe.roots], versions, recipe.also, recipe.by_name)
        for name in sorted({*CUDA_LIBRARIES, *needed}):
            ours = built / re.sub(r"-[0-9a-f]{8}\.so", ".so", name)
            if not ours.exists():
                raise Failure(f"{spec} needs {name}, which the null GPU does not have")
            fresh = folder / f".{name}.new"
            shutil.copyfile(ours, fresh)
            fresh.replace(folder / name)
    # Programs that compile against the driver, as Triton does, name it without a version.
    link = folder / "libcuda.so"
    if not link.is_symlink():
        link.symlink_to("libcuda.so.1")
    for line in report:
        say(f"stub {line}")
    for name, place in recipe.tools:
        (directory / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "tools" / name, directory / place)
    script = directory / "bin" / "nullcuda-run"
    script.write_text(RUN_SCRIPT)
    script.chmod(0o755)


CHECK = """
import importlib, sys
importlib.import_module(sys.argv[1])
maps = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
names = ("libcuda.so", "libcudart", "libcublas", "libcudnn", "libnccl", "libcufft", "libnvidia-ml", "libcusolver", "libcusparse")
wrong = [path for path in maps if path.rsplit("/", 1)[1].startswith(names) and not path.startswith(sys.argv[2])]
if wrong:
    sys.exit("loaded from elsewhere: " + ", ".join(sorted(wrong)))
"""


def check(directory, recipe):
    """The framework loads, and every vendor library in the process is ours."""
    say(f"checking that {recipe.module} loads on it")
    run(directory / "bin" / "nullcuda-run", directory / "bin" / "python", "-c", CHECK, recipe.module, directory / "nullcuda",
        env={**os.environ, "NULLCUDA_SHARED": "none"}, timeout=300)


def ensure(spec, directory=None, python=sys.executable, loads=True):
    """Makes the environment, or brings it up to date, and returns its folder. loads: whether what is built here must load in it, and is tried."""
    recipe = recipe_of(spec)
    version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                             capture_output=True, text=True)
    if version.returncode:
        raise Failure(f"{python}: does not run as a Python interpreter")
    if directory is None:
        directory = cache() / "venvs" / f"{spec.replace('==', '-')}-py{version.stdout.strip()}"
    directory = pathlib.Path(directory).resolve()
    wanted = {"spec": spec, "packages": list(recipe.packages), "python": version.stdout.strip()}
    stamp = directory / "nullcuda.json"
    with locked(directory.parent / f".{directory.name}.lock"):
        have = stamp_of(stamp)
        digest = digest_of_sources()
        if have.get("installed") != wanted:
            install(directory, spec, recipe, python)
            stamp.write_text(json.dumps({"installed": wanted}))
        if have.get("installed") != wanted or have.get("digest") != digest:
            add_null_gpu(directory, spec, recipe)
            if loads:
                check(directory, recipe)
            stamp.write_text(json.dumps({"installed": wanted, "digest": digest}))
    return directory


def main():
    parser = argparse.ArgumentParser(description="A virtual environment whose framework runs on the null GPU.")
    parser.add_argument("spec", help="package and exact version, such as torch==2.7.1")
    parser.add_argument("--dir", type=pathlib.Path, help="where to make it (default: in the cache)")
    parser.add_argument("--python", default=sys.executable, help="interpreter to make it with")
    parser.add_argument("--foreign", action="store_true", help="the interpreter's C library is older than this machine's: nothing is loaded to try it")
    options = parser.parse_args()
    try:
        print(ensure(options.spec, options.dir, options.python, loads=not options.foreign))
    except (Failure, relink.Failure) as failure:
        sys.exit(f"venv: {failure}")
    except OSError as error:
        sys.exit(f"venv: {error.strerror}: {error.filename}")


if __name__ == "__main__":
    main()
