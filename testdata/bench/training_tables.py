"""The tables about training: the comparison with other tools, sizes and memory."""
from document import table
from gpt2 import Way, counted, instructions_can_be_counted
from measure import forget, in_turns, ratios, say, spread

MIB = 1 << 20


def fastest(plain, other):
    """Of the fastest steps that any run had: what a disturbed machine moves least."""
    return min(run["step_min_ms"] for run in other) / min(run["step_min_ms"] for run in plain)


def column(runs, what):
    return [run[what] for run in runs]


def instructions(work, count):
    """Where the machine counts them, the steadiest measure there is."""
    if not instructions_can_be_counted():
        say("this machine does not let programs count instructions; left out")
        return []
    out = work.setup.folder / "perf.txt"

    def once(way):
        work.once(way, ("perf", "stat", "-x", ",", "-e", "instructions:u", "-o", out))
        found = counted(out.read_text())
        forget(out)
        return found / 1e9

    say(f"counting the instructions of {count} pairs of runs")
    plain, traced = in_turns(count, lambda: once(Way()), lambda: once(work.ours()["memtrace"]))
    return [["instructions of the whole run, billions", spread(plain), spread(traced), spread(ratios(plain, traced), 4), ""]]


def comparison(work, rounds, peers):
    """(table of peers, table of sizes, rows about the drainer and memory)."""
    ways = {"plain": Way(), **work.ours(), **work.torch_history()}
    hosts = work.peers() if peers else {}
    say(f"training GPT-2 small on PyTorch, {rounds} rounds of {', '.join([*ways, *hosts])}")
    runs = in_turns(rounds, *(lambda way=way: work.once(way) for way in ways.values()), *(lambda way=way: work.once_peer(way) for way in hosts.values()))
    found = dict(zip([*ways, *hosts], runs))
    plain, ours = found["plain"], found["memtrace"]
    rows = []
    for name, runs in found.items():
        size = spread([run["bytes"] / run["events"] for run in runs], 1) if "events" in runs[0] else ""
        dump = spread([run["dump_s"] * 1e3 for run in runs], 0) if "dump_s" in runs[0] else ""
        rows.append([name, spread(column(runs, "step_ms")), spread(ratios(column(plain, "step_ms"), column(runs, "step_ms")), 3), f"{fastest(plain, runs):.3f}",
                     spread(ratios(column(plain, "step_cpu_ms"), column(runs, "step_cpu_ms")), 3), size, dump, spread(column(runs, "end_ms"), 0)])
    head = [f"GPT-2 small, {work.steps} steps, recorded by", "median step, ms", "ratio to plain", "ratio of the fastest steps", "ratio of processor time", "bytes per event",
            "dump at the end, ms", "from the script's end to the process's, ms"]
    return table(head, rows), size_table(found), memory_rows(plain, ours)


def size_table(found):
    rows = []
    for name, runs in found.items():
        if "dictionary" not in runs[0]:
            continue
        last = runs[-1]
        kinds = last["stacks"]
        rows.append([name, str(last["events"]), spread([run["bytes"] / run["events"] for run in runs]), spread([run["event_bytes"] / run["events"] for run in runs]),
                     spread([run["dictionary"] / 1024 for run in runs], 0), ", ".join(f"{kinds.get(kind, 0)} {kind.replace('_', ' ')}" for kind in ("native", "python", "code_objects")),
                     str(sum(run["lost"] for run in runs)), "at most 5 bytes" if name == "memtrace" else ""])
    return table(["trace of the training run", "events", "bytes per event", "of these in event blocks", "dictionary, KiB", "stacks and code objects", "records lost", "budget"], rows)


def memory_rows(plain, ours):
    rows = [["drainer, share of one core during the training, %", "", spread([100 * run["drainer_s"] / run["wall_s"] for run in ours], 1), "", ""]]
    for what, label in (("library_rss", "resident memory of the library's own mappings"), ("spool_rss", "resident memory of the spool"), ("spool_disk", "disk space of the spool")):
        rows.append([f"{label}, MiB", "", spread([run[what] / MIB for run in ours], 1), "", ""])
    more = [(b["anonymous"] - a["anonymous"]) / MIB for a, b in zip(plain, ours)]
    rows.append(["anonymous memory of the whole process, MiB", spread([run["anonymous"] / MIB for run in plain], 0), spread([run["anonymous"] / MIB for run in ours], 0),
                 f"{'+' if more and min(more) >= 0 else ''}{spread(more, 1)}", ""])
    return rows
