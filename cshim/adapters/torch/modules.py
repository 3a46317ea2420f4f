# Modules: which ones there are, and what they are called.
from ..library import quietly
from .framework import Module, below, classname, module_fields, sys, weakref
from .reading import field, fields
from .scans import read_with_gil
from .variables import local, thread_frames

PATIENCE = 4  # scans in a row for which a module may have a variable of a library's function alone, until it is called after that

roots = {}  # id of a module that is in no other one -> (weak reference, name, whether the name is a variable's, how many scans found it before)


def forgetter(known, key):
    return quietly(lambda _: known.pop(key, None))


def held(space, kind):
    """(key, value) of a module's _modules, _parameters or _buffers, from its dictionary."""
    values = dict.get(space, kind)
    if type(values) is dict:
        return list(values.items()) if values else ()
    if below(dict, type(values)):
        return list(dict.items(values))
    script = sys.modules.get("torch.jit._script")  # of a TorchScript module: views of what C++ has
    if script and type(values) is script.OrderedModuleDict:
        return list(dict.items(field(fields(values), "_python_modules")))
    if script and type(values) is script.OrderedDictWrapper:
        inner = field(fields(values), "_c")
        return list(inner.items() if kind == "_parameters" else read_with_gil([inner], type(inner).items)[0] or ())  # what a method puts in a buffer's place it puts there without the lock
    return ()


class Tree:
    """Modules in the order of named_modules, as three lists."""

    def __init__(self):
        self.paths, self.modules, self.spaces = [], [], []  # the last ones are the modules' dictionaries
        self.seen = set()

    def grow(self, path, module):
        """Adds a module and what is below it, without those that were added before."""
        seen, waiting = self.seen, [(path, module)]
        while waiting:
            path, module = waiting.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            space = module_fields(module)
            self.paths.append(path)
            self.modules.append(module)
            self.spaces.append(space)
            values = dict.get(space, "_modules")
            if type(values) is not dict or values:
                waiting.extend([(path + "." + key, child) for key, child in held(space, "_modules") if type(key) is str and below(Module, type(child))][::-1])


def inner_modules(found):
    """Ids of what modules have in them."""
    inner = set()
    for module in found:
        space = module_fields(module)
        values = dict.get(space, "_modules")
        if type(values) is not dict or values:
            inner.update([id(child) for _, child in held(space, "_modules") if child is not None])
    return inner


def name_roots(found, called, sure_only):
    """(name, module) of modules that are in no other one, those with a variable or without one for long first, and how many these are."""
    inner = inner_modules(found)
    tops = [module for module in found if id(module) not in inner]
    for key, (gone, *_) in list(roots.items()):
        if gone() is None:
            roots.pop(key, None)
    taken, result, waiting = {}, [], []

    def scans(module):
        kept = roots.get(id(module))
        return kept[3] if kept and kept[0]() is module else 0

    def take(module, name, sure):
        plain, count = name, 1
        while taken.get(name, module) is not module:
            count += 1
            name = "%s#%d" % (plain, count)
        taken[name] = module
        roots[id(module)] = weakref.ref(module), name, sure, scans(module) + 1
        result.append((name, module))

    for module in tops:
        kept = roots.get(id(module))
        if kept and kept[0]() is module and kept[2]:
            taken[kept[1]] = module
            result.append((kept[1], module))
        else:
            waiting.append(module)
    names = dict(called.modules)
    for module in waiting:  # what the program calls it is known once the library's function has returned
        if id(module) in called.passing and (not sure_only or scans(module) >= PATIENCE):
            names[id(module)] = called.passing[id(module)]
    order = {key: at for at, key in enumerate(names)}
    for module in sorted((m for m in waiting if id(m) in order), key=lambda m: order[id(m)]):
        take(module, names[id(module)][0], True)
    others = [module for module in waiting if id(module) not in order]
    settled = [module for module in others if scans(module) and id(module) not in called.passing]
    for module in settled:  # no variable since the last scan: none is to be expected
        take(module, classname(type(module)), False)
    sure, met = len(result), set(map(id, settled))
    for module in others:
        if id(module) not in met:
            take(module, classname(type(module)), False)
    return result, sure


def in_constructor():
    """Whether a caller is a module's __init__: its parts have no parents yet."""
    return any(frame.f_code.co_name == "__init__" and any(below(Module, type(value)) for name, value in local(frame) if name == "self")
               for frame in thread_frames(sys._getframe(), whole=True))
