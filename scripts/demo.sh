#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Trains a small model of real PyTorch under the library and prints the report: on the machine's GPU where there is one and the
# python3 at hand has a PyTorch that can use it, else on the null GPU, for which PyTorch is downloaded once (about 0.8 GB).
set -euo pipefail
cd "$(dirname "$0")/.."

version=${DEMO_TORCH:-2.7.1}
trace=build/demo.bin
python=${PYTHON:-python3}

has_gpu() {
	[ -e /dev/nvidiactl ] && "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null
}

if has_gpu; then
	echo "demo: training GPT-2 small on the GPU of this machine" >&2
	run=("$python")
else
	[ -e /dev/nvidiactl ] && echo "demo: there is a GPU, but $python has no PyTorch that can use it; taking the null GPU" >&2
	echo "demo: getting PyTorch $version for the null GPU (cached; the first time takes minutes)" >&2
	venv=$("$python" testdata/nullcuda/venv.py "torch==$version")
	echo "demo: training GPT-2 small on the null GPU: memory is real, kernels do nothing" >&2
	run=("$venv/bin/nullcuda-run" python)
fi

rm -f "$trace" "$trace.spool"
PYTHONPATH=python MEMTRACE_OUTPUT=$trace LD_PRELOAD=$PWD/build/libmemtrace.so "${run[@]}" testdata/train/gpt2.py --steps 10
build/memtrace report "$trace"
build/memtrace -q html --force "$trace"
echo
echo "The same as a page, with memory over time: $PWD/${trace%.bin}.html"
