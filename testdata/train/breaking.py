"""Does what a library that looks into it could stumble over, and prints what it notices: with the library it must say the same, byte for byte."""
import gc
import os
import random
import signal
import sys
import threading
import time
import traceback
import warnings

import torch
from torch import nn

events = []
DEVICE = "cuda"


def notice(*what):
    """What is asked of an object that nothing of this program's asks."""
    caller = sys._getframe(2)
    print("noticed", *what, "by", os.path.basename(caller.f_code.co_filename), caller.f_code.co_name, flush=True)


class Weird(type(nn.Module)):
    def __instancecheck__(cls, thing):
        notice("instance check of", cls.__name__)
        return super().__instancecheck__(thing)

    def __subclasscheck__(cls, other):
        notice("subclass check of", cls.__name__)
        return super().__subclasscheck__(other)

    def __getattribute__(cls, name):
        if name in ("_parameters", "_modules", "_buffers"):
            notice("class attribute", name)
        return super().__getattribute__(name)


class Overridden(nn.Linear, metaclass=Weird):
    """Its methods for those who look are its own."""

    def named_modules(self, *arguments, **keywords):
        raise RuntimeError("named_modules")

    modules = children = named_children = parameters = named_parameters = buffers = named_buffers = named_modules

    def __repr__(self):
        raise RuntimeError("repr")

    __str__ = __hash__ = __len__ = __repr__

    def __eq__(self, other):
        raise RuntimeError("eq")

    def __bool__(self):
        raise RuntimeError("bool")

    @property
    def weight_norm(self):
        raise SystemExit("a property")


class Loud(nn.Module):
    def __getattr__(self, name):
        notice("attribute", name)
        raise RuntimeError("__getattr__ " + name)

    def forward(self, x):
        return x


class Proxy:
    """Lazy: wakes up when it is asked anything, even for its class."""

    def __init__(self, wanted):
        object.__setattr__(self, "_wanted", wanted)

    @property
    def __class__(self):
        notice("class of a proxy")
        return nn.Module

    @property
    def __dict__(self):
        notice("dict of a proxy")
        raise RuntimeError("dict")

    def __getattr__(self, name):
        notice("proxy attribute", name)
        raise KeyboardInterrupt("a proxy")


class Mortal(nn.Module):
    def __del__(self):
        events.append("died")
        raise ValueError("in __del__")

    def __repr__(self):
        return "Mortal()"


class Sub(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        if getattr(function, "__name__", "") in ("data_ptr", "untyped_storage", "storage", "nbytes", "numel", "element_size"):
            notice("torch function", function.__name__)
        return super().__torch_function__(function, types, arguments, keywords or {})


def step(model, optimizer, x):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()


def overridden():
    odd = Overridden(8, 8, device=DEVICE)
    optimizer = torch.optim.Adam([odd.weight, odd.bias])
    for _ in range(3):
        step(odd, optimizer, torch.ones(2, 8, device=DEVICE))
    return odd, optimizer


def proxies():
    return [Proxy(None) for _ in range(10)] + [Loud()]


def changing():
    """Modules come and go in the middle of steps."""
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(20))).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def remove(gradient):
        if len(model) > 2:
            del model[len(model) - 1]
    for _ in range(12):
        handle = model[0].weight.register_hook(remove)
        step(model, optimizer, torch.ones(2, 8, device=DEVICE))
        handle.remove()
        model.append(nn.Linear(8, 8).to(DEVICE)) if len(model) % 3 else None
        optimizer.param_groups[0]["params"] = list(model.parameters())
    print("changing", len(model))
    model._modules["gone"] = None
    model._modules[5] = nn.Linear(1, 1)  # a key that is no text
    model.__dict__["_parameters"]["odd"] = None
    optimizer.state["a key"] = {"of": "its own"}
    optimizer.state[Loud()] = 7
    optimizer.param_groups[0]["params"] = optimizer.param_groups[0]["params"] + [model[0].weight]
    with torch.no_grad():
        optimizer.step()
    return model, optimizer


def mortal():
    for _ in range(3):
        model = nn.Sequential(nn.Linear(4, 4), Mortal()).to(DEVICE)
        del model
    gc.collect()
    print("mortal", events)


def many():
    model = nn.ModuleList(nn.Module() for _ in range(10000))
    model.append(nn.Linear(4, 4).to(DEVICE))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        step(model[-1], optimizer, torch.ones(2, 4, device=DEVICE))
    return model


def threads():
    wrong = []

    def work(seed):
        try:
            model = nn.Linear(8, 8).to(DEVICE)
            optimizer = torch.optim.AdamW(model.parameters())
            for _ in range(30):
                step(model, optimizer, torch.ones(2, 8, device=DEVICE))
        except Exception as error:
            wrong.append(error)
    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("threads", wrong)


def watched():
    """A tracer counts every call and line of some steps: there are as many as without anyone who looks."""
    model = nn.Linear(8, 8).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        step(model, optimizer, torch.ones(2, 8, device=DEVICE))
    seen = {}

    def look(frame, event, argument):
        name = os.path.basename(frame.f_code.co_filename), frame.f_code.co_name, event
        if name != ("optimizer.py", "wrapper", "line"):  # of PyTorch's, which goes once around for each of its hooks
            seen[name] = seen.get(name, 0) + 1
        return look
    for setter in sys.settrace, sys.setprofile:
        setter(look)
        for _ in range(3):
            step(model, optimizer, torch.ones(2, 8, device=DEVICE))
        setter(None)
    for name, count in sorted(seen.items()):
        print("watched", *name, count)


def interrupted():
    """Timeouts by a signal: every one of them gets out, wherever it comes."""
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(50))).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # has no state that a timeout could leave half made

    class Timeout(Exception):
        pass

    def on_alarm(number, frame):
        raise Timeout

    came = 0
    signal.signal(signal.SIGALRM, on_alarm)
    for i in range(60):
        torch.set_grad_enabled(True)  # PyTorch may have been left in the middle of turning it on again
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + i * 0.0003, 1)  # once more if somebody swallowed the first
            while True:
                step(model, optimizer, torch.ones(2, 8, device=DEVICE))
        except Timeout as error:
            signal.setitimer(signal.ITIMER_REAL, 0)
            came += 1
            files = {frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)}
            if "<memtrace>" in files:
                print("somebody else's frames", files)
    print("interrupted", came)


def limits():
    """Hardly any stack is left."""
    model = nn.Linear(8, 8).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.ones(2, 8, device=DEVICE)

    def down(left):
        return down(left - 1) if left else step(model, optimizer, x)
    failed = 0
    for left in range(900, 1000):
        try:
            down(left)
        except RecursionError:
            failed += 1
    print("limits", failed > 0)


def out_of_memory():
    model = nn.Linear(64, 64).to(DEVICE)
    for _ in range(5):
        try:
            torch.empty(1 << 50, dtype=torch.uint8, device=DEVICE)
        except torch.OutOfMemoryError:
            time.sleep(0.05)
    with torch.no_grad():
        return model(torch.ones(1, 64, device=DEVICE)).shape, model


def subclass():
    parameter = nn.Parameter(torch.ones(8, device=DEVICE).as_subclass(Sub))
    model = nn.Module()
    model.parameter = parameter
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (parameter * 2).sum().backward()
        optimizer.step()
    return model


def main():
    warnings.simplefilter("error")
    random.seed(0)
    kept = [proxies(), overridden(), changing(), many(), subclass()]
    mortal()
    threads()
    time.sleep(1.5)  # whoever looks now and then does so
    watched()
    interrupted()
    limits()
    kept.append(out_of_memory())
    builtins_before = sorted(vars(__builtins__))
    del sys.modules["weakref"]
    kept.append(overridden())
    saved, torch.nn.Module.named_modules = torch.nn.Module.named_modules, None
    kept.append(overridden())
    torch.nn.Module.named_modules = saved
    print("builtins", builtins_before == sorted(vars(__builtins__)), [name for name in sys.modules if "memtrace" in name], warnings.filters[0][0])
    print(len(kept), "things kept")
    sys.stdout.flush()
    signal.setitimer(signal.ITIMER_REAL, 0)
    if "--raise" in sys.argv:
        raise ValueError("the program's last words")
    sys.exit(5)


if __name__ == "__main__":
    main()
