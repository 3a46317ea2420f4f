#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the image of packaging/Containerfile out of a wheel (`make wheel`), with buildah, podman or docker, whichever is there; ENGINE names one, BASE another base image,
# BUILDFLAGS further flags. Nothing is uploaded.
#
# Usage: scripts/image.sh WHEEL NAME[:TAG]

set -euo pipefail
if [ $# -ne 2 ] || [ ! -f "$1" ]; then
	echo "usage: scripts/image.sh WHEEL NAME[:TAG]; 'make wheel' puts wheels into dist/" >&2
	exit 2
fi
root=$(cd "$(dirname -- "$0")/.." && pwd)
engine=${ENGINE:-}
for known in buildah podman docker; do
	[ -n "$engine" ] || ! command -v "$known" >/dev/null || engine=$known
done
if [ -z "$engine" ]; then
	echo "image: no buildah, podman or docker in PATH; install one" >&2
	exit 1
fi
case $1 in
*_x86_64.whl) platform=linux/amd64 ;;
*_aarch64.whl) platform=linux/arm64 ;;
*)
	echo "image: $1: its name ends in neither _x86_64.whl nor _aarch64.whl" >&2
	exit 2
	;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m zipfile -e "$1" "$work/wheel"
mkdir "$work/context"
cp "$work/wheel/memtrace/_bin/libmemtrace.so" "$work/wheel/memtrace/_bin/memtrace" "$root/LICENSE" "$root/THIRD_PARTY.md" "$work/context"
read -ra flags <<<"${BUILDFLAGS:-}"
"$engine" build --platform "$platform" ${BASE:+--build-arg "BASE=$BASE"} "${flags[@]}" --tag "$2" --file "$root/packaging/Containerfile" "$work/context"
