# SPDX-License-Identifier: Apache-2.0
"""Processes without CUDA, and tags."""

from harness import rows


def quiet(harness):
    """A process that makes no CUDA call is left as it is, also where every symbol is bound at start."""
    status = ["grep", "-E", "^(Threads|SigCgt|SigBlk|SigIgn)", "/proc/self/status"]
    plain = harness.run(status)
    for binding in ({}, {"LD_BIND_NOW": "1"}):
        trace = harness.folder / "quiet.bin"
        traced = harness.run(status, trace, **binding)
        suffix = " under LD_BIND_NOW=1" if binding else ""
        harness.expect("threads and signal dispositions are untouched" + suffix, traced.stdout == plain.stdout and traced.returncode == 0,
                       traced.stderr.strip()[-200:])
        harness.expect("nothing is printed and no file is left" + suffix, traced.stderr == plain.stderr and not trace.exists())


def tags(harness):
    """Memory taken under a Python tag is reported under it, on both levels, and exit statuses pass through."""
    trace = harness.folder / "tags.bin"
    truth = harness.run_python("tagged.py", trace=trace, status=7)
    report = harness.report(trace, "--by", "tag")
    framework, driver = rows(report, "tag", "framework"), rows(report, "tag", "driver")
    for tag, size in truth.items():
        harness.expect_equal(f"framework bytes under {tag}", framework.get(tag, {}).get("peak_bytes"), size)
        harness.expect_equal(f"driver bytes under {tag}", driver.get(tag, {}).get("peak_bytes"), size)
