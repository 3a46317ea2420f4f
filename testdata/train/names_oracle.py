"""The program's own account of what its memory is called, for the scripts names_*.py.

A script says what each tensor should be called, from PyTorch's own named_parameters()
and the like, and calls `mark` with the tensors still alive. Bytes are those of the
allocator's block (torch.cuda.memory_snapshot), as the trace counts them. A block in
which several named tensors lie is called after the first one, parameters before
buffers before gradients before optimizer state, unless `flat` names the whole.

The file has, for each mark, {"blocks": {"NAME (CATEGORY)": bytes}, "tensors":
[[category, name, address, bytes]], "modules": {name: id}, "unnamed": bytes or null}.
"""
import gc
import json
import pathlib
import sys

import memtrace
import torch

ORDER = "parameter", "buffer", "gradient", "optimizer"


class Oracle:
    def __init__(self, path):
        self.path, self.marks = pathlib.Path(path), {}
        self.clear()

    def clear(self):
        self.tensors, self.modules, self.kept, self.flats = [], {}, [], []

    def tensor(self, category, name, tensor):
        if isinstance(tensor, torch.Tensor) and tensor.is_cuda:
            self.tensors.append((category, name, tensor.data_ptr(), tensor.numel() * tensor.element_size()))
            self.kept.append(tensor)

    def flat(self, category, name, tensor):
        """The block that a tensor lies in has a name of its own."""
        self.flats.append((category, name, tensor.data_ptr()))

    def module(self, root, top, gradients=True):
        for path, module in top.named_modules():
            self.modules[f"{root}.{path}" if path else root] = id(module)
        for path, parameter in top.named_parameters():
            self.tensor("parameter", f"{root}.{path}", parameter)
            if gradients and parameter.grad is not None:
                self.tensor("gradient", f"{root}.{path}", parameter.grad)
        for path, buffer in top.named_buffers():
            self.tensor("buffer", f"{root}.{path}", buffer)

    def optimizer(self, optimizer, **models):
        """State of each parameter under the parameter's name in `models`."""
        names = {}
        for root, top in models.items():
            for path, parameter in top.named_parameters():
                names.setdefault(id(parameter), f"{root}.{path}")
        for parameter, state in optimizer.state.items():
            for key, value in state.items():
                for at, part in enumerate(value) if isinstance(value, (list, tuple)) else ((None, value),):
                    self.tensor("optimizer", f"{key}{'' if at is None else f'.{at}'}:{names[id(parameter)]}", part)

    def blocks(self):
        found = []
        for segment in torch.cuda.memory_snapshot():
            at = segment["address"]
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    found.append((at, block["size"]))
                at += block["size"]
        return sorted(found)

    def mark(self, name, whole=False):
        """Everything said since the last mark is alive now. whole: nothing else has a name."""
        torch.cuda.synchronize()
        blocks = self.blocks()

        def block_of(address):
            for at, size in blocks:
                if at <= address < at + size:
                    return at, size
            raise ValueError(f"no block has {address:#x}")

        called = {}
        for category, tensor, address in self.flats + [t[:3] for t in sorted(self.tensors, key=lambda t: ORDER.index(t[0]))]:
            called.setdefault(block_of(address), f"{tensor} ({category})")
        sums = {}
        for (_, size), key in called.items():
            sums[key] = sums.get(key, 0) + size
        unnamed = sum(size for _, size in blocks) - sum(sums.values())
        memtrace.mark(name)
        self.marks[name] = {"blocks": sums, "tensors": self.tensors, "modules": self.modules, "unnamed": unnamed if whole else None}
        self.clear()
        gc.collect()

    def finish(self):
        self.path.write_text(json.dumps(self.marks))
        sys.stdout.flush()
