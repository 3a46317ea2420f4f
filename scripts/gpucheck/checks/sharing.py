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
    trace, meeting = harness.folder / "nccl.%p.bin", harness.folder / "nccl.meeting"
    guests = []
    try:
        for rank in range(ranks):
            guests.append(harness.start([sys.executable, harness.guests / "nccl.py", str(rank), str(ranks), str(meeting)], trace))
        for rank, guest in enumerate(guests):
            out, err = guest.communicate(timeout=max(1, min(120, harness.seconds_left())))
            if guest.returncode != 0:
                raise Unmet(f"rank {rank} ended with status {guest.returncode}: {err.strip()[-500:]}")
            _compare_rank(harness, rank, guest.pid, last_object(out))
    finally:
        for guest in guests:
            harness.end(guest)


def _compare_rank(harness, rank, pid, truth):
    report = harness.report(harness.folder / f"nccl.{pid}.bin", "--by", "library", "--at", "mark:stats")
    entry = next((entry for entry in report["devices"] if entry["index"] == rank), None)
    if entry is None:
        raise Unmet(f"rank {rank}'s report does not know its device")
    ours, theirs = entry["framework"]["peak_bytes"], truth["stats"]["allocated_bytes.all.peak"]
    harness.score.number(f"NCCL, rank {rank}", "peak of allocated bytes", ours, torch=theirs)
    harness.expect_equal(f"rank {rank}: peak of allocated bytes", ours, theirs)
    harness.expect_sound(report, f", rank {rank}")
    found = {key: row["alloc_bytes"] for key, row in rows(report, "library", "driver").items() if "nccl" in key.lower()}
    harness.expect_hardware(f"rank {rank}: NCCL's own memory is in the report under its library", bool(found), f"{found}",
                            "the null GPU's NCCL allocates nothing")
