#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the pinned tools of internal/tools/requirements.txt, or of the list named, into a virtual environment of the cache, once, and prints the folder of
# their commands. PYTHON chooses the interpreter.
#
# Usage: scripts/python-tools.sh [LIST]

set -euo pipefail
cd "$(dirname -- "$0")/.."

python=${PYTHON:-python3}
cache=${MEMTRACE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/memtrace}
wanted=${1:-internal/tools/requirements.txt}
mkdir -p "$cache/venvs"
mapfile -t lists < <(echo "$wanted" && sed -n "s|^-r |${wanted%/*}/|p" "$wanted") # and those that it names
key=$({ "$python" -c 'import sys; print(sys.executable, sys.version)'; cat "${lists[@]}"; } | sha256sum | cut -c1-12)
venv=$cache/venvs/tools-$key

exec 9>"$venv.lock"
flock 9
if [ ! -e "$venv/ready" ]; then
	echo "python-tools: installing $(cat "${lists[@]}" | grep -c ==) tools" >&2
	rm -rf "$venv"
	if ! { "$python" -m venv "$venv" && "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$wanted"; } >&2; then
		echo "python-tools: cannot install the tools; they need the Python package index and Python's venv module" >&2
		exit 1
	fi
	touch "$venv/ready"
fi
echo "$venv/bin"
