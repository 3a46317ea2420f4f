"""Runs a training script, unchanged, with something watching it: what the oracles
in Python have in common."""
import functools
import pathlib
import runpy
import sys

import torch


def script(arguments):
    """Runs the script that `arguments` name with the rest of them, as `python SCRIPT ARGUMENT...` would."""
    path = pathlib.Path(arguments[0]).resolve()
    sys.argv = [str(path), *arguments[1:]]
    sys.path[0] = str(path.parent)
    runpy.run_path(str(path), run_name="__main__")


def after_steps(call):
    """Has call(optimizer) run whenever one of PyTorch's optimizers has finished a step."""
    place = sys.modules["torch.optim.optimizer"]
    if hasattr(place, "register_optimizer_step_post_hook"):
        place.register_optimizer_step_post_hook(lambda optimizer, *_: call(optimizer))
        return
    for cls in torch.optim.Optimizer.__subclasses__():  # before 2.0
        cls.step = _followed(cls.step, call)


def _followed(step, call):
    @functools.wraps(step)
    def followed(self, *args, **kwargs):
        result = step(self, *args, **kwargs)
        call(self)
        return result
    return followed


def elements(tensor):
    """Bytes of a tensor's elements on the device, 0 elsewhere."""
    return tensor.numel() * tensor.element_size() if tensor is not None and tensor.is_cuda else 0
