# SPDX-License-Identifier: Apache-2.0
"""Frameworks other than PyTorch, where they are installed."""

from harness import Skipped


def _pool(harness, module, name, **variables):
    if not harness.has_module(module):
        raise Skipped(f"{name} is not installed")
    trace = harness.folder / f"{module}.bin"
    truth = harness.run_python(f"{module}_pool.py", trace=trace, **variables)
    report = harness.report(trace, "--at", "mark:pool")
    live = report["at"]["driver"]["live_bytes"]
    harness.expect(f"the driver level holds at least what {name}'s pool holds", live >= truth["pool"], f"driver {live}, pool {truth['pool']}")
    harness.expect_sound(report)


def cupy(harness):
    """CuPy loads the runtime itself and has a pool of its own."""
    _pool(harness, "cupy", "CuPy")


def jax(harness):
    """JAX reaches the driver by dlopen and dlsym and takes its memory in one piece."""
    _pool(harness, "jax", "JAX", XLA_PYTHON_CLIENT_MEM_FRACTION="0.25")
