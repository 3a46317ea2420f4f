# SPDX-License-Identifier: Apache-2.0
"""The score: claims that held or not, numbers side by side, and costs as paired ratios; printed as it grows, and written as JSON in the end."""

import json
import statistics

SCHEMA = "memtrace.gpu-check/1"
PASS, FAIL, SKIP = "PASS", "FAIL", "SKIP"


class Score:
    """Collects results. `machine` describes what they were obtained on and is filled in by whoever finds out."""

    def __init__(self):
        self.machine = {}
        self.checks = []
        self.numbers = []
        self.costs = []

    # --- claims

    def begin(self, name):
        self.checks.append({"name": name, "seconds": 0.0, "claims": [], "notes": []})
        print(f"--- {name}", flush=True)

    def claim(self, verdict, claim, detail=""):
        self.checks[-1]["claims"].append({"verdict": verdict, "claim": claim, "detail": detail})
        _say(verdict, claim, detail)

    def note(self, text):
        self.checks[-1]["notes"].append(text)
        _say("    ", text, "")

    def end(self, seconds):
        self.checks[-1]["seconds"] = round(seconds, 1)

    def count(self, verdict):
        return sum(claim["verdict"] == verdict for check in self.checks for claim in check["claims"])

    def line(self):
        """The closing line."""
        skipped = self.count(SKIP)
        return f"{self.count(PASS)} passed, {self.count(FAIL)} failed" + (f", {skipped} skipped" if skipped else "")

    # --- tables

    def number(self, run, what, memtrace, torch=None, nvml=None):
        """A number as memtrace has it beside torch's or NVML's; the difference is memtrace's minus the other."""
        other = torch if torch is not None else nvml
        self.numbers.append({"run": run, "what": what, "torch": torch, "nvml": nvml, "memtrace": memtrace,
                             "difference": None if other is None else memtrace - other})

    def cost(self, what, unit, plain, traced, ratio=True):
        """Paired measurements in `unit`, pair i of both lists taken next to each other. The third column is traced over plain, or their difference."""
        pairs = list(zip(plain, traced))
        compared = [b / a if ratio else b - a for a, b in pairs]
        row = {"what": what, "unit": unit, "pairs": len(pairs), "compared_as": "ratio" if ratio else "difference", "plain": _spread(plain),
               "traced": _spread(traced), "compared": _spread(compared)}
        self.costs.append(row)
        return row

    def tables(self):
        """Both tables as Markdown."""
        lines = []
        if self.numbers:
            lines += ["", "| run | number | torch | NVML | memtrace | difference |", "|---|---|---|---|---|---|"]
            lines += [f"| {row['run']} | {row['what']} | {_figure(row['torch'])} | {_figure(row['nvml'])} | {_figure(row['memtrace'])} | "
                      f"{_figure(row['difference'])} |" for row in self.numbers]
        if self.costs:
            lines += ["", "| what, median (quartiles) | pairs | plain | traced | ratio or difference |", "|---|---|---|---|---|"]
            for row in self.costs:
                sign, digits = ("", 3) if row["compared_as"] == "ratio" else ("+", 2)
                lines.append(f"| {row['what']}, {row['unit']} | {row['pairs']} | {_quartiles(row['plain'])} | {_quartiles(row['traced'])} | "
                             f"{_quartiles(row['compared'], digits, sign)} |")
        return "\n".join(lines)

    def write(self, path):
        document = {"schema": SCHEMA, "machine": self.machine, "passed": self.count(PASS), "failed": self.count(FAIL), "skipped": self.count(SKIP),
                    "checks": self.checks, "numbers": self.numbers, "costs": self.costs}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1) + "\n")


def _say(verdict, claim, detail):
    print(f"{verdict} {claim}" + (f": {detail}" if detail != "" else ""), flush=True)


def _spread(values):
    """First quartile, median and third quartile."""
    if len(values) < 2:
        return {"q1": values[0], "median": values[0], "q3": values[0]}
    q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return {"q1": q1, "median": median, "q3": q3}


def _quartiles(spread, digits=2, sign=""):
    return f"{spread['median']:{sign}.{digits}f} [{spread['q1']:.{digits}f}, {spread['q3']:.{digits}f}]"


def _figure(value):
    return "" if value is None else f"{value:,}"
