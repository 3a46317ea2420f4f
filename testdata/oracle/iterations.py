"""PyTorch's own account of every iteration of a training script.

    iterations.py OUTPUT SCRIPT [ARGUMENT...]

Whenever an optimizer finished a step it notes what the allocator of the first
device counted since the step before: highest and last bytes, how many blocks were
made and freed until now, what was requested of the live ones, and the bytes of the elements of all parameters that
there are, and of that optimizer's gradients and states. OUTPUT is a list of that as
JSON; its last element is what came after the last step and has the counters only.
"""
import gc
import json
import sys

import torch

import watched

rows = []


def sizes(optimizer):
    everything = {p.data_ptr(): p for p in gc.get_objects() if type(p) is torch.nn.Parameter and p.is_cuda}
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    states = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, torch.Tensor)]
    return {
        "parameters": sum(map(watched.elements, everything.values())),
        "gradients": sum(watched.elements(p.grad) for p in parameters),
        "states": sum(map(watched.elements, states)),
    }


def counters():
    stats = torch.cuda.memory_stats(0)
    return {
        "peak": stats["allocated_bytes.all.peak"], "end": stats["allocated_bytes.all.current"],
        "reserved_peak": stats["reserved_bytes.all.peak"], "reserved_end": stats["reserved_bytes.all.current"],
        "requested": stats.get("requested_bytes.all.current"),  # since 2.1
        "allocs": stats["allocation.all.allocated"], "frees": stats["allocation.all.freed"],
    }


def stepped(optimizer):
    if torch.cuda.is_initialized():
        rows.append({**counters(), **sizes(optimizer)})
        torch.cuda.reset_peak_memory_stats(0)


def main():
    output, *arguments = sys.argv[1:]
    watched.after_steps(stepped)
    watched.script(arguments)
    rows.append(counters())
    with open(output, "w") as file:
        json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
