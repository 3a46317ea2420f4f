# SPDX-License-Identifier: Apache-2.0
"""The checks, in the order in which they run: what needs little time and says most comes first. Each takes a Harness and scores its claims."""

from checks import answers, cost, death, driver, exhaustion, frameworks, inference, ledger, process, sharing, training

GROUPS = {
    "process": ("quiet", "tags"),
    "driver": ("kinds", "contexts", "graph_nodes", "cuda_program"),
    "training": ("train", "train_bind_now", "train_expandable", "train_async"),
    "inference": ("infer", "graphs"),
    "ledger": ("ledger",),
    "exhaustion": ("out_of_memory",),
    "answers": ("growth", "refusals", "compiled", "referrers", "kept_by", "attach"),
    "death": ("killed_by_itself", "killed_at_random"),
    "sharing": ("ipc", "nccl"),
    "cost": ("start_cost", "event_cost", "step_cost"),
    "frameworks": ("cupy", "jax"),
}

# These build something, which the others must not need.
ON_REQUEST = ("cuda_program",)

_MODULES = {"answers": answers, "process": process, "driver": driver, "training": training, "inference": inference, "ledger": ledger, "exhaustion": exhaustion, "death": death,
            "sharing": sharing, "cost": cost, "frameworks": frameworks}

ALL = {name: getattr(_MODULES[group], name) for group, names in GROUPS.items() for name in names}
