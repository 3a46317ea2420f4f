"""Runs a training script, unchanged, with something watching it: what the oracles
in Python have in common."""
import pathlib
import runpy
import sys


def script(arguments):
    """Runs the script that `arguments` name with the rest of them, as `python SCRIPT ARGUMENT...` would."""
    path = pathlib.Path(arguments[0]).resolve()
    sys.argv = [str(path), *arguments[1:]]
    sys.path[0] = str(path.parent)
    runpy.run_path(str(path), run_name="__main__")


def elements(tensor):
    """Bytes of a tensor's elements on the device, 0 elsewhere."""
    return tensor.numel() * tensor.element_size() if tensor is not None and tensor.is_cuda else 0
