#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The long forms of the tests, for hours; a variable sets how long each is. The other parts of `make nightly` have run before: scripts/test.sh.
#
# Usage: scripts/nightly.sh
set -uo pipefail
cd "$(dirname "$0")/.." || exit
failed=0

# long PACKAGE TESTS [VARIABLE=VALUE...]: the tests whose names match, with more of everything
long() {
	local package=$1 tests=$2 tags=()
	shift 2
	[ "$package" = ./internal/e2e ] && tags=(-tags e2e)
	echo "== $package $tests $*"
	build/testreport --part "$package $tests" -- env "$@" go test -json "${tags[@]}" -count=1 -timeout 180m -run "$tests" "$package" || failed=$((failed + 1))
}

build/testreport --part "race detector" -- go test -json -race -timeout 120m ./analyzer/... ./trace/... ./cmd/memtrace ./internal/browser || failed=$((failed + 1))
long ./internal/e2e Killed KILLS="${KILLS:-1000}"
long ./internal/hostile Killed KILLS="${KILLS:-1000}"
long ./internal/e2e AttachWhileTraining ATTACHES="${ATTACHES:-200}"
long ./internal/hostile AttachStorm ATTACHES="${ATTACHES:-200}"
long ./internal/hostile 'Ledger$' LEDGER_SEEDS="${LEDGER_SEEDS:-100}" LEDGER_STEPS=200000
long ./internal/hostile Endings ENDINGS="${ENDINGS:-20}"
long ./internal/hostile Storm STORM_EVENTS="${STORM_EVENTS:-50000000}"
long ./internal/hostile ManyLiveBlocks HOARD_BLOCKS=10000000
long ./internal/e2e 'Growth$' GROWTH="${GROWTH:-3}"
long ./internal/e2e OrdinaryPrograms ORDINARY=all
long ./internal/e2e 'Iterations|MemTracker' MODELS=all
long ./cmd/memtrace CostGrows SCALE=100000
long ./cmd/memtrace Mutants MUTANTS="${MUTANTS:-100000}"
long ./analyzer TimelineOfManyEvents TIMELINE_EVENTS=50000000
long ./analyzer BoundsHold BOUNDS_SEEDS="${BOUNDS_SEEDS:-20000}"
build/testreport --part "random streams" -- go test -json -count=1 -timeout 180m -run 'Oracle|Windows|Columns|Questions|Thinned|DeviceLedger' ./analyzer -args -streams "${STREAMS:-3000}" || failed=$((failed + 1))
long ./trace StandardLibrary LINES_STEP=1
long ./internal/e2e StacksOfTraining STACKS_STEPS=5
long ./internal/e2e StacksOfMXNet STACKS_STEPS=400
long ./internal/e2e Stress STRESS_SECONDS="${STRESS_SECONDS:-3600}"
scripts/test-c.sh --all-pythons python || failed=$((failed + 1))
scripts/page-bench.sh || failed=$((failed + 1))
scripts/fuzz.sh "${FUZZTIME:-5m}" || failed=$((failed + 1))

[ "$failed" -eq 0 ]
