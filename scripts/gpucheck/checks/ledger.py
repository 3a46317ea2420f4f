# SPDX-License-Identifier: Apache-2.0
"""The device's ledger: torch's counters, NVML's words and ours, side by side at one moment, with a second process on the device."""

from harness import Skipped, Unmet, device

MIB = 1 << 20
OTHER = 256 * MIB


def ledger(harness):
    """Used on the device = this process by owner + other processes + context + remainder."""
    # The null GPU: an account that both processes share, a context that costs something, and memory that nobody gets.
    variables = {"NULLCUDA_SHARED": str(harness.folder / "null-account"), "NULLCUDA_CONTEXT": "300M", "NULLCUDA_RESERVED": "500M"}
    trace = harness.folder / "ledger.bin"
    with harness.second_process(OTHER, **variables):
        truth = harness.run_python("ledger.py", trace=trace, **variables)
    if not truth["nvml"]:
        raise Skipped("the driver's management library (NVML) is not there")
    report = harness.report(trace, "--at", "mark:view", "--by", "tag")
    _torch(harness, report, truth)
    book = report.get("device_ledger")
    if not harness.expect("the report has a device ledger", book is not None and book["status"] == "on" and book["devices"],
                          "" if book is None else f"{book['status']} {book['why']}"):
        return
    for note in book["notes"]:
        harness.note(note)
    _samples(harness, report, book, truth)
    _rows(harness, book, truth)


def _torch(harness, report, truth):
    moment = device(report["at"]["devices"])
    for what, ours, key in (("allocated bytes", moment["framework"]["live_bytes"], "allocated_bytes.all.current"),
                            ("reserved bytes", moment["reserved_bytes"], "reserved_bytes.all.current")):
        harness.score.number("ledger", what, ours, torch=truth["stats"][key])
        harness.expect_equal(f"{what} at the mark", ours, truth["stats"][key])
    pinned = report["other_memory"].get("host", {}).get("peak_bytes", 0)
    harness.score.number("ledger", "pinned host bytes", pinned, torch=truth["pinned"])
    harness.expect("pinned host memory is shown apart", pinned >= truth["pinned"], f"{pinned} of {truth['pinned']} bytes")


def _samples(harness, report, book, truth):
    """What the recorder heard from the device against what the program heard at the mark."""
    when = next(mark["last_time_ns"] for mark in report["marks"] if mark["name"] == "view")
    samples = device(book["devices"])["samples"]
    near = min(samples, key=lambda sample: (not sample["settled"], abs(sample["time_ns"] - when)))
    nvml, slack = truth["nvml"], 0 if harness.null_gpu else 8 * MIB
    harness.score.number("ledger", "used on the device", near["used_bytes"], nvml=nvml["used"])
    harness.expect(f"used on the device, {abs(near['time_ns'] - when) / 1e9:.1f} s from the mark, is NVML's", abs(near["used_bytes"] - nvml["used"]) <= slack,
                   f"memtrace {near['used_bytes']}, NVML {nvml['used']}")
    shares = [sample for sample in samples if sample["share_known"] and sample["settled"]]
    if nvml["own"] is None or not shares:
        harness.skip("used by this process and by others", "the device does not say here which process uses how much")
        return
    last = min(shares, key=lambda sample: abs(sample["time_ns"] - when))
    harness.score.number("ledger", "used by this process", last["own_bytes"], nvml=nvml["own"])
    harness.expect("used by this process is NVML's", abs(last["own_bytes"] - nvml["own"]) <= slack, f"memtrace {last['own_bytes']}, NVML {nvml['own']}")
    harness.score.number("ledger", "used by other processes", last["others_bytes"], nvml=nvml["others"])
    harness.expect("the second process is among the others", last["others_bytes"] >= OTHER, f"{last['others_bytes']} bytes")


def _rows(harness, book, truth):
    found = next((entry for entry in device(book["devices"])["ledgers"] if entry["by"] == "tag"), None)
    if found is None:
        raise Unmet("the device ledger has no rows by tag")
    sample, total = found["sample"], sum(row["bytes"] for row in found["rows"])
    harness.expect_equal("the ledger's rows add up to what the device reports", total, sample["used_bytes"])
    free = found["total_bytes"] - total
    harness.score.number("ledger", "free on the device", free, torch=truth["free"])
    harness.expect("what they leave free is CUDA's", abs(free - truth["free"]) <= (0 if harness.null_gpu else 8 * MIB),
                   f"memtrace {free}, CUDA {truth['free']}")
    sums = {}
    for row in found["rows"]:
        sums[row["owner"]] = sums.get(row["owner"], 0) + row["bytes"]
    harness.note(" + ".join(f"{owner} {size / MIB:.2f}" for owner, size in sums.items()) + f" = {total / MIB:.2f} MiB, sample for {sample['occasion']}")
    for owner, size in sums.items():
        harness.score.number("ledger", f"owner {owner}", size)
    harness.expect("blocks are in it under their tags", sum(row["bytes"] for row in found["rows"] if row.get("key") == "model") >= truth["model"],
                   f"{truth['model']} bytes of parameters")
    rest = sums.get("remainder", 0)
    if not sample["share_known"]:
        harness.expect("the remainder, which has context and other processes in it as the device does not tell them apart, is below 3 GiB and not negative",
                       0 <= rest <= 3072 * MIB, f"{rest} bytes")
    elif harness.null_gpu:
        harness.expect_equal("remainder", rest, 0)
    else:
        harness.expect("the remainder is small: between -64 MiB and 1 GiB", -64 * MIB <= rest <= 1024 * MIB,
                       f"{rest} bytes, of which pages that are used in part explain {found['partial_page_bytes']}")
