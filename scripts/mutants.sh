#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Reads damaged traces and spools, so many of each, without the race detector, which would take ten times as long. Prints how many there were and how many broke something, and where those lie.
#
# Usage: scripts/mutants.sh [COUNT]     2000 if not given
set -uo pipefail
cd "$(dirname "$0")/.." || exit

export MUTANTS=${1:-2000}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -count=1 -timeout 600m -run '^TestMutantsOf' -v ./cmd/memtrace ./trace/spool >"$log" 2>&1
status=$?
[ $status -eq 0 ] || grep -v '^=== ' "$log"
grep '^mutants of ' "$log"
# A test that was renamed would count nothing, and pass.
[ "$(grep -c '^mutants of ' "$log")" -eq 2 ] || { echo "mutants: the tests did not say what they found"; status=1; }
exit $status
