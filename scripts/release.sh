#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes what a release consists of, in dist/: wheels, packages and their checksums, from a clean checkout of the tag vVERSION, and tests it. Uploads nothing.

set -euo pipefail
cd "$(dirname -- "$0")/.."

refuse() {
	echo "release: $1" >&2
	exit 1
}

version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' python/memtrace/__init__.py)
[ -n "$version" ] || refuse "python/memtrace/__init__.py names no version"
[ -z "$(git status --porcelain)" ] || refuse "the tree has changes: commit them or put them aside"
tag=$(git describe --exact-match --tags HEAD 2>/dev/null) || refuse "this commit has no tag: git tag v$version"
[ "$tag" = "v$version" ] || refuse "this commit is tagged $tag, but python/memtrace/__init__.py says $version: make them agree"

rm -rf dist
make test-wheel
(cd dist && sha256sum -- *.whl *.deb *.rpm >SHA256SUMS)
cat dist/SHA256SUMS
echo "release: $tag lies in dist/" >&2
