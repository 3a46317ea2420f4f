"""What PyTorch's own MemTracker says of every iteration of a training script.

    mem_tracker.py OUTPUT SCRIPT [ARGUMENT...]

The script runs inside torch.distributed._tools.mem_tracker.MemTracker. Whenever an
optimizer finished a step, this notes for the first device, by kind of reference
(Parameter, Buffer, Gradient, Activation, Temp, Optstate, Other), what is held, what
was held at the highest moment since the step before, and the same of the highest
moments of the forward and the backward pass of the outermost module; and for every
module the bytes of its parameters and buffers. OUTPUT is a list of that as JSON.
"""
import json
import sys

import torch
from torch.distributed._tools.mem_tracker import MemTracker

import watched

DEVICE = torch.device("cuda", 0)
rows = []


class NoHook:
    """Stands for the hooks of a parameter that has none."""

    def remove(self):
        pass


class Tracker(MemTracker):
    """MemTracker that follows programs with frozen parameters, and with several batches for one step.

    It puts a hook on every parameter that has none by its account, which PyTorch refuses where a parameter needs no
    gradient; and it gives up where the outermost module is called again, unless it forgets what it knows of modules.
    """

    def _track_module_params_and_buffers(self, module, install_grad_hooks=True):
        for parameter in module.parameters():
            if not parameter.requires_grad:
                self._param_to_grad_hook_handles[parameter] = (NoHook(), NoHook())
        return super()._track_module_params_and_buffers(module, install_grad_hooks)

    def _pre_fw_hook(self, module, inputs):
        outer = set(self._mod_tracker.parents) - {self._mod_tracker.get_known_fqn(module)}
        if module in self.memory_tracking and outer == {"Global"} and not self._mod_tracker.is_bw:
            self.reset_mod_stats()
        super()._pre_fw_hook(module, inputs)


def plain(snapshots):
    """A snapshot of the device with names as keys, {} where nothing is held."""
    return {getattr(key, "value", key): value for key, value in snapshots.get(DEVICE, {}).items()}


def outermost(tracker):
    """What is known of the module with most of the parameters, which no other one contains."""
    return max(tracker.memory_tracking.values(), key=lambda stats: (stats.parameter_mem, -stats.mod_fqn.count(".")))


def state(stats, name):
    """The last snapshot of a module's state."""
    for key, snapshots in stats.snapshots.items():
        if key.value == name:
            return plain(snapshots[-1])
    return {}


def rounded(tensor):
    """Bytes as MemTracker takes the allocator to round them."""
    return -(-watched.elements(tensor) // 512) * 512


def modules(tracker, root):
    owned = {id(module): stats for module, stats in tracker.memory_tracking.items()}
    top = next(module for module, stats in tracker.memory_tracking.items() if stats is root)
    first = {id(parameter): name for name, parameter in top.named_parameters()}
    sizes = {}
    for path, module in top.named_modules():
        if stats := owned.get(id(module)):
            inside = path + "." if path else ""
            shared = {id(p): rounded(p) for p in module.parameters() if not first[id(p)].startswith(inside)}
            sizes[path] = {"parameters": stats.parameter_mem, "buffers": stats.buffer_mem, "elsewhere": sum(shared.values())}
    return sizes


def note(tracker):
    root = outermost(tracker)
    rows.append({
        "end": plain(tracker.get_tracker_snapshot()),
        "peak": plain(tracker.get_tracker_snapshot("peak")),
        "forward": state(root, "Peak-Forward"),
        "after_forward": state(root, "Post-Forward"),
        "backward": state(root, "Peak-Backward"),
        "modules": modules(tracker, root),
    })


def begin_again(tracker):
    """The tracker wants to see one iteration only."""
    tracker.reset_mod_stats()
    tracker._peak_mem_snap = tracker.get_tracker_snapshot()
    tracker._peak_mem = {device: snapshot["Total"] for device, snapshot in tracker._peak_mem_snap.items()}


def main():
    output, *arguments = sys.argv[1:]
    tracker = Tracker()

    def stepped(_):
        note(tracker)
        begin_again(tracker)

    with tracker:
        watched.after_steps(stepped)
        watched.script(arguments)
    with open(output, "w") as file:
        json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
