# SPDX-License-Identifier: Apache-2.0
"""Several processes: memory opened from another one, and NCCL."""

import sys

from harness import Skipped, Unmet, last_object, rows


def ipc(harness):
    """A tensor goes to another process: there it is foreign memory, and never the process's own."""
    truth = harness.run_python("ipc.py", trace=harness.folder / "ipc.%p.bin")
    giver = harness.report(harness.folder / f"ipc.{truth['giver']}.bin", "--by", "tag")
    taker = harness.report(harness.folder / f"ipc.{truth['taker']}.bin", "--at", "mark:open")
    harness.expect_equal("the giver's driver bytes", rows(giver, "tag", "driver").get("shared", {}).get("peak_bytes"), truth["bytes"])
    harness.expect_equal("foreign bytes in the taker", taker["other_memory"].get("foreign", {}).get("peak_bytes"), truth["bytes"])
    harness.expect("the taker's own driver memory does not contain them", taker["at"]["driver"]["live_bytes"] < truth["bytes"],
                   f"{taker['at']['driver']['live_bytes']} bytes")
    harness.expect_sound(giver, " in the giver")
    harness.expect_sound(taker, " in the taker")


def nccl(harness):
    """NCCL's communicator and an all-reduce, a process for each device, at most two of them."""
    ranks = min(2, harness.score.machine.get("devices", 1))
    if harness.null_gpu:
        ranks = 1
    if not harness.score.machine.get("nccl"):
        raise Skipped("this PyTorch has no NCCL")
    if ranks < 2:
        harness.skip("memory that NCCL shares between two devices", "needs two GPUs" + (", and the null GPU's NCCL is one rank" if harness.null_gpu else ""))
    told, pids = _run_ranks(harness, ranks, harness.folder / "nccl.%p.bin")
    for rank in range(ranks):
        _compare_rank(harness, rank, ranks, pids[rank], told[rank])


def _run_ranks(harness, ranks, trace):
    """Runs all ranks; returns what each printed, and their pids. Where they fail without the library, too, the check is skipped."""
    meeting = harness.folder / f"nccl.meeting.{'plain' if trace is None else 'traced'}"
    guests = []
    try:
        for rank in range(ranks):
            guests.append(harness.start([sys.executable, harness.guests / "nccl.py", str(rank), str(ranks), str(meeting)], trace))
        ended = [guest.communicate(timeout=max(1, min(90, harness.seconds_left()))) for guest in guests]
    finally:
        for guest in guests:
            harness.end(guest)
    failed = [rank for rank, guest in enumerate(guests) if guest.returncode != 0]
    if not failed:
        return [last_object(out) for out, _ in ended], [guest.pid for guest in guests]
    words = f"rank {failed[0]} ended with status {guests[failed[0]].returncode}: {ended[failed[0]][1].strip()[-400:]}"
    if trace is None:
        raise Skipped(f"NCCL does not work here without the library, too: {words}")
    _run_ranks(harness, ranks, None)
    raise Unmet(f"{words}; without the library it works")


def _compare_rank(harness, rank, ranks, pid, truth):
    report = harness.report(harness.folder / f"nccl.{pid}.bin", "--by", "library", "--at", "mark:stats")
    entry = next((entry for entry in report["devices"] if entry["index"] == rank), None)
    if entry is None:
        raise Unmet(f"rank {rank}'s report does not know its device")
    ours, theirs = entry["framework"]["peak_bytes"], truth["stats"]["allocated_bytes.all.peak"]
    harness.score.number(f"NCCL, rank {rank}", "peak of allocated bytes", ours, torch=theirs)
    harness.expect_equal(f"rank {rank}: peak of allocated bytes", ours, theirs)
    harness.expect_sound(report, f", rank {rank}")
    found = {key: row["alloc_bytes"] for key, row in rows(report, "library", "driver").items() if "nccl" in key.lower()}
    if ranks > 1:
        harness.expect(f"rank {rank}: NCCL's own memory is in the report under its library", bool(found), f"{found}")
    else:
        harness.note(f"NCCL's own memory, by library: {found}")
