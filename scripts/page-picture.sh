#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Takes the pictures of pages in the documentation, docs/page*.png, in Chromium: GPT-2 small on the null GPU, six steps; the same on a device that is too small, with a wider layer beside the first run, and a run in MXNet.
set -euo pipefail
cd "$(dirname "$0")/.."

torch=$(python3 testdata/nullcuda/venv.py "torch==${DEMO_TORCH:-2.7.1}")
mxnet=$(python3 testdata/nullcuda/venv.py mxnet-cu112==1.9.1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

record() { # record NAME VENV MEMORY PROGRAM ARGUMENTS...: on a device of that size
	PYTHONPATH=python NULLCUDA_SHARED=none NULLCUDA_MEM=$3 MEMTRACE_OUTPUT=$work/$1.bin LD_PRELOAD=$PWD/build/libmemtrace.so "$2/bin/nullcuda-run" python "testdata/train/$4" "${@:5}" >/dev/null 2>&1 || true
}

picture() { # picture NAME HEIGHT SCHEME TRACES...
	(cd "$work" && "$OLDPWD/build/memtrace" -q html -f -o page.html "${@:4}")
	dark=()
	[ "$3" = dark ] && dark=(--blink-settings=preferredColorScheme=0)
	chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars "${dark[@]}" --user-data-dir="$work/profile" --window-size=1200,"$2" --virtual-time-budget=10000 \
		--screenshot="$work/page.png" "file://$work/page.html" 2>/dev/null
	mv "$work/page.png" "docs/$1.png"
	echo "docs/$1.png taken"
}

record gpt2 "$torch" 80G gpt2.py --steps 6
record gpt2-wide "$torch" 80G gpt2.py --steps 6 --width 2
record gpt2-oom "$torch" 2500M gpt2.py --steps 6
record mxnet "$mxnet" 16G mxnet_module.py
picture page 1260 light gpt2.bin
picture page-oom 1120 light gpt2-oom.bin
picture page-diff 1100 light gpt2.bin gpt2-wide.bin
picture page-mxnet 1120 dark mxnet.bin
