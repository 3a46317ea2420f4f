#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes every target of the module for a while, one after the other, and fails if one finds something. Ends with "N passed, N failed".
#
# Usage: scripts/fuzz.sh [DURATION [TARGET...]]     DURATION as for go test -fuzztime, 60s if not given; TARGET: names, all if not given

set -uo pipefail
cd "$(dirname -- "$0")/.." || exit

duration=${1:-60s}
[ $# -gt 0 ] && shift
case $duration in
*[0-9]s) limit=$((${duration%s} * 2 + 300)) ;;
*[0-9]m) limit=$((${duration%m} * 120 + 300)) ;;
*[0-9]x) limit=3600 ;;
*)
	echo "fuzz: $duration is no duration: write 60s, 5m or 1000x" >&2
	exit 2
	;;
esac

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0

# run PACKAGE TARGET: one line, and everything that go says if it fails.
run() {
	if timeout "$limit" go test -run '^$' -fuzz "^$2\$" -fuzztime "$duration" -fuzzminimizetime 3x -parallel 2 "$1" >"$log" 2>&1; then
		echo "ok    $1 $2: $(sed -n 's/.*execs: \([0-9]*\).*new interesting: \(.*\)$/\1 runs, new and all inputs: \2/p' "$log" | tail -n 1)"
		passed=$((passed + 1))
	else
		echo "FAIL  $1 $2"
		sed 's/^/      /' "$log"
		failed=$((failed + 1))
	fi
}

folders=$(git ls-files -co --exclude-standard '*_test.go' | xargs grep -l '^func Fuzz' | xargs -n 1 dirname | sort -u)
for folder in $folders; do
	if ! targets=$(timeout 300 go test -list '^Fuzz' "./$folder" 2>&1); then
		echo "FAIL  ./$folder does not compile"
		echo "$targets" | sed 's/^/      /'
		failed=$((failed + 1))
		continue
	fi
	for target in $(grep '^Fuzz' <<<"$targets"); do
		if [ $# -eq 0 ] || [[ " $* " == *" $target "* ]]; then
			run "./$folder" "$target"
		fi
	done
done

if [ $((passed + failed)) -eq 0 ]; then
	echo "fuzz: no such target: $*" >&2
	exit 2
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
