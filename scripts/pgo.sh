#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes cmd/memtrace/reports.pgo, by which the compiler lays out the command: a CPU profile of the benchmarks that read a trace as reports do. The trace is that of GPT-2,
# trained on the null GPU for a moment, or the one that is named. An old profile is still a good one; make it anew when the replay was changed much.
#
# Usage: scripts/pgo.sh [TRACE]
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trace=${1:-$work/gpt2.bin}
if [ $# -eq 0 ]; then
	torch=$(python3 testdata/nullcuda/venv.py "torch==${DEMO_TORCH:-2.7.1}")
	PYTHONPATH=python NULLCUDA_SHARED=none NULLCUDA_MEM=16G MEMTRACE_OUTPUT=$trace LD_PRELOAD=$PWD/build/libmemtrace.so \
		"$torch/bin/nullcuda-run" python testdata/train/gpt2.py --steps 500 >&2
fi
trace=$(realpath "$trace")

go test -c -trimpath -o "$work/analyzer.test" ./analyzer
for read in report name site; do # one processor: a second one only adds waiting
	(cd analyzer && MEMTRACE_BENCH_TRACE=$trace GOMAXPROCS=1 "$work/analyzer.test" -test.run NONE -test.bench "^BenchmarkTrace\$/^$read\$" -test.benchtime 10s -test.cpuprofile "$work/$read.prof") >&2
done
go run ./tools/pgo "$work"/*.prof >"$work/reports.pgo"
mv "$work/reports.pgo" cmd/memtrace/reports.pgo
