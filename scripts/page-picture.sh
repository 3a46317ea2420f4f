#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Takes the pictures of pages in the documentation, docs/page.png and docs/page-oom.png, in Chromium: GPT-2 small on the null GPU, six steps, and the same on a device that is too small.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$(python3 testdata/nullcuda/venv.py "torch==${DEMO_TORCH:-2.7.1}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

picture() { # picture NAME HEIGHT MEMORY: of a run on a device of that size
	PYTHONPATH=python NULLCUDA_MEM=$3 MEMTRACE_OUTPUT=$work/gpt2.bin LD_PRELOAD=$PWD/build/libmemtrace.so "$venv/bin/nullcuda-run" python testdata/train/gpt2.py --steps 6 >/dev/null 2>&1 || true
	build/memtrace -q html -f -o "$work/page.html" "$work/gpt2.bin"
	chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" --window-size=1200,"$2" --virtual-time-budget=10000 \
		--screenshot="$work/page.png" "file://$work/page.html" 2>/dev/null
	mv "$work/page.png" "docs/$1.png"
	rm "$work/gpt2.bin"
	echo "docs/$1.png taken"
}

picture page 1180 80G
picture page-oom 1000 2500M
