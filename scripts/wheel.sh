#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the wheels of memtrace-gpu into dist/: one for each machine, for every glibc from 2.17 on and every Python from 3.8 on. zig is the C compiler, since it
# links against the glibc that is asked for, whatever this machine has. The same sources give the same bytes, in whatever folder they lie.
#
# Usage: scripts/wheel.sh [MACHINE...]     x86_64 and aarch64, both if none is named
#   WHEEL_DIST    another folder than dist/
#   WHEEL_BUILD   another folder than build/wheel/ for what is compiled on the way

set -euo pipefail
cd "$(dirname -- "$0")/.."

glibc=2.17
dist=${WHEEL_DIST:-dist}
build=${WHEEL_BUILD:-build/wheel}
machines=("$@")
[ $# -gt 0 ] || machines=(x86_64 aarch64)
declare -A goarch=([x86_64]=amd64 [aarch64]=arm64)

tools=$(scripts/python-tools.sh internal/tools/wheel-requirements.txt)
ZIG=$("$tools/python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
export ZIG
export ZIG_GLOBAL_CACHE_DIR=${ZIG_GLOBAL_CACHE_DIR:-${MEMTRACE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/memtrace}/zig}
# What came with git has the time of its commit, an archive of the sources hatchling's own.
if [ -z "${SOURCE_DATE_EPOCH:-}" ] && when=$(git log -1 --format=%ct 2>/dev/null); then
	export SOURCE_DATE_EPOCH=$when
fi
PATH=$PWD/scripts/zig:$PATH

for machine in "${machines[@]}"; do
	if [ -z "${goarch[$machine]:-}" ]; then
		echo "wheel: $machine: choose x86_64 or aarch64" >&2
		exit 2
	fi
	export ZIG_TARGET=$machine-linux-gnu.$glibc GOARCH=${goarch[$machine]}
	platform=manylinux_${glibc/./_}_$machine
	rm -rf "${build:?}/$machine"
	MEMTRACE_WHEEL_PLATFORM=$platform MAKEFLAGS="BUILD=$build/$machine ROOT=@root CC=zig-cc LDFLAGS=-s GO_LINK=-buildid=" \
		"$tools/python" -m build --wheel --no-isolation --outdir "$dist" . >&2
	# The tag is a promise; auditwheel looks at what the files ask for.
	wheel=$(ls "$dist"/memtrace_gpu-*-py3-none-"$platform".whl)
	if ! "$tools/auditwheel" show "$wheel" | tr '\n' ' ' | grep -q "consistent with the following platform tag: *\"$platform\""; then
		"$tools/auditwheel" -v show "$wheel" >&2
		echo "wheel: $wheel does not keep what its name promises" >&2
		exit 1
	fi
	echo "$wheel"
done
