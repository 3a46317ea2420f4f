#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks memtrace against a real GPU: says PASS, FAIL or SKIP for each claim, prints torch's counters, NVML's words and memtrace's numbers side by side, and what
# the library costs in paired runs. Ends with "N passed, N failed"; exit status 0 only if none failed, 2 if nothing could be checked.
#
# Builds nothing. Needs an NVIDIA GPU, Python 3.8 or newer with PyTorch for CUDA, and a finished build in build/: libmemtrace.so and memtrace, which may come
# from another machine of the same kind. With two GPUs, CuPy or JAX it checks those too; one check by name alone, cuda_program, builds with nvcc.
# Everything ends within --budget seconds (540); a part at a time with --only. Runs on the null GPU as a test of itself, see docs/measurements.md.
#
# Usage: scripts/gpu-check.sh [--only NAME[,NAME...]] [--json FILE] [--budget SECONDS] [--keep FOLDER] [--list]

set -eu

root=$(cd -- "$(dirname -- "$0")/.." && pwd)
python=${PYTHON:-python3}

if ! command -v "$python" >/dev/null 2>&1; then
	echo "gpu-check: no $python: set PYTHON to an interpreter that has PyTorch" >&2
	exit 2
fi
exec "$python" "$root/scripts/gpucheck/main.py" --root "$root" "$@"
