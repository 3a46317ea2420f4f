#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes every target of the module for a while, as many at a time as there are processors, and fails if one finds something. Says for each target how often it ran and what it found, then the sums.
# Ends with "N passed, N failed".
#
# Usage: scripts/fuzz.sh [DURATION [TARGET...]]     DURATION as for go test -fuzztime, 60s if not given; TARGET: names, all if not given

set -uo pipefail
cd "$(dirname -- "$0")/.." || exit

hung=3600 # seconds after which something counts as hung; no measure of speed: reading all inputs first takes minutes on a busy machine
duration=${1:-60s}
[ $# -gt 0 ] && shift
case $duration in
*[0-9]s) limit=$((${duration%s} * 2 + hung)) ;;
*[0-9]m) limit=$((${duration%m} * 120 + hung)) ;;
*[0-9]x) limit=$hung ;;
*)
	echo "fuzz: $duration is no duration: write 60s, 5m or 1000x" >&2
	exit 2
	;;
esac

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
started=0 failed=0

# ended LOG: that the time was up is all that went wrong. Go before 1.27 says so of a run that found nothing, if the deadline comes at the wrong moment
# (go.dev/issue/75804).
ended() {
	[ "$(sed -n '/^--- FAIL: /,/^FAIL$/p' "$1" | sed '1d;$d' | tr -d '[:space:]')" = contextdeadlineexceeded ] && ! grep -q 'Failing input written' "$1"
}

# fuzz PACKAGE TARGET DURATION LOG
fuzz() {
	timeout "$limit" go test -run '^$' -fuzz "^$2\$" -fuzztime "$3" -fuzzminimizetime 3x -parallel 1 "$1" >"$4" 2>&1 || ended "$4"
}

# baseline LOG: the number of inputs that are read first, if the time was up before they all were, and nothing was fuzzed.
baseline() { grep -q 'execs: ' "$1" || sed -n 's/.*baseline coverage: [0-9]*\/\([0-9]*\) completed.*/\1/p' "$1" | tail -n 1; }

# run PACKAGE TARGET: one line, and everything that go says if it fails.
run() {
	local log=$logs/${1//\//_}_$2 runs inputs
	if fuzz "$1" "$2" "$duration" "$log" && { inputs=$(baseline "$log"); [ -z "$inputs" ] || fuzz "$1" "$2" $((inputs + 50))x "$log"; }; then
		echo "ok    $1 $2: $(sed -n 's/.*execs: \([0-9]*\).*new interesting: \(.*\)$/\1 runs, findings 0, new and all inputs: \2/p' "$log" | tail -n 1)" >"$log.said"
		touch "$log.passed"
	else
		{ echo "FAIL  $1 $2: findings 1"; sed 's/^/      /' "$log"; } >"$log.said"
	fi
	runs=$(sed -n 's/.*execs: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
	echo "${runs:-0}" >"$log.runs"
	flock "$logs" cat "$log.said"
}

folders=$(git ls-files -co --exclude-standard '*_test.go' | xargs grep -l '^func Fuzz' | xargs -n 1 dirname | sort -u)
for folder in $folders; do
	if ! targets=$(timeout "$hung" go test -list '^Fuzz' "./$folder" 2>&1); then
		echo "FAIL  ./$folder does not compile"
		echo "$targets" | sed 's/^/      /'
		failed=$((failed + 1))
		continue
	fi
	for target in $(grep '^Fuzz' <<<"$targets"); do
		if [ $# -eq 0 ] || [[ " $* " == *" $target "* ]]; then
			while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n; done
			run "./$folder" "$target" &
			started=$((started + 1))
		fi
	done
done

wait
passed=$(find "$logs" -name '*.passed' | wc -l)
failed=$((failed + started - passed)) # those that did not come to their end among them

if [ $((passed + failed)) -eq 0 ]; then
	echo "fuzz: no such target: $*" >&2
	exit 2
fi
echo "fuzz targets: $started, runs $(find "$logs" -name '*.runs' -exec cat {} + | awk '{ n += $1 } END { print n + 0 }'), findings $failed"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
