"""A folder with packages for PYTHONPATH, beside a framework's environment.

    packages.py [REQUIREMENTS] [--python PYTHON]

Installs what REQUIREMENTS (packages.txt beside this file) pins for that
interpreter, without what the packages ask for: the environment's own PyTorch
serves them, whichever its version. Prints the folder, which lies in the cache and
is named after the pins, so nothing is installed twice. Two callers may race; one
result stays.
"""
import argparse
import contextlib
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

from interpreters import Failure, cache

HERE = pathlib.Path(__file__).resolve().parent


def version_of(python):
    done = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"{python}: does not run as a Python interpreter")
    return done.stdout.strip()


def ensure(requirements, python):
    """Installs what is not there yet and returns the folder."""
    pins = requirements.read_bytes()
    folder = cache() / "packages" / f"{requirements.stem}-{hashlib.sha256(pins).hexdigest()[:12]}-py{version_of(python)}"
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as fresh:
        print(f"packages: installing {requirements.name} (20 to 60 MB)", file=sys.stderr, flush=True)
        command = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--only-binary=:all:", "--target", f"{fresh}/new", "-r", requirements]
        environment = {**os.environ, "PIP_CACHE_DIR": str(cache() / "pip"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        done = subprocess.run([str(part) for part in command], stdout=sys.stderr, env=environment)
        if done.returncode:
            raise Failure(f"pip ended with status {done.returncode}; see above")
        for script in pathlib.Path(fresh, "new", "bin").glob("*"):
            if script.read_bytes()[:2] == b"#!":  # names the temporary folder
                script.unlink()
        with contextlib.suppress(OSError):  # another caller was faster
            os.rename(f"{fresh}/new", folder)
    if not folder.exists():
        raise Failure(f"{folder} could not be made")
    return folder


def main():
    parser = argparse.ArgumentParser(description="A folder with packages for PYTHONPATH.")
    parser.add_argument("requirements", nargs="?", type=pathlib.Path, default=HERE / "packages.txt")
    parser.add_argument("--python", default=sys.executable, help="interpreter to install for; needs pip")
    options = parser.parse_args()
    try:
        print(ensure(options.requirements, options.python))
    except Failure as failure:
        sys.exit(f"packages: {failure}")
    except OSError as error:
        sys.exit(f"packages: {error.strerror}: {error.filename}")


if __name__ == "__main__":
    main()
