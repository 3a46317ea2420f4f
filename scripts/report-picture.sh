#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Draws the README's picture of a report: docs/report.svg, from a trace (default: what `make demo` left).
set -euo pipefail
cd "$(dirname "$0")/.."

trace=${1:-build/demo.bin}
cache=${MEMTRACE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/memtrace}
venv=$cache/tools/picture
if [ ! -x "$venv/bin/python" ]; then
	python3 -m venv "$venv"
	"$venv/bin/pip" install -q 'rich==14.*'
fi
build/memtrace report --color always --width 100 "$trace" | "$venv/bin/python" -c '
import re
import sys
from rich.console import Console
from rich.text import Text
console = Console(record=True, width=100, file=open("/dev/null", "w"), color_system="standard", force_terminal=True)
console.print(Text.from_ansi(sys.stdin.read()))
svg = console.export_svg(title="memtrace report")
svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S)  # the fonts would come from elsewhere
open("docs/report.svg", "w").write(svg.replace("Fira Code, monospace", "monospace").replace("Fira Code", "monospace"))
'
echo "docs/report.svg drawn from $trace"
