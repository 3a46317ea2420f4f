#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints how large pages of 1 and 5 million blocks are, and how long Chromium takes to open them and to answer a brush: figures for docs/measurements.md. Needs node, npm and chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
blocks=${1:-1000000,5000000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

go test ./internal/page -run TestMeasure -measure "$blocks" -to "$work" -v | grep "blocks:"
go test ./internal/browser -run TestMeasure -measure "$work" -v | grep "blocks:"
