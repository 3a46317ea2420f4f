#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Draws docs/metrics-leak.svg: a PyTorch program that leaks on the null GPU, as its metrics tell it. Needs `make` and a minute.
set -euo pipefail
cd "$(dirname "$0")/.."

torch=$(python3 testdata/nullcuda/venv.py "torch==${DEMO_TORCH:-2.7.1}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

export NULLCUDA_SHARED=$folder/account NULLCUDA_CONTEXT=300M NULLCUDA_MEM=16G MEMTRACE_OUTPUT=$folder/leaking.bin
NULLCUDA_FOLDER=$torch/nullcuda MEMTRACE_LIBRARY=$PWD/build/libmemtrace.so \
	python3 scripts/metrics-leak.py build/memtrace docs/metrics-leak.svg "$torch/bin/nullcuda-run" python testdata/growth/leaking.py 600 0.08
echo "docs/metrics-leak.svg drawn"
