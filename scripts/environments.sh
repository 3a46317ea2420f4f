#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs into the cache what a tier's end-to-end tests run on, so that it is there when they begin. They install what is missing by themselves, so a failure here is only
# printed. Nothing is installed twice.
#
# Usage: scripts/environments.sh [core|all]
set -uo pipefail
cd "$(dirname "$0")/.." || exit
tier=${1:-core}

environment() { # environment SPEC [PYTHON]: and Hugging Face's libraries for it
	local python=${2:-python3} folder
	folder=$(python3 testdata/nullcuda/venv.py "$1" --python "$python") || return
	case $1 in
	torch==2*) [ "$tier" = core ] || python3 testdata/python/packages.py --python "$folder/bin/python" ;;
	esac
}

interpreter() { python3 testdata/python/interpreters.py "$1"; }

environment torch==2.7.1
scripts/python-tools.sh internal/tools/test-requirements.txt
[ "$tier" = core ] && exit
scripts/python-tools.sh
newest=$(interpreter 3.14) && environment torch==2.15.0 "$newest"
old=$(interpreter 3.11) && environment mxnet-cu112==1.9.1 "$old" && environment torch==1.13.1 "$old"
scripts/python-tools.sh internal/tools/wheel-requirements.txt
exit 0
