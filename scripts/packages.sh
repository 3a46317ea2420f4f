#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes .deb and .rpm packages out of the wheels in dist/ (`make wheel`): the same executables, without Python. nfpm packs them, built by Go at a pinned version and kept in the cache.
# Two runs give the same bytes.

set -euo pipefail
cd "$(dirname -- "$0")/.."

nfpm_version=v2.44.0 # the newest whose modules the module proxy has all of
dist=${WHEEL_DIST:-dist}
cache=${MEMTRACE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/memtrace}
nfpm=$cache/nfpm-$nfpm_version/nfpm
if [ ! -x "$nfpm" ]; then
	echo "packages: building nfpm $nfpm_version" >&2
	GOBIN=${nfpm%/*} GOARCH='' CC='' go install "github.com/goreleaser/nfpm/v2/cmd/nfpm@$nfpm_version"
fi
if [ -z "${SOURCE_DATE_EPOCH:-}" ] && when=$(git log -1 --format=%ct 2>/dev/null); then
	export SOURCE_DATE_EPOCH=$when
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unpacked() { # MACHINE: the folder of its wheel's files
	local wheels=("$dist"/memtrace_gpu-*_"$1".whl)
	if [ ${#wheels[@]} -ne 1 ] || [ ! -f "${wheels[0]}" ]; then
		echo "packages: $dist has not one wheel for $1: run 'make wheel' in a clean $dist" >&2
		return 1
	fi
	# Python's own unzip drops the modes, so that they are set again: nfpm takes those of trees.
	python3 -m zipfile -e "${wheels[0]}" "$work/$1"
	find "$work/$1" -type f -exec chmod 644 {} +
	find "$work/$1/memtrace/_bin" -type f ! -name '*.*' -exec chmod 755 {} + -o -type f -name '*.so*' -exec chmod 755 {} +
	find "$work/$1" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-1580601600}" {} +
}

# Manual pages and completions are the same for every machine; this one's command writes them.
here=$(uname -m)
unpacked "$here"
command=$work/$here/memtrace/_bin/memtrace
export PAGES=$work/pages
mkdir -p "$PAGES/man1"
"$command" man "$PAGES/man1"
for shell in bash zsh fish; do "$command" completion "$shell" >"$PAGES/completion.$shell"; done
mv "$PAGES/completion.bash" "$PAGES/memtrace.bash"
mv "$PAGES/completion.zsh" "$PAGES/_memtrace"
mv "$PAGES/completion.fish" "$PAGES/memtrace.fish"
find "$PAGES" -type f -exec chmod 644 {} + -exec touch -d "@${SOURCE_DATE_EPOCH:-1580601600}" {} +
VERSION=$("$command" --version | cut -d' ' -f2)
export VERSION

declare -A goarch=([x86_64]=amd64 [aarch64]=arm64)
for machine in x86_64 aarch64; do
	[ "$machine" = "$here" ] || unpacked "$machine"
	export ARCH=${goarch[$machine]} FILES=$work/$machine/memtrace/_bin
	for packager in deb rpm; do
		"$nfpm" package --config packaging/nfpm.yaml --packager "$packager" --target "$dist"
	done
done
