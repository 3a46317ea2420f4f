# SPDX-License-Identifier: Apache-2.0
"""Watches a leaking program by its metrics, as a Prometheus server would, and draws what it saw: docs/metrics-leak.svg. scripts/metrics-leak.sh calls it.

    metrics-leak.py MEMTRACE OUTPUT PROGRAM...
"""

import html
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

SAMPLE = re.compile(r'(\w+)\{(.*)\} (\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
MIB = 1 << 20
SHOWN = 4  # owners with a colour of their own

WIDTH, HEIGHT = 900, 400
LEFT, RIGHT, TOP, BOTTOM = 60, 250, 40, 45
COLORS = ["#c2410c", "#1d4ed8", "#0e7490", "#4d7c0f"]
REST, SLACK, REMAINDER = "#a8a29e", "#d6d3d1", "#f0efed"


def scrape(address):
    """The samples of the only recorded process, by name and label; None before there is one and the driver counts it."""
    with urllib.request.urlopen(address, timeout=30) as answer:
        text = answer.read().decode()
    samples = {}
    for line in text.splitlines():
        match = SAMPLE.fullmatch(line)
        if match and 'process_pid="' in match.group(2):
            labels = dict(LABEL.findall(match.group(2)))
            key = labels.get("owner") or labels.get("level", "")
            samples[match.group(1), key] = samples.get((match.group(1), key), 0) + float(match.group(3))
    return samples if {("memtrace_memory_bytes", "driver"), ("memtrace_device_memory_bytes", "")} <= samples.keys() else None


def watch(memtrace, program):
    """Scrapes every second while the program runs. Returns (seconds, samples) pairs."""
    server = subprocess.Popen([memtrace, "top", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, encoding="utf-8",
                              env={**os.environ, "LD_LIBRARY_PATH": os.environ["NULLCUDA_FOLDER"]})
    address = re.search(r"http://\S+", server.stderr.readline()).group()
    seen, begin = [], time.monotonic()
    guest = subprocess.Popen(program, env={**os.environ, "LD_PRELOAD": os.environ["MEMTRACE_LIBRARY"]})
    while guest.poll() is None:
        samples = scrape(address)
        if samples:
            seen.append((time.monotonic() - begin, samples))
        time.sleep(1)
    server.terminate()
    server.wait()
    most = max((samples["memtrace_memory_bytes", "framework"] for _, samples in seen), default=0)
    while seen and seen[-1][1]["memtrace_memory_bytes", "framework"] < most / 2:
        seen.pop()  # the program was already giving everything back
    if guest.returncode != 0 or len(seen) < 10:
        raise SystemExit(f"the program ended with {guest.returncode}, and {len(seen)} scrapes saw it")
    return [(at - seen[0][0], samples) for at, samples in seen]


def bands(seen):
    """(name, color, values) from the bottom up: what stays, what grows, then what no block holds."""
    owners = {key for _, samples in seen for name, key in samples if name == "memtrace_owner_memory_bytes"}
    column = {key: [samples.get(("memtrace_owner_memory_bytes", key), 0) for _, samples in seen] for key in owners}
    grown = sorted(owners, key=lambda key: column[key][-1] - column[key][len(seen) // 4], reverse=True)
    leak, others = grown[0], sorted(grown[1:], key=lambda key: max(column[key]), reverse=True)
    rest = [sum(column[key][i] for key in others[SHOWN - 1:]) for i in range(len(seen))]
    list_of = [(key, COLORS[n + 1], column[key]) for n, key in enumerate(others[:SHOWN - 1])]
    if any(rest):
        list_of.append(("others", REST, rest))
    list_of.append((leak, COLORS[0], column[leak]))
    for title, color, name in (("slack", SLACK, "memtrace_slack_bytes"), ("remainder (context)", REMAINDER, "memtrace_remainder_bytes")):
        list_of.append((title, color, [samples.get((name, ""), 0) for _, samples in seen]))
    used = [samples["memtrace_device_memory_bytes", ""] for _, samples in seen]
    for i, (at, _) in enumerate(seen):
        total = sum(values[i] for _, _, values in list_of)
        assert total == used[i], f"at {at:.1f} s owners, slack and remainder are {total}, and the driver says {used[i]}"
    return list_of, leak


def short(owner):
    """leaking.py:22 for testdata/growth/leaking.py:22 <module>."""
    return owner.split(" <")[0].rsplit("/", 1)[-1]


def draw(seen):
    list_of, leak = bands(seen)
    times = [at for at, _ in seen]
    highest = max(sum(values[i] for _, _, values in list_of) for i in range(len(times))) / MIB
    step = next(s for s in (50, 100, 200, 250, 500, 1000, 2000) if highest / s <= 6)

    def x(at):
        return LEFT + at / times[-1] * (WIDTH - LEFT - RIGHT)

    def y(mib):
        return HEIGHT - BOTTOM - mib / highest * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" fill="#292524">',
           f'<title>GPU memory of a leaking program, as its metrics tell it</title><rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           f'<text x="{LEFT}" y="22" font-size="14" font-weight="bold">memtrace_owner_memory_bytes, slack and remainder of one process (MiB)</text>']
    floor = [0.0] * len(times)
    labels = []
    for name, color, values in list_of:
        ceiling = [low + value / MIB for low, value in zip(floor, values)]
        there = " ".join(f"{x(at):.1f},{y(high):.1f}" for at, high in zip(times, ceiling))
        back = " ".join(f"{x(at):.1f},{y(low):.1f}" for at, low in reversed(list(zip(times, floor))))
        out.append(f'<polygon points="{there} {back}" fill="{color}" stroke="#ffffff" stroke-width="0.6"/>')
        labels.append([(y(ceiling[-1]) + y(floor[-1])) / 2, name, color, values[-1] / MIB])
        floor = ceiling
    for tick in range(0, int(highest) + 1, step):
        out.append(f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="#000000" stroke-opacity="0.12"/><text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick}</text>')
    for tick in range(0, int(times[-1]) + 1, 10):
        out.append(f'<text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick} s</text>')
    out.append(f'<path d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - RIGHT}" stroke="#292524"/>')
    place = HEIGHT - BOTTOM + 10
    for at, name, color, mib in labels:  # from the bottom up, not closer than a line
        place = min(at + 4, place - 17)
        weight = ' font-weight="bold"' if name == leak else ""
        out.append(f'<rect x="{WIDTH - RIGHT + 10}" y="{place - 9:.1f}" width="10" height="10" fill="{color}" stroke="#78716c" stroke-width="0.5"/>'
                   f'<text x="{WIDTH - RIGHT + 26}" y="{place:.1f}"{weight}>{html.escape(short(name))}, {mib:.0f}</text>')
    told = [(at, samples["memtrace_growth_bytes", ""]) for at, samples in seen if samples.get(("memtrace_growth_bytes", ""), 0) > 0]
    if not told:
        raise SystemExit("memtrace_growth_bytes never told of the leak")
    first = told[0][0]
    out.append(f'<path d="M{x(first):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#292524" stroke-dasharray="4 3"/>'
               f'<text x="{x(first) + 6:.1f}" y="{TOP + 14}">memtrace_growth_bytes &gt; 0</text>'
               f'<text x="{x(first) + 6:.1f}" y="{TOP + 30}">at the end {told[-1][1] / MIB:.1f} MiB</text></svg>')
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    picture = draw(watch(sys.argv[1], sys.argv[3:]))
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(picture)
