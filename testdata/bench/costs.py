"""What memtrace costs a process as a whole: its start, its driver calls, its end, its memory."""
from document import table
from measure import finished_after, in_turns, quartiles, ratios, say, spread

EXIT_EVENTS = 72_000


def startup(setup, pairs):
    say(f"starting /bin/true {pairs} times with and without the library")
    lines = [[float(x) for x in line.split()] for line in setup.run(setup.folder / "startup", pairs, setup.library, "/bin/true").splitlines()]
    plain, traced = [line[0] / 1e3 for line in lines], [line[2] / 1e3 for line in lines]
    added = [b - a for a, b in zip(plain, traced)]
    return ["process without a CUDA call, start to end, ms", spread(plain), spread(traced), f"+{spread(added)}", "at most +0.1"]


def alloc(setup, rounds):
    rows = []
    for threads in (1, 8):
        say(f"cuMemAlloc and cuMemFree on {threads} thread{'s'[:threads - 1]}")

        def once(traced, threads=threads):
            return quartiles(setup.numbers(setup.folder / "alloc", threads, 10_000, traced=traced))[1] / 1e3

        plain, traced = in_turns(rounds, lambda: once(False), lambda: once(True))
        rows.append([f"`cuMemAlloc` and `cuMemFree` on the null GPU, {threads} thread{'s'[:threads - 1]}, a pair, us",
                     spread(plain), spread(traced), spread(ratios(plain, traced)), ""])
    return rows


def ending(setup, rounds):
    """A process of 72,000 events from 64 stacks: how long it takes from the last one to its end, and what it holds by then."""
    say(f"ending a process after {EXIT_EVENTS} events")
    program = setup.folder / "exit"
    plain, traced = in_turns(rounds, lambda: finished_after(setup, program, EXIT_EVENTS, traced=False), lambda: finished_after(setup, program, EXIT_EVENTS, traced=True))
    rows = []
    for what, which, digits, budget in ((f"end of the run, after the last of {EXIT_EVENTS:,} events, ms", 0, 1, "at most +50"), ("resident memory of that program, MiB", 1, 1, "")):
        values = [[run[which] for run in runs] for runs in (plain, traced)]
        values.append([b - a for a, b in zip(*values)])
        rows.append([what, spread(values[0], digits), spread(values[1], digits), f"+{spread(values[2], digits)}", budget])
    return rows


def section(setup, quick):
    rows = [startup(setup, 50 if quick else 500), *alloc(setup, 2 if quick else 7), *ending(setup, 3 if quick else 9)]
    return table(["what", "plain", "traced", "ratio or difference", "budget"], rows)
