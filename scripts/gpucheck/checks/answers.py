# SPDX-License-Identifier: Apache-2.0
"""What the report says of programs whose truth is known: which of them leak, what gives memory back, what compiled kernels hold."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from harness import Unmet, last_object

MIB = 1 << 20
WORKERS = max(1, min(6, (os.cpu_count() or 1) // 2))
HARDWARE = 380  # MiB that a context, cuBLAS and its workspaces have more on hardware than on the null GPU, for which the sizes in refused.json are


def growth(harness):
    """The corpus of programs that leak and of those that only seem to: no false alarm, and each leak by its line and amount."""
    path = harness.root / "testdata" / "growth" / "programs.py"
    leaks, healthy = _corpus(path)
    names = [*healthy, *leaks]
    with ThreadPoolExecutor(WORKERS) as pool:
        outcomes = dict(pair for part in pool.map(lambda n: _grow(harness, path, n), [names[i::2 * WORKERS] for i in range(2 * WORKERS)]) for pair in part)
    for claim, some in ((f"{len(leaks)} leaks are named, by line and amount", leaks), (f"{len(healthy)} healthy programs raise no alarm", healthy)):
        wrong = [f"{name}: {word}" for name in some if (word := _judge(outcomes.get(name), leaks.get(name)))]
        harness.expect(claim, not wrong, "; ".join(wrong))


def _corpus(path):
    """Leaking programs with the line whose memory stays, and the names of healthy ones. Slow leaks are left to the null GPU."""
    leaks, healthy, kind, name, slow = {}, [], "", "", False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        function, mark = re.match(r"def (\w+)\(", line), re.search(r"# leak(?:: (\w+))?$", line)
        if line in ("@leak", "@slow_leak", "@healthy"):
            kind, slow = line, line == "@slow_leak"
        elif function and kind:
            name = function[1]
            if kind == "@healthy":
                healthy.append(name)
            kind = ""
        elif mark and not slow:
            leaks[mark[1] or name] = f"{path.name}:{number} "
    return leaks, healthy


def _grow(harness, path, names):
    """Runs some of the programs; yields each one's name with its growing memory and its own count of what leaked."""
    finished = harness.run([sys.executable, path, *names], harness.folder / "growth.%p.bin", seconds=240)
    words = finished.stdout.split()
    if finished.returncode:
        harness.note(f"{' '.join(names)}: status {finished.returncode}: {finished.stderr.strip()[-300:]}")
    outcomes = []
    for name, pid, leaked in zip(words[::3], words[1::3], words[2::3]):
        report = harness.report(harness.folder / f"growth.{pid}.bin")
        trends = [report.get("trend") or {}, *report.get("other_trends", [])]
        outcomes.append((name, ([t for t in trends if t.get("kind") == "steady"], float(leaked))))
    return outcomes


def _judge(outcome, line):
    """What is wrong with the judgement on a program, "" if nothing."""
    if outcome is None:
        return "did not run"
    growing, leaked = outcome
    found = [(t["bytes"], [owner.get("site", "") for owner in t.get("owners", [])[:1]]) for t in growing]
    if line is None:
        return f"said to grow by {found}" if found else ""
    if len(found) != 1 or not found[0][1] or line not in found[0][1][0]:
        return f"leaks {leaked:.0f} at {line}, said: {found}"
    return "" if abs(found[0][0] - leaked) <= leaked / 5 else f"leaks {leaked:.0f}, said {found[0][0]}"


def refusals(harness):
    """What is advised when memory runs out is followed, and gives back what was said. Another process leaves as much of the device as a case has."""
    cases = [c for c in json.loads((harness.root / "testdata" / "train" / "refused.json").read_text()) if c.get("by") in ("allocated", "reserved", "peak")]
    refused = []
    for case in cases:
        with _leaving(harness, case["mib"]):
            refused.append(_refused(harness, case))
    with ThreadPoolExecutor(WORKERS) as pool:
        for case, event, followed in pool.map(lambda pair: (*pair, _followed(harness, *pair)), zip(cases, refused)):
            _compare(harness, case, event, followed)


def _leaving(harness, mib):
    """Another process that leaves so many MiB of the device, as a null GPU of that size has."""
    return harness.second_process(-(mib + (0 if harness.null_gpu else HARDWARE)) * MIB, **_account(harness))


def _account(harness):
    """The null GPU: what both processes share."""
    return {"NULLCUDA_SHARED": str(harness.folder / "null-account")}


def _program(harness):
    return harness.root / "testdata" / "train" / "refused.py"


def _refused(harness, case):
    trace = harness.folder / f"refused-{case['name']}.bin"
    finished = harness.run([sys.executable, _program(harness), case["name"]], trace, seconds=60, **_account(harness))
    report = harness.report(trace)
    failed = [event for event in report["oom"]["events"] if event["outcome"] == "failed"]
    if not failed or "{" not in finished.stdout:
        harness.note(f"{case['name']}: memory did not run out: status {finished.returncode} {finished.stderr.strip()[-200:]}")
        return None
    return {**failed[0], "points": last_object(finished.stdout)["points"]}


def _followed(harness, case, event):
    if event is None:
        return None
    variables = dict(setting.split("=", 1) for setting in case.get("environment", []))
    argv = [sys.executable, _program(harness), case["name"], "--followed", "--stop", event["points"]]
    finished = harness.run(argv, seconds=120, **variables)
    return last_object(finished.stdout) if "{" in finished.stdout else None


def _compare(harness, case, event, followed):
    claim = f"{case['name']}: {case['rule']} gives back what is said"
    if event is None or followed is None:
        harness.expect(claim, False, "the program did not get there")
        return
    advice = [row for row in event["advice"] if row["rule"] == case["rule"]]
    wrong = [row["rule"] for row in event["advice"] if any(w == row["rule"] or w[0].isupper() and w in row["text"] for w in case.get("wrong", []))]
    harness.expect(f"{case['name']}: nothing is said that does not help", not wrong, ", ".join(wrong))
    if not advice:
        harness.expect(claim, False, f"said: {', '.join(row['rule'] for row in event['advice'])}")
        return
    gives = {"allocated": event["allocated_bytes"] - followed["allocated"], "reserved": event["allocator"]["reserved_bytes"] - followed["reserved"],
             "peak": event["allocated_bytes"] - followed["peak"]}[case["by"]]
    says = advice[0]["frees_bytes"]
    harness.expect(claim, abs(gives - says) <= says / 10 + event["requested_bytes"], f"said {says / MIB:.0f} MiB, gives {gives / MIB:.0f} MiB")


def compiled(harness):
    """What a compiled model allocates is told by the operators of the kernel that it is for."""
    trace = harness.folder / "compiled.bin"
    variables = {"TORCHINDUCTOR_CACHE_DIR": str(harness.folder / "kernels"), "TRITON_CACHE_DIR": str(harness.folder / "triton")}
    printed = harness.run_python(harness.root / "testdata" / "train" / "compiled.py", trace=trace, seconds=150, **variables)
    held = {row["key"]: row["bytes"] for row in (harness.report(trace).get("division") or {}).get("rows", [])}
    harness.expect_equal("what the results of gelu and sin hold", held.get("compiled: gelu, sin"), printed)
    harness.note(f"kernels: {held}")


def referrers(harness):
    """Which variable keeps the memory that a failed request needed is in the text beside the trace."""
    trace = harness.folder / "kept.bin"
    with _leaving(harness, 900):
        harness.run([sys.executable, _program(harness), "results"], trace, seconds=60, **_account(harness))
    texts = sorted(harness.folder.glob(f"{trace.name}.oom.*.txt"))
    text = texts[0].read_text() if texts else ""
    line = next((line.strip() for line in text.splitlines() if ", variable " in line), "not found")
    harness.expect("the variable that keeps it is named", line.endswith("variable kept[*]"), line)


def kept_by(harness):
    """What is said to be freed with a variable is freed, by PyTorch's count, when the program lets go of it."""
    program = harness.root / "testdata" / "train" / "kept_by.py"
    modes = re.findall(r"^def (\w+)\(\):", program.read_text(), re.M)
    with ThreadPoolExecutor(WORKERS) as pool:
        for mode, freed, said, most in pool.map(lambda mode: _kept(harness, program, mode), modes):
            low, high = freed - freed / 10 - MIB / 16, freed + freed / 10 + MIB / 16
            harness.expect(f"kept_by.py {mode}: what is freed with it is told", said >= low and (most or said <= high), f"said {said}, freed {freed}")


def _kept(harness, program, mode):
    """What the program freed, what was said to be freed, and whether that was said to be the most."""
    trace = harness.folder / f"kept-{mode}.bin"
    finished = harness.run([sys.executable, program, mode], trace, seconds=120, MEMTRACE_REFERRERS="60000")
    if finished.returncode:
        raise Unmet(f"kept_by.py {mode} ended with status {finished.returncode}: {finished.stderr.strip()[-300:]}")
    rows = [row for row in (harness.report(trace).get("kept_by") or {}).get("holders", []) if row["path"].startswith("__main__.kept")]
    return mode, last_object(finished.stdout)["freed"], sum(row["frees_bytes"] for row in rows), any(row.get("frees_at_most") for row in rows)


def attach(harness):
    """A program that runs without the library is attached to, and what it allocates from then on is in the trace."""
    trace = harness.folder / "attached.bin"
    source = ("import torch, sys; old = torch.empty(1 << 26, dtype=torch.uint8, device='cuda'); print('ready', flush=True); sys.stdin.readline(); "
              "new = torch.empty(5 << 26, dtype=torch.uint8, device='cuda'); print('done', flush=True); sys.stdin.readline()")
    guest = harness.start([sys.executable, "-c", source], stdin=subprocess.PIPE)
    try:
        harness.line(guest, "the program")
        attached = subprocess.run([str(harness.command), "attach", str(guest.pid), "-o", str(trace)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  universal_newlines=True, timeout=60, env=harness.environment())
        if not harness.expect("a running program is attached to", attached.returncode == 0, attached.stdout.strip()[-300:]):
            return
        for _ in range(2):
            guest.stdin.write("\n")
            guest.stdin.flush()
        harness.line(guest, "the program")
        guest.wait(30)
    finally:
        harness.end(guest)
    report = harness.report(trace)
    harness.expect("what it allocates from then on is in the trace", report["framework"]["peak_bytes"] >= 5 << 26, f"{report['framework']['peak_bytes']} bytes")
