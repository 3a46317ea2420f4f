#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# End-to-end tests under real frameworks on the null GPU. Arguments are passed on to `go test`, e.g. -run TestMXNet.
set -euo pipefail
cd "$(dirname "$0")/.."
at_once=$(($(nproc) < 8 ? $(nproc) : 8)) # a program takes up to 2 GiB of memory
exec go test -tags e2e -count=1 -timeout 80m -parallel "$at_once" ./internal/e2e "$@"
