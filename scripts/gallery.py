# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/gallery.md, compares their values with `memtrace report --json`, and writes the page. scripts/gallery.sh calls it."""

import csv
import json
import os
import shlex
import subprocess
import sys

LAYERS = ["--group", "layer=mxnet-layers", "--group", "data=mxnet-data-structures"]
TBD = ["--group", "keyword=mxnet-tbd"]

# Heading, picture, kind, traces, flags of plot that report has, too, and those that it has not, and what the reader sees.
PICTURES = [
    ("What a training run in MXNet holds, by keyword", "keywords", "categories", ["mxnet-module"], TBD, [],
     "The keywords of TBD's profiler for MXNet. `MXNET_ENGINE_TYPE=NaiveEngine`: temporaries are the same in every run."),
    ("The same run divided twice: by layer and by data structure", "two-bars", "bars", ["mxnet-module"], LAYERS, [],
     "Parts of 5 % and more have a bracket; what no rule matches is white."),
    ("NeuMF on the sizes of MovieLens-20M, iteration by iteration", "neumf-iterations", "iterations", ["neumf"], [], [],
     "What each category held at the peak of each iteration, and what the allocator had reserved."),
    ("The same run over time", "neumf-timeline", "timeline", ["neumf"], [], ["--axis", "events"],
     "Each column shows its highest moment. The axis counts allocations and frees; below it are iterations and phases."),
    ("VGG-19 with two kinds of convolution", "vgg19-overlay", "overlay", ["vgg19-im2col", "vgg19-fft"], [], ["--align"],
     "One image of 256 x 256 pixels. Both runs begin at their first allocation."),
    ("As nvidia-smi sees it", "vgg19-sampled", "overlay", ["smi-im2col", "smi-fft"], [], ["--baseline", "--align"],
     "The same two runs, [imported](import.md) from a log of `nvidia-smi --query-gpu=memory.used --format=csv -lms 10`, less what the device held before: "
     "driver memory, without what came and went between two samples."),
    ("Several runs on one page", "categories-page", "categories", ["gpt2", "neumf", "vgg19-im2col", "vgg19-fft"], [], ["--min-share", "1", "--title", "Four programs at their peaks"],
     "One scale. Categories below 1 % of a run's total share a bar."),
    ("GPT-2 small: the call stacks of its peak", "gpt2-flamegraph", "flamegraph", ["gpt2"], [], [],
     "As `memtrace export flamegraph` draws it."),
    ("GPT-2 small: the sizes of its blocks", "gpt2-sizes", "sizes", ["gpt2"], [], [],
     "Few large blocks hold the memory; most allocations are small."),
    ("What the allocator took, and what keeps it", "segments", "segments", ["cached-embeddings"], ["--at", "teardown"], [],
     "Growing batches, of each of which a small result is kept. Small blocks pin large segments, since a segment is freed only as a whole; the largest hole limits the next request."),
]


def run(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def rows(path: str) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def first_sample(log: str) -> int:
    """What a device had in use when its log began, 0 if there is no log."""
    if not os.path.exists(log):
        return 0
    with open(log, encoding="utf-8") as file:
        return int(file.read().splitlines()[1].removesuffix(" MiB")) << 20


def expect(kind: str, values: list[dict[str, str]], reports: list[dict], bases: list[int]) -> list[tuple[str, int]]:
    """Numbers to print under a picture. bases are what --baseline takes off. Raises AssertionError where a picture and its report differ."""
    if kind in ("categories", "bars"):
        if len(reports) > 1:  # a panel each, of which small categories may be one bar
            told_totals = [r["framework"]["peak_bytes"] for r in reports]
            totals: dict[str, int] = {}
            for v in values:
                totals[v["group"]] = totals.get(v["group"], 0) + int(v["bytes"])
            assert list(totals.values()) == told_totals, (totals, told_totals)
            return list(totals.items())
        plotted = {(v["group"], v["name"]): int(v["bytes"]) for v in values}
        told = {}
        for group in reports[0]["categories"][: 2 if kind == "bars" else 1]:
            title = group["by"] if kind == "bars" else values[0]["group"]
            told.update({(title, word(row["key"])): row["bytes"] for row in group["rows"] if row["bytes"]})
            if group.get("untrackable", {}).get("bytes"):
                told[title, "Untrackable"] = group["untrackable"]["bytes"]
        assert plotted == told, (plotted, told)
        return [(f"{group}: {name}" if kind == "bars" else name, n) for (group, name), n in plotted.items()]
    if kind == "iterations":
        training = reports[0]["training"]
        last = [i for i in training["iterations"] if i["ended"]][-1]
        at = {v["name"]: int(v["bytes"]) for v in values if int(v["x"]) == last["number"]}
        for i in training["iterations"]:
            stack = sum(int(v["bytes"]) for v in values if int(v["x"]) == i["number"] and v["name"] != "reserved (peak)")
            assert not i["ended"] or stack == i["peak"]["bytes"], i["number"]
        held = dict(zip(map(word, training["categories"]), last["peak"]["held"], strict=True))
        assert at.pop("reserved (peak)") == last["reserved_peak_bytes"] and all(held[name] == n for name, n in at.items())
        return [(f"{name}, iteration {last['number']}", n) for name, n in at.items()] + [("reserved", last["reserved_peak_bytes"])]
    if kind == "timeline":
        stack: dict[str, int] = {}
        for v in values:
            if v["name"] != "driver memory" and not v["name"].startswith("what stays grows"):
                stack[v["x"]] = stack.get(v["x"], 0) + int(v["bytes"])
        driver = max(int(v["bytes"]) for v in values if v["name"] == "driver memory")
        assert (max(stack.values()), driver) == (reports[0]["framework"]["peak_bytes"], reports[0]["driver"]["peak_bytes"])
        return [("PyTorch's blocks, peak", max(stack.values())), ("driver memory, peak", driver)]
    if kind == "flamegraph":
        assert int(values[0]["bytes"]) == reports[0]["framework"]["peak_bytes"], values[0]
        lines = [v for v in values if v["depth"] == "3"]
        return [("all", int(values[0]["bytes"]))] + [(v["stack"].rsplit(";", 1)[1], int(v["bytes"])) for v in sorted(lines, key=lambda v: -int(v["bytes"]))[:5]]
    if kind == "sizes":
        live, made = sum(int(v["live_at_peak_bytes"]) for v in values), sum(int(v["allocations"]) for v in values)
        assert (live, made) == (reports[0]["framework"]["peak_bytes"], reports[0]["framework"]["alloc_count"]), (live, made)
        top = sorted(values, key=lambda v: -int(v["live_at_peak_bytes"]))[:3]
        return [("live at the peak", live)] + [(f"of it in blocks from {int(v['from_bytes']):,} bytes on", int(v["live_at_peak_bytes"])) for v in top]
    if kind == "segments":
        at = reports[0]["at"]["devices"][0]
        size, held = sum(int(v["segment_bytes"]) for v in values), sum(int(v["held_bytes"]) for v in values)
        assert (size, held) == (at["reserved_bytes"], at["framework"]["live_bytes"]), (size, held, at)
        return [("reserved", size), ("in blocks", held), ("largest hole", max(int(v["largest_hole_bytes"]) for v in values)),
                ("in segments that small blocks pin", sum(int(v["segment_bytes"]) for v in values if v["pinned_by"]))]
    highest: dict[str, int] = {}
    for v in values:
        highest[v["name"]] = max(highest.get(v["name"], 0), int(v["bytes"]))
    told_peaks = [(r["framework"]["peak_bytes"] or r["driver"]["peak_bytes"]) - base for r, base in zip(reports, bases, strict=True)]
    assert list(highest.values()) == told_peaks, (highest, told_peaks)
    return [(name.split(", peak")[0] + ", peak", n) for name, n in highest.items()]


def word(category: str) -> str:
    """What pictures call a category."""
    return "not categorized" if category == "Others" else category


def main() -> None:
    memtrace, traces, docs = sys.argv[1:]
    page = ["# Gallery", "", "The pictures of `memtrace plot`, each with its command and its largest values: programs of `testdata/train` on the null GPU.",
            "`scripts/gallery.sh` draws them and compares every value of bars and iterations, and the peaks of curves, with `memtrace report --json`.", ""]
    for heading, name, kind, names, shared, own, words in PICTURES:
        paths = [os.path.join(traces, n + ".bin") for n in names]
        picture, data = os.path.join(docs, "gallery", name + ".png"), os.path.join(traces, name + ".csv")
        run(memtrace, "-q", "plot", "-f", "--kind", kind, "-o", picture, "--data", data, *shared, *own, *paths)
        reports = [json.loads(run(memtrace, "report", "--json", *shared, path)) for path in paths]
        bases = [first_sample(os.path.join(traces, n + ".txt")) if "--baseline" in own else 0 for n in names]
        numbers = expect(kind, rows(data), reports, bases)
        assert os.path.getsize(picture) <= 150_000, picture
        command = " ".join(["memtrace plot --kind", kind, *(shlex.quote(w) for w in shared + own), "-o", name + ".png", *(n + ".bin" for n in names)])
        page += [f"## {heading}", "", words, "", "```", command, "```", "", f"![{kind}](gallery/{name}.png)", "", "| what | bytes |", "|---|---:|"]
        page += [f"| {what} | {n:,} |" for what, n in sorted(numbers, key=lambda row: -row[1])[:4]] + [""]
    with open(os.path.join(docs, "gallery.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(page).rstrip() + "\n")


if __name__ == "__main__":
    main()
