#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Counts the instructions of the hook path under callgrind and compares them with testdata/bench/instructions.txt: exit status 1 if an event got dearer by more
# than 5 %. --accept "reason" writes what changed, with the reason beside it. Needs valgrind and the built library; takes about ten seconds.

set -euo pipefail
cd "$(dirname -- "$0")/.."
exec "${PYTHON:-python3}" testdata/bench/guard.py "$@"
