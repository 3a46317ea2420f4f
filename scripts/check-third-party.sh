#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Fails when go.mod names a module that THIRD_PARTY.md does not list. Part of `make lint`.

set -eu
cd "$(dirname -- "$0")/.."

missing=0
for module in $(awk '/^require \(/ { inside = 1; next } /^\)/ { inside = 0 } inside { print $1 } /^require [^(]/ { print $2 }' go.mod); do
	if ! grep -qF "| $module |" THIRD_PARTY.md; then
		echo "THIRD_PARTY.md: no row for $module: add its use, licence and copyright" >&2
		missing=1
	fi
done
exit $missing
