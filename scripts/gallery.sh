#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes docs/gallery.md and its pictures from real runs on the null GPU: scripts/gallery.sh TORCH_VENV MXNET_VENV.
# Both are virtual environments that have nullcuda-run. Fails where a picture's values are not the report's.

set -eu
cd "$(dirname -- "$0")/.."
if [ $# -ne 2 ]; then
	echo "usage: scripts/gallery.sh TORCH_VENV MXNET_VENV" >&2
	exit 2
fi
torch=$1
mxnet=$2
traces=$(mktemp -d)
trap 'rm -rf "$traces"' EXIT
mkdir -p docs/gallery

record() { # NAME VENV PROGRAM ARGUMENTS...
	name=$1 venv=$2 program=$3
	shift 3
	NULLCUDA_SHARED=none NULLCUDA_MEM=16G MEMTRACE_OUTPUT="$traces/$name.bin" LD_PRELOAD="$PWD/${BUILD:-build}/libmemtrace.so" \
		"$venv/bin/nullcuda-run" python "testdata/train/$program" "$@" >&2
}

record mxnet-resnet "$mxnet" mxnet_resnet.py
record neumf "$torch" neumf.py
record vgg19-im2col "$torch" vgg19.py
record vgg19-fft "$torch" vgg19.py --convolution fft
exec python3 scripts/gallery.py "${BUILD:-build}/memtrace" "$traces" docs
