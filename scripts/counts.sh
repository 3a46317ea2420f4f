#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Counts what the structure of the project is judged by: packages, imports between them, exported names, methods of the largest type, lines, words of documents.
#
# Usage: scripts/counts.sh [COMMIT]     of a commit instead of the files as they are
set -euo pipefail
cd "$(dirname "$0")/.."
if (($#)); then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	git archive "$1" | tar -x -C "$work"
	cd "$work"
	git init -q . && git add -A
fi

row() { printf '%9s  %s\n' "$1" "$2"; }
lines() { xargs -r cat | wc -l; }
files() { git ls-files -- "$@"; }

packages() { go list -f "$1" ./... | grep -vE '^memtrace/(tools|internal/(e2e|hostile|browser|archtest|arrows|guest|faults|account|contradiction|gen[a-z]*|drawrooms|hooklist|lazyrela|pgo|testreport))\b'; }

row "$(packages '{{.ImportPath}}' | wc -l)" "packages that ship"
row "$(packages '{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}
{{end}}' | grep -c ' memtrace/')" "imports between packages, of those that ship"
row "$(packages '{{.ImportPath}}' | grep -vcE '/internal/|/cmd/|/interpose')" "public packages"
row "$(files 'trace/*.go' 'analyzer/*.go' 'cuda/*.go' | grep -v _test | xargs grep -hE '^(func (\([^)]*\) )?[A-Z]|type [A-Z]|(var|const) [A-Z])' | wc -l)" "exported functions, methods, types, variables and constants declared alone in them"
row "$(files '*.go' | grep -v _test | xargs grep -oHE '^func \(\w* ?\*?\w+' | sed -E 's#/[^/]+\.go:func \(\w* ?\*?# #' | sort | uniq -c | sort -rn | awk 'NR == 1 { print $1 " (" $2 "." $3 ")" }')" "methods of the largest type"
row "$(files '*.go' | grep -v _test | lines)" "lines of Go"
row "$(files '*_test.go' | lines)" "lines of Go tests"
row "$(files 'cshim/*.[ch]' | grep -v ctest | lines)" "lines of C in the library"
row "$(files 'cshim/ctest/*' 'testdata/*.[ch]' | lines)" "lines of C tests, test programs and the null GPU"
row "$(files '*.py' | lines)" "lines of Python"
row "$(files '*.txtar' | lines)" "lines of fixtures"
row "$(files '*.md' | xargs cat | wc -w)" "words of documents"
