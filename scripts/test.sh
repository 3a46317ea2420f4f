#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every test there is, one part after the other; all parts run even when one fails. Closes with `N passed, N failed`, counting parts.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

passed=0 failed=0 broken=()
log=$(mktemp) said=$(mktemp)
trap 'rm -f "$log" "$said"' EXIT
part() {
	local name=$1
	shift
	echo "== $name"
	if "$@" 2>&1 | tee "$log"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		broken+=("$name")
		{ echo "== what failed in $name"; scripts/failures.sh "$log"; } >>"$said"
	fi
}

part "build" make --no-print-directory all nullcuda
part "Go, with the race detector" make --no-print-directory test-race
part "Go, without cgo" make --no-print-directory test-portable
part "costs, pages and hostile programs" make --no-print-directory test-programs
part "damaged traces and spools" scripts/mutants.sh 500
part "C" make --no-print-directory test-c
part "Python" make --no-print-directory test-python
part "end to end" scripts/e2e.sh

cat "$said"
for name in "${broken[@]}"; do
	echo "failed: $name"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
