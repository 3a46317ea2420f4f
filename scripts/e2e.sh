#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# End-to-end tests under real frameworks on the null GPU. Arguments are passed on to `go test`, e.g. -run TestMXNet.
# Names the tests that took longest at the end.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
at_once=$(($(nproc) < 8 ? $(nproc) : 8)) # a program takes up to 2 GiB of memory
log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -v -tags e2e -count=1 -timeout 80m -parallel "$at_once" ./internal/e2e "$@" 2>&1 | grep --line-buffered -v '^=== ' | tee "$log"
status=${PIPESTATUS[0]}
echo "the slowest of them, in seconds:"
sed -n 's/^--- [A-Z]*: \([^ ]*\) (\([0-9.]*\)s)$/\2 \1/p' "$log" | sort -rn | head -15
exit "$status"
