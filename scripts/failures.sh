#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What failed, out of the log of a long run, so that it stands at the run's end as well, with the first lines of what a Go test said over several.
# Usage: scripts/failures.sh LOG [LINES]
set -uo pipefail
failed='^ *--- FAIL|^FAIL|^panic:|DATA RACE|_test[.](go|c|cpp|py):[0-9]+: |^FAILED |: failed: |^failed: |FAILED|, want |(^|[^0-9])[1-9][0-9]* failed|ERROR: .*Sanitizer|runtime error:|^make.*Error'
awk -v failed="$failed" '
	$0 ~ failed { print; follow = /_test[.]go:[0-9]+: / ? 12 : 0; next }
	follow > 0 && /^        / { print; follow--; next } # go test indents what follows a first line
	{ follow = 0 }
' "$1" | tail -n "${2:-40}"
exit 0
