# SPDX-License-Identifier: Apache-2.0
"""Inference through the vendor's libraries, and torch's CUDA graphs."""

from checks.training import compare_with_torch


def infer(harness):
    """Convolutions, matrix products and Fourier transforms, whose libraries carry statically linked runtimes: the program's numbers stay torch's."""
    trace = harness.folder / "infer.bin"
    plain = harness.run_python("infer.py")
    traced = harness.run_python("infer.py", trace=trace)
    if not traced["cudnn"]:
        harness.skip("convolutions run in cuDNN", "the null GPU's cuDNN plans nothing, so torch's own kernels run them")
    harness.expect_equal("torch's own peak with and without the library", traced["stats"]["allocated_bytes.all.peak"], plain["stats"]["allocated_bytes.all.peak"])
    harness.expect_hardware("results with and without the library", traced["results"] == plain["results"], f"{traced['results']} and {plain['results']}",
                            "kernels do nothing here")
    report = harness.report(trace, "--at", "mark:stats")
    compare_with_torch(harness, "inference", report, traced["stats"])
    outside = {row["key"]: row["bytes"] for row in report["ledgers"][0]["rows"] if row["owner"] == "outside"}
    harness.note("driver memory of libraries other than torch: " + (", ".join(f"{key} {value} bytes" for key, value in outside.items()) or "none"))


def graphs(harness):
    """A step captured by torch.cuda.graph, whose memory lies in a pool of its own, and replayed."""
    trace = harness.folder / "graphs.bin"
    truth = harness.run_python("graphs.py", trace=trace)
    report = harness.report(trace, "--at", "mark:stats")
    compare_with_torch(harness, "CUDA graphs", report, truth["stats"])
