#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks memtrace against a real GPU, and says PASS or FAIL for each claim. Ends with "N passed, N failed"; exit status 0 only if none failed.
#
# Needs: an NVIDIA GPU, Python 3.8 or newer with PyTorch for CUDA, and a finished build: build/libmemtrace.so and build/memtrace (`make`; no Go is
# needed here, so the build may come from another machine of the same kind). With nvcc, CuPy and JAX it checks those too. Takes under eight minutes.
#
# Usage: scripts/gpu-check.sh [--only NAME[,NAME...]] [--keep FOLDER] [--list]

set -eu

root=$(cd -- "$(dirname -- "$0")/.." && pwd)
python=${PYTHON:-python3}

if ! command -v "$python" >/dev/null 2>&1; then
	echo "gpu-check: no $python: set PYTHON to an interpreter that has PyTorch" >&2
	exit 2
fi
exec "$python" "$root/scripts/gpucheck/main.py" --root "$root" "$@"
