#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tests, in three tiers by what they need; each has what the one before it has. All parts run even when one fails: the end-to-end tests, and beside them, as
# they wait for disks and each other, all others one by one. Environments are installed meanwhile. Closes with what failed, each with the command that runs it
# alone, how long the parts took, and `N passed, N failed`, counting parts. `make lint` is what vets; `make` passes flags on by which the tests and the command
# share what was compiled, for which the command is built without a profile.
#
# Usage: scripts/test.sh [core|all|nightly] [--list | PART...]     only these parts, by the words that --list prints
#   core     one PyTorch on the null GPU: Go, C, Python, the core of the end-to-end tests
#   all      two more versions of PyTorch, MXNet, the race detector and the thread sanitizer, a browser, wheels, 64-bit Arm under emulation, the documents' examples
#   nightly  other frameworks and interpreters, and the long forms of the tests
set -uo pipefail
cd "$(dirname "$0")/.." || exit

export TIER=core PGO=off
case ${1:-} in core | all | nightly) TIER=$1 && shift ;; esac
chosen=" $* "
work=$(mktemp -d)
beside=0
clean_up() {
	((beside)) && kill -- "-$beside" 2>/dev/null
	rm -rf "$work"
}
trap clean_up EXIT
failures=${TESTREPORT_FAILURES:-$work/failures}
: >>"$failures"
: >"$work/ended" # a line for each part that has ended: "passed" or "failed", seconds, name

# part WORD NAME COMMAND...: one part of the tests, if it was chosen.
part() {
	local word=$1 name=$2 begin=$SECONDS ended=failed
	shift 2
	case $chosen in
	" --list ") printf '%-12s %s\n' "$word" "$name" && return ;;
	*" $word "* | "  ") ;;
	*) return ;;
	esac
	echo "== $name"
	build/testreport --failures "$failures" --part "$name" --slowest 5 -- "$@" && ended=passed
	printf '%s\t%6d s\t%s\n' "$ended" $((SECONDS - begin)) "$name" >>"$work/ended"
}

# What has no part of its own.
mapfile -t packages < <(go list ./... | grep -vE '/internal/(e2e|hostile|browser)$')

if [ "$chosen" != " --list " ]; then
	if ! make --no-print-directory -j "$(nproc)" all nullcuda || ! go build -o build/testreport ./tools/testreport; then
		echo "0 passed, 1 failed"
		exit 1
	fi
	scripts/environments.sh "$TIER" >build/environments.log 2>&1 &
fi

end_to_end() {
	# A program of a framework keeps one processor busy, reads and compiles from disk at its beginning, and takes up to 2 GiB of memory.
	part e2e "end to end" go test -json -vet=off -tags e2e,netgo,osusergo -count=1 -timeout 180m -parallel "$(($(nproc) < 8 ? $(nproc) : 8))" ./internal/e2e
}

short=()
[ "$TIER" = nightly ] || short=(-short) # fewer random traces and damaged places, and no millions of events
others() {
	part go "Go" go test -json -vet=off -timeout 60m "${short[@]}" -skip 'CostGrows|OverflowHasBounds' "${packages[@]}"
	part c "C" scripts/test-c.sh
	part python "Python" scripts/test-python.sh
	part hostile "hostile programs" go test -json -vet=off "${short[@]}" -timeout 60m ./internal/hostile
	[ "$TIER" != core ] || return 0
	part race "Go, under the race detector" scripts/test-race.sh
	# Only cuda/nvml has files that depend on cgo.
	part portable "Go, without cgo" env CGO_ENABLED=0 bash -c 'go build -o /dev/null ./cmd/memtrace && go test -json ./cuda/...'
	# with those that -short leaves out as a whole
	part costs "costs and bounds" go test -json -vet=off -timeout 60m -run 'CostGrows|OverflowHasBounds|ReportFromKeyframe|ReaderOfManyLiveBlocks|TraceKeepsItsLimit' ./cmd/memtrace ./internal/hostile
	part guard "instructions of the hook path" scripts/callgrind-guard.sh
	part browser "pages in a browser" go test -json -vet=off -timeout 40m ./internal/browser
	part aarch64 "64-bit Arm under emulation" make --no-print-directory test-aarch64
	part wheels "wheels" make --no-print-directory test-wheel
	part fuzz "fuzz targets" scripts/fuzz.sh "${FUZZTIME:-5s}"
}

if [ "$chosen" = " --list " ]; then
	end_to_end && others
else
	set -m # in a process group of its own, which clean_up ends
	others </dev/null &
	beside=$!
	set +m
	end_to_end
	wait "$beside" || printf 'failed\t%6d s\tparts that ended with status %d\n' "$SECONDS" $? >>"$work/ended"
	beside=0
fi
if [ "$TIER" = nightly ]; then
	part long "long forms" scripts/nightly.sh
fi
[ "$chosen" = " --list " ] && exit

wait
echo "== how long the parts took, the slowest first"
cut -f 2,3 "$work/ended" | expand -t 10 | sort -rn
[ -n "${TESTREPORT_FAILURES:-}" ] || build/testreport --summary "$failures"
sed -n 's/^failed\t.*\t/failed: /p' "$work/ended"
passed=$(grep -c '^passed' "$work/ended")
failed=$(grep -c '^failed' "$work/ended")
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
