#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# End-to-end tests under real frameworks on the null GPU. Arguments are passed on to `go test`, e.g. -run TestMXNet.
set -euo pipefail
cd "$(dirname "$0")/.."
exec go test -tags e2e -count=1 -timeout 80m ./internal/e2e "$@"
