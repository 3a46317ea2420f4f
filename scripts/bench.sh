#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Measures what memtrace costs and prints the tables of docs/measurements.md; --write puts them between their markers there, --only costs,events,storms,step,training,reading,ranks
# chooses some, --quick only shows that everything runs. The comparison with memray (installed for it alone) and heaptrack (if it is there) can be left out by
# --no-peers, all that needs PyTorch by --no-torch. Takes about half an hour on a quiet machine; --quick five minutes.

set -euo pipefail
cd "$(dirname -- "$0")/.."
exec "${PYTHON:-python3}" testdata/bench/main.py "$@"
