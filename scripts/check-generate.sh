#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Fails if a generated file is stale. `go generate` runs in a copy of the working tree, so that changes which are not committed count, and nothing is touched.

set -euo pipefail
cd "$(dirname -- "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z -co --exclude-standard | while IFS= read -r -d '' file; do
	if [ -e "$file" ] || [ -L "$file" ]; then # a deleted file is still in git's list
		printf '%s\0' "$file"
	fi
done | tar --create --null --no-recursion --files-from=- | tar --extract --directory="$copy"
cp -a "$copy" "$copy.before"
trap 'rm -rf "$copy" "$copy.before"' EXIT

(cd "$copy" && go generate ./...)
if ! diff --recursive --unified "$copy.before" "$copy" | sed "s|$copy.before|committed|g; s|$copy|generated|g"; then
	echo "check-generate: generated files are stale: run \`make generate\`" >&2
	exit 1
fi
