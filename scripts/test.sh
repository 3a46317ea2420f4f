#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tests, in three tiers by what they need; each has what the one before it has. All parts run even when one fails. Environments are installed while the parts
# that need none run. Closes with what failed, each with the command that runs it alone, how long the parts took, and `N passed, N failed`, counting parts.
#
# Usage: scripts/test.sh [core|all|nightly] [--list | PART...]     only these parts, by the words that --list prints
#   core     one PyTorch on the null GPU: Go, C, Python, the core of the end-to-end tests
#   all      two more versions of PyTorch, MXNet, the race detector, a browser, wheels, 64-bit Arm under emulation, the documents' examples
#   nightly  other frameworks and interpreters, and the long forms of the tests
set -uo pipefail
cd "$(dirname "$0")/.." || exit

export TIER=core
case ${1:-} in core | all | nightly) TIER=$1 && shift ;; esac
chosen=" $* "
passed=0 failed=0 broken=() took=()
failures=${TESTREPORT_FAILURES:-}
if [ -z "$failures" ]; then
	failures=$(mktemp)
	trap 'rm -f "$failures"' EXIT
fi

# part WORD NAME COMMAND...: one part of the tests, if it was chosen.
part() {
	local word=$1 name=$2 begin=$SECONDS
	shift 2
	case $chosen in
	" --list ") printf '%-12s %s\n' "$word" "$name" && return ;;
	*" $word "* | "  ") ;;
	*) return ;;
	esac
	echo "== $name"
	if build/testreport --failures "$failures" --part "$name" --slowest 5 -- "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1)) && broken+=("$name")
	fi
	took+=("$(printf '%6d s  %s' $((SECONDS - begin)) "$name")")
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

part go "Go" go test -json -skip 'CostGrows|OverflowHasBounds' "${packages[@]}"
part c "C" scripts/test-c.sh
part python "Python" scripts/test-python.sh
part hostile "hostile programs" go test -json -timeout 60m ./internal/hostile
# A program of a framework keeps one processor busy, reads and compiles from disk at its beginning, and takes up to 2 GiB of memory.
part e2e "end to end" go test -json -tags e2e -count=1 -timeout 80m -parallel "$(($(nproc) < 8 ? $(nproc) + 1 : 8))" ./internal/e2e
if [ "$TIER" != core ]; then
	part race "Go, under the race detector" scripts/test-race.sh
	# Only cuda/nvml has files that depend on cgo.
	part portable "Go, without cgo" env CGO_ENABLED=0 bash -c 'go build -o /dev/null ./cmd/memtrace && go test -json ./cuda/...'
	part costs "costs of the command" go test -json -run 'CostGrows|OverflowHasBounds' ./cmd/memtrace
	part guard "instructions of the hook path" scripts/callgrind-guard.sh
	part browser "pages in a browser" go test -json -timeout 40m ./internal/browser
	part aarch64 "64-bit Arm under emulation" make --no-print-directory test-aarch64
	part wheels "wheels" make --no-print-directory test-wheel
	part fuzz "fuzz targets" scripts/fuzz.sh "${FUZZTIME:-5s}"
fi
if [ "$TIER" = nightly ]; then
	part long "long forms" scripts/nightly.sh
fi
[ "$chosen" = " --list " ] && exit

wait
echo "== how long the parts took, the slowest first"
printf '%s\n' "${took[@]}" | sort -rn
[ -n "${TESTREPORT_FAILURES:-}" ] || build/testreport --summary "$failures"
for name in "${broken[@]}"; do
	echo "failed: $name"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
