#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of scripts/race-packages.txt under the race detector, in their short form, as a stream of test2json.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
status=0
# Packages whose rows name the same tests are compiled and run together.
while read -r tests packages; do
	read -ra list <<<"$packages"
	go test -json -race -short -timeout 60m -run "$tests" "${list[@]}" || status=1
done < <(sed 's/#.*//' scripts/race-packages.txt | awk 'NF { rows[$2] = rows[$2] " " $1 } END { for (tests in rows) print tests rows[tests] }')
exit $status
