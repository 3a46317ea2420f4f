# SPDX-License-Identifier: Apache-2.0
"""Running out of memory."""

from harness import Unmet

MIB = 1 << 20


def out_of_memory(harness):
    """torch raises its usual error; the report, and a text beside the trace, name who filled the device."""
    trace = harness.folder / "oom.bin"
    truth = harness.run_python("exhaust.py", trace=trace)
    report = harness.report(trace)
    failed = [event for event in report["oom"]["events"] if event["outcome"] == "failed"]
    harness.expect("the failure of torch's allocator is in the report", report["oom"]["count"] >= 1 and failed, f"{report['oom']['count']} events")
    harness.expect("refused driver calls are counted", report["driver"]["failed_count"] >= 1, f"{report['driver']['failed_count']} calls")
    if failed:
        _event_names_owner(harness, failed[0], truth)
    sidecar = harness.folder / f"{trace.name}.oom.1.txt"
    if not harness.expect("a text was written beside the trace", sidecar.exists(), sidecar.name):
        return
    text = sidecar.read_text()
    harness.expect("the text names the owner that filled the device", truth["owner"] in text, _line_with(text, truth["owner"]))
    harness.expect("the text names who asked", truth["asker"] in text, _line_with(text, truth["asker"]))
    harness.expect("the text says what to try", "What to try" in text, _line_with(text, "  - "))


def _event_names_owner(harness, event, truth):
    harness.expect_equal("bytes asked for", event["requested_bytes"], truth["requested"])
    harness.expect_equal("who asked", event["tag"], truth["asker"])
    by_tag = [ledger for ledger in event["ledgers"] if ledger["by"] == "tag"]
    if not by_tag:
        raise Unmet("the event has no ledger by tag")
    blocks = [row for row in by_tag[0]["rows"] if row["owner"] == "blocks"]
    harness.expect_equal("largest owner", blocks[0]["key"] if blocks else None, truth["owner"])
    harness.expect_equal("its bytes", blocks[0]["bytes"] if blocks else None, truth["held"])
    harness.expect_equal("the ledger's rows add up to what is in use", sum(row["bytes"] for row in by_tag[0]["rows"]), event["used_bytes"])
    advice = [row["rule"] for row in event["advice"] if row["rule"] != "null-gpu"]
    harness.expect("the report says what to try", advice, ", ".join(advice))
    near = abs(event["free_bytes"] - truth["free"]) <= (0 if harness.null_gpu else 8 * MIB)
    harness.score.number("out of memory", "free on the device", event["free_bytes"], torch=truth["free"])
    harness.expect("free on the device is CUDA's", near, f"memtrace {event['free_bytes']}, CUDA {truth['free']}")
    harness.note(f"in use {event['used_bytes'] / MIB:.0f} MiB of {event['total_bytes'] / MIB:.0f} MiB")


def _line_with(text, word):
    return next((line.strip() for line in text.splitlines() if word in line), "not found")
