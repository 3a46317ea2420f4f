#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The steps of action.yml, which passes its inputs as variables. The package is installed into a folder of its own: the program's environment stays as it is.
#
# Usage: scripts/action.sh install     writes `package` to $GITHUB_OUTPUT, and the command's folder to $GITHUB_PATH
#        scripts/action.sh check       records $COMMAND and checks; writes `status` and the paths of what it wrote to $GITHUB_OUTPUT

set -euo pipefail

here=$(cd -- "$(dirname -- "$0")/.." && pwd)

fail() {
	echo "::error title=memtrace::$1"
	exit 2
}

give() { echo "$1=$2" >>"$GITHUB_OUTPUT"; }

install() {
	local package=$RUNNER_TEMP/memtrace what
	what=("$here") # the sources
	if [ -n "$WHEEL" ]; then
		what=("$WHEEL")
		[[ $WHEEL == *://* || -f $WHEEL ]] || fail "wheel: there is no file $WHEEL; name the path or the URL of one wheel"
	elif [ -n "$VERSION" ]; then
		what=("memtrace-gpu==$VERSION")
	elif [[ $RELEASE =~ ^v[0-9] ]]; then # pip finds this machine's wheel among the files of the release
		what=(--no-index --find-links "$GITHUB_SERVER_URL/$REPOSITORY/releases/expanded_assets/$RELEASE" memtrace-gpu)
	fi
	rm -rf "$package"
	PIP_ROOT_USER_ACTION=ignore "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-deps --target "$package" "${what[@]}" ||
		fail "memtrace cannot be installed; name a wheel or a version"
	give package "$package"
	echo "$package/memtrace/_bin" >>"$GITHUB_PATH"
	"$package/memtrace/_bin/memtrace" --version
}

# record FOLDER: runs the command, whose status comes first.
record() {
	local device=()
	case $NULL_GPU in
	false | "") ;;
	true) device=(--null-gpu) ;;
	*) device=("--null-gpu=$NULL_GPU") ;;
	esac
	export PYTHONPATH=$PACKAGE${PYTHONPATH:+:$PYTHONPATH}
	"$memtrace" run --quiet "${device[@]}" -o "$1/%e.%p.bin" -- bash -e -o pipefail -c "$COMMAND"
}

# lines FLAG TEXT: the flag before each line of an input.
lines() {
	local line
	while IFS= read -r line; do
		[ -z "${line// /}" ] || flags+=("$1" "$line")
	done <<<"$2"
}

check() {
	local status=0 folder flags=() traces=()
	memtrace=$PACKAGE/memtrace/_bin/memtrace
	folder=$(mktemp -d "$RUNNER_TEMP/memtrace-check.XXXXXX")
	give folder "$folder"
	if [ -n "$COMMAND" ]; then
		[ -z "$TRACES" ] || fail "command and traces: give one of them"
		mkdir "$folder/traces"
		give traces "$folder/traces"
		record "$folder/traces" || status=$?
		if [ "$status" != 0 ]; then
			give status program
			exit "$status"
		fi
		traces=("$folder/traces")
	else
		mapfile -t traces < <(grep -v '^ *$' <<<"$TRACES")
		[ "${#traces[@]}" -gt 0 ] || fail "give a command, or traces"
	fi
	[ -z "$BUDGET" ] || flags+=(--budget "$BUDGET")
	# A run is one of a budget, which --run wants named.
	[ -z "$RUN" ] || flags+=(--run "$RUN")
	[ -z "$BASELINE" ] || flags+=(--baseline "$BASELINE")
	[ -z "$TOLERANCE" ] || flags+=(--tolerance "$TOLERANCE")
	lines --max "$MAX"
	lines --assert "$ASSERT"
	"$memtrace" check "${flags[@]}" --markdown="$folder/memory.md" --junit "$folder/memory.xml" --sarif "$folder/memory.sarif" "${traces[@]}" ||
		status=$?
	case $status in
	0) give status passed ;;
	1) give status failed ;;
	*) give status error ;;
	esac
	if [ -e "$folder/memory.md" ]; then
		give report "$folder/memory.md"
		give junit "$folder/memory.xml"
		give sarif "$folder/memory.sarif"
	fi
	exit "$status"
}

case ${1:-} in
install) install ;;
check) check ;;
*) echo "action: install or check" >&2 && exit 2 ;;
esac
