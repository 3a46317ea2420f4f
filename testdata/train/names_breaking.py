"""Things in which a reader's code could wake the program's, while models train and serve. Prints what was called, and what memory there is: with and without the library
these are the same.
"""
import ctypes
import gc
import sys
import types
import warnings

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch._subclasses.fake_tensor import FakeTensorMode

called = []


def call(what):
    called.append(what)
    raise RuntimeError(what)


class Meta(type):
    def __eq__(cls, other):
        call("Meta.__eq__")

    def __hash__(cls):
        return type.__hash__(cls)

    def __getattribute__(cls, name):
        if name in ("__name__", "__mro__", "__dict__", "__subclasses__", "__module__"):
            called.append("Meta." + name)
        return type.__getattribute__(cls, name)


class Proxy:
    """Looks like a module and wakes up when it is touched."""

    def __getattribute__(self, name):
        call("Proxy." + name)

    @property
    def __class__(self):
        call("Proxy.__class__")

    def __iter__(self):
        call("Proxy.__iter__")

    def __len__(self):
        call("Proxy.__len__")

    def __bool__(self):
        call("Proxy.__bool__")


class Lazy(types.ModuleType):
    def __getattribute__(self, name):
        if not name.startswith("__"):
            call("Lazy." + name)
        return super().__getattribute__(name)


class Sly(dict):
    def items(self):
        call("Sly.items")

    def get(self, *key):
        call("Sly.get")

    def __iter__(self):
        call("Sly.__iter__")

    def values(self):
        call("Sly.values")


class Touchy(nn.Module):
    """All that a module has is the program's own."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(30, 30)
        self.__dict__["proxy"] = Proxy()

    def __getattr__(self, name):
        if name.startswith("_mem") or name in ("grad", "data_ptr"):
            call("Touchy." + name)
        return super().__getattr__(name)

    def named_modules(self, *arguments, **keywords):
        call("named_modules")

    def named_parameters(self, *arguments, **keywords):
        call("named_parameters")

    def forward(self, x):
        return self.inner(x)


class Weird(torch.optim.SGD):
    def __getattr__(self, name):
        if name in ("grad_scale", "found_inf"):  # PyTorch asks for these
            raise AttributeError(name)
        call("Weird." + name)

    @property
    def extra(self):
        call("Weird.extra")


class Watch(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") in ("data_ptr", "is_cuda", "__get__", "numel", "element_size", "storage_offset", "untyped_storage", "layout", "is_leaf"):
            called.append("mode " + func.__name__)
        return func(*args, **kwargs or {})


class Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "indices" in str(func) or "device" in str(func):
            called.append("dispatch " + str(func))
        return func(*args, **kwargs or {})


class Gone:
    def __del__(self):
        called.append("Gone.__del__")


def has_dictionary(thing):
    """Of CPython 3.11: whether an object whose attributes are in none had one made, which makes it slower."""
    return sys.version_info[:2] == (3, 11) and ctypes.c_void_p.from_address(id(thing) - 24).value is not None


def train(model, optimizer, x, steps=3):
    for _ in range(steps):
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def say(what):
    torch.cuda.synchronize()
    print(what, torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), torch.cuda.memory_stats()["allocation.all.allocated"], called, flush=True)
    called.clear()


def main():
    global proxy, lazy, sly
    proxy, lazy, sly = Proxy(), Lazy("lazy"), Sly(model=Proxy())
    sys.modules["lazy_module"] = lazy
    made = Meta("Made", (nn.Linear,), {})
    x = torch.ones(4, 30, device="cuda")
    touchy = Touchy().cuda()
    optimizer = Weird(list(touchy.inner.parameters()), lr=0.1, momentum=0.9)
    optimizer.hidden, optimizer.sly = Proxy(), Sly(a=1)
    train(touchy, optimizer, x)
    say("touchy")
    meta = made(30, 30).cuda()
    train(meta, torch.optim.SGD(nn.Linear.parameters(meta), lr=0.1), x)
    called[:] = [what for what in called if what != "Meta.__module__"]  # torch.nn and pickle ask for these
    say("meta")
    plain = nn.Linear(30, 30).cuda()
    optimizer = torch.optim.Adam(plain.parameters())
    with Watch():
        y = plain(x).sum()
        y.backward()
        called.clear()
        optimizer.step()
    called[:] = [what for what in called if what not in ("mode __get__", "mode is_cuda", "mode layout", "mode is_leaf")]  # the optimizer asks for these itself
    say("mode")
    with Dispatch():
        train(plain, optimizer, x)
    say("dispatch")
    with FakeTensorMode(allow_non_fake_inputs=True):
        fake = nn.Linear(30, 30, device="cuda")
        train(fake, torch.optim.SGD(fake.parameters(), lr=0.1), torch.ones(4, 30, device="cuda"))
    say("fake")
    meta_device = nn.Linear(30, 30, device="meta")
    del meta_device
    many = nn.ModuleList([nn.Linear(1, 1) for _ in range(3000)]).cuda()
    train(lambda x: sum(m(x[:1, :1]) for m in many[:3]), torch.optim.SGD(many.parameters(), lr=0.1), x)
    del many[10:]
    print([has_dictionary(thing) for thing in (optimizer, plain.weight, *many[0].parameters())])
    say("many")
    short = nn.Sequential(nn.Linear(30, 30), nn.Linear(30, 30)).cuda()
    optimizer = torch.optim.SGD(short.parameters(), lr=0.1)
    short[0].gone = Gone()
    train(short, optimizer, x, 1)
    del short[0]
    train(short, optimizer, x, 1)
    short[0]._parameters = Sly(short[0]._parameters)
    short[0]._buffers = None
    optimizer.step()
    say("short")
    kept = torch.ones(1 << 20, device="cuda")
    before = torch.cuda.memory_allocated()
    del kept
    print(before - torch.cuda.memory_allocated(), gc.isenabled(), gc.get_count()[0] < 10000, [str(w) for w in warnings.filters] == filters, flush=True)


filters = [str(w) for w in warnings.filters]
if __name__ == "__main__":
    main()
