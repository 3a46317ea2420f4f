#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes gallery.md and its pictures, in docs or the folder that is named, from real runs on the null GPU. Fails where a picture's values are not the report's.
set -euo pipefail
cd "$(dirname "$0")/.."

torch=$(python3 testdata/nullcuda/venv.py "torch==${DEMO_TORCH:-2.7.1}")
mxnet=$(python3 testdata/nullcuda/venv.py mxnet-cu112==1.9.1)
traces=$(mktemp -d)
trap 'rm -rf "$traces"' EXIT
docs=${1:-docs}
mkdir -p "$docs/gallery"

record() { # record NAME VENV PROGRAM ARGUMENTS...
	NULLCUDA_SHARED=none NULLCUDA_MEM=16G MEMTRACE_OUTPUT=$traces/$1.bin LD_PRELOAD=$PWD/build/libmemtrace.so "$2/bin/nullcuda-run" python "testdata/train/$3" "${@:4}" >&2
}

# MXNet computes in threads of its own, by which temporaries differ from run to run.
MXNET_ENGINE_TYPE=NaiveEngine record mxnet-module "$mxnet" mxnet_module.py
record neumf "$torch" neumf.py
record vgg19-im2col "$torch" vgg19.py
record vgg19-fft "$torch" vgg19.py --convolution fft
record gpt2 "$torch" gpt2.py --steps 3
record cached-embeddings "$torch" cached_embeddings.py

# sample NAME PROGRAM ARGUMENTS...: a plain run, without memtrace, and beside it what nvidia-smi would log
sample() {
	export NULLCUDA_SHARED=$traces/$1.account NULLCUDA_MEM=16G
	{ sleep 0.2; "$torch/bin/nullcuda-run" python "testdata/train/$2" "${@:3}" >&2; sleep 0.2; } | "$torch/bin/nullcuda-run" python scripts/smi-log.py >"$traces/$1.txt"
	build/memtrace -q import "$traces/$1.txt" -o "$traces/$1.bin"
	unset NULLCUDA_SHARED NULLCUDA_MEM
}

sample smi-im2col vgg19.py
sample smi-fft vgg19.py --convolution fft
python3 scripts/gallery.py build/memtrace "$traces" "$docs"
