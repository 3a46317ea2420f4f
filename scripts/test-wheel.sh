#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests the wheels in dist/ (`make wheel`): contents, platform, bill of materials, the same bytes twice, and at work: in empty environments of the oldest and the newest
# Python, on glibc 2.31, for aarch64 under emulation, and from sources. Fetches interpreters and PyTorch for the null GPU, once. Arguments are passed on to pytest.

set -euo pipefail
cd "$(dirname -- "$0")/.."

tools=$(scripts/python-tools.sh internal/tools/wheel-requirements.txt)
exec "$tools/python" -m pytest -q --durations=5 python/release/tests "$@"
