#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Measures what memtrace costs and prints the tables of docs/measurements.md; --write puts them there, --quick only shows that everything runs, --memray adds
# memray to the comparison, --no-torch leaves PyTorch out. Takes about ten minutes on a quiet machine.

set -euo pipefail
cd "$(dirname -- "$0")/.."
exec "${PYTHON:-python3}" testdata/bench/main.py "$@"
