#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the packages of a distribution with apt that tests of a tier need beside Go, gcc and Python and that are not there. Without apt or the right to use it
# nothing is installed: tests skip what they do not find.
#
# Usage: scripts/ci-packages.sh [core|all]     all if none is named
set -uo pipefail

missing=()
# needs COMMAND PACKAGE...: what a command is installed with
needs() { command -v "$1" >/dev/null || missing+=("${@:2}"); }

needs gcc gcc libc6-dev
needs g++ g++
needs musl-gcc musl-tools # programs of another C library
needs gdb gdb             # guests run under debuggers and tracers
needs strace strace
needs setcap libcap2-bin
needs busybox busybox-static
for package in libfaketime libjemalloc2 libtcmalloc-minimal4; do # what other tools preload
	dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
done
if [ "${1:-all}" != core ]; then
	needs valgrind valgrind # counts instructions
	needs jq jq             # in the documents
	needs aarch64-linux-gnu-g++ g++-aarch64-linux-gnu libc6-dev-arm64-cross
	needs qemu-aarch64 qemu-user
	needs chromium chromium # opens the page
	needs node nodejs
	needs npm npm
	needs java openjdk-17-jre-headless # runs Spark
	needs rpm rpm # unpacks what is released
	needs rpm2cpio rpm2cpio
	needs cpio cpio
	needs buildah buildah # the image for init containers
fi

[ ${#missing[@]} -gt 0 ] && command -v apt-get >/dev/null || exit 0
root=()
if [ "$(id -u)" -ne 0 ]; then
	sudo -n true 2>/dev/null || exit 0
	root=(sudo -n)
fi
"${root[@]}" apt-get update -q && "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "${missing[@]}"
