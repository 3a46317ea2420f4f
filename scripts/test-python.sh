#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests the Python package, arguments are passed on to pytest. PYTHON chooses the interpreter; its own pytest is used where it has one, else the pinned one of
# the cache. Tests against the real library run when build/libmemtrace.so is there (`make lib`).

set -euo pipefail
cd "$(dirname -- "$0")/.."

python=${PYTHON:-python3}
if ! "$python" -c 'import pytest' 2>/dev/null; then
	python=$(scripts/python-tools.sh internal/tools/test-requirements.txt)/python
fi
cd python
exec "$python" -m pytest -q "${@:-tests}"
