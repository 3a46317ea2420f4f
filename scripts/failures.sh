#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What failed, out of the log of a long run, so that it stands at the run's end as well. Usage: scripts/failures.sh LOG
set -uo pipefail
grep -aE '^ *--- FAIL|^FAIL|^panic:|DATA RACE|_test\.(go|c|cpp|py):[0-9]+: |^FAILED |: failed: |^failed: |FAILED|, want |(^|[^0-9])[1-9][0-9]* failed|ERROR: .*Sanitizer|runtime error:|^make.*Error' "$1" |
	grep -vaE '^ *_test.go:[0-9]+: *skip' | tail -n "${2:-40}"
exit 0
