#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Style and static checks of everything in the tree. Prints a line per check, and what a failed one says. Tools are pinned: Go's in internal/tools/go.mod,
# Python's and the shell's in internal/tools/requirements.txt.
#
# Usage: scripts/lint.sh [CHECK...]     all checks if none is named

set -uo pipefail
cd "$(dirname -- "$0")/.." || exit

c_flags=(-std=gnu11 -O2 -Wall -Wextra -Werror -fvisibility=hidden -c -o /dev/null)

# tracked PATTERN...: files that match and exist, new ones included.
tracked() { git ls-files -co --exclude-standard -- "$@" | while read -r file; do [ -f "$file" ] && echo "$file"; done; }

# compiled FLAGS...: compiles each of the files on standard input, as many at a time as there are processors.
compiled() { xargs -P "$(nproc)" -n 1 gcc "${c_flags[@]}" "$@"; }

check_gofmt() {
	local files
	files=$(tracked '*.go' | xargs gofmt -l)
	[ -z "$files" ] || { echo "not formatted, run gofmt -w on:" && echo "$files" && return 1; }
}

# Without cgocall: it opens the source that the cached output of cgo names, and with -trimpath that is of whichever checkout compiled it first.
check_vet() { go vet -cgocall=false ./...; }

check_staticcheck() { go tool -modfile=internal/tools/go.mod staticcheck ./...; }

check_arrows() { go test ./internal/archtest; }

check_modules() { go mod tidy -diff && (cd internal/tools && go mod tidy -diff) && go mod verify; }

check_third_party() { scripts/check-third-party.sh; }

# The library's half in C, each header also on its own. The build compiles the same files with the same warnings.
check_c_library() {
	local bad=0 file
	tracked ':(glob)cshim/*/*.c' ':!cshim/ctest' | compiled -Icshim || bad=1
	for file in $(tracked 'cshim/*.h' ':!cshim/ctest'); do
		gcc "${c_flags[@]}" -D_GNU_SOURCE -Icshim -Wno-unused-function -Wno-unused-variable -x c <(printf '#include "%s"\n' "$PWD/$file") || bad=1
	done
	return $bad
}

check_c_nullcuda() {
	local bad=0 flags=(-D_GNU_SOURCE -fPIC -pthread)
	tracked 'testdata/nullcuda/driver/*.c' 'testdata/nullcuda/nvml/*.c' 'testdata/nullcuda/shared/*.c' 'testdata/nullcuda/redirect/*.c' | compiled "${flags[@]}" || bad=1
	tracked 'testdata/nullcuda/runtime/*.c' | compiled "${flags[@]}" -Itestdata/nullcuda/runtime -DRT_MAJOR=12 || bad=1
	return $bad
}

check_shell() { tracked '*.sh' | xargs "$(scripts/python-tools.sh)/shellcheck" --severity=warning; }

# The shell of the workflows' steps as well.
check_workflows() {
	local lint=(go tool -modfile=internal/tools/go.mod actionlint -shellcheck "$(scripts/python-tools.sh)/shellcheck")
	"${lint[@]}" && "${lint[@]}" testdata/ci/github*.yml
}

# The action, and the recipes of docs/ci.md, by the schemas of those who read them. Jenkins' own check needs a controller: here its file is parsed as Groovy.
check_recipes() {
	local tools bad=0
	tools=$(scripts/python-tools.sh) || return
	"$tools/check-jsonschema" --builtin-schema vendor.github-actions action.yml || bad=1
	"$tools/check-jsonschema" --builtin-schema vendor.github-workflows testdata/ci/github*.yml || bad=1
	"$tools/check-jsonschema" --builtin-schema vendor.gitlab-ci testdata/ci/gitlab-ci.yml || bad=1
	"$tools/check-jsonschema" --schemafile docs/memtrace.schema.json testdata/ci/sample/memtrace.toml || bad=1
	"$tools/python" -c 'import sys; from groovy_parser.parser import parse_groovy_content as parse; parse(sys.stdin.read())' <testdata/ci/Jenkinsfile || bad=1
	return $bad
}

check_python() { tracked '*.py' | xargs "$(scripts/python-tools.sh)/ruff" check --quiet; }

check_types() { (tools=$(scripts/python-tools.sh) && MYPY_CACHE_DIR=$tools/../mypy "$tools/mypy" --no-error-summary); }

# Text files end in a newline and have no blanks at the ends of lines; a blank in expected output is what a program printed.
check_blanks() {
	local bad=0 file
	if tracked '*.c' '*.h' '*.def' '*.go' '*.py' '*.sh' '*.md' '*.mk' Makefile | xargs grep -nP '[ \t\r]+$'; then bad=1; fi
	for file in $(tracked '*.c' '*.h' '*.go' '*.py' '*.sh' '*.md' '*.mk'); do
		if [ -s "$file" ] && [ "$(tail -c 1 "$file" | od -An -c | tr -d ' ')" != '\n' ]; then
			echo "$file: no newline at the end"
			bad=1
		fi
	done
	return $bad
}

checks=("$@")
[ $# -gt 0 ] || checks=(gofmt vet staticcheck arrows modules third_party c_library c_nullcuda shell workflows recipes python types blanks)
failed=0
for check in "${checks[@]}"; do
	if ! declare -F "check_$check" >/dev/null; then
		echo "lint: no check $check" >&2
		exit 2
	fi
	if output=$("check_$check" 2>&1); then
		echo "ok    $check"
	else
		echo "FAIL  $check"
		printf '      %s\n' "${output//$'\n'/$'\n'      }"
		failed=$((failed + 1))
	fi
done
echo "$((${#checks[@]} - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
