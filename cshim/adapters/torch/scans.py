# Full scans: when they are due, and what they name.
from ..library import all_instances, fielded, gradients
from .framework import (
    BUFFER, GRADIENT, Module, PARAMETER, PLAIN, PYTHON, Tensor, below, classname, dispatch_keys, gc, grad_of, is_leaf, layout_of, module_fields,
    perf_counter, plain_fields, sys, torch, weakref,
)
from .modules import Tree, forgetter, held, name_roots, roots
from .reading import fields, tensors
from .variables import FRAMES_GO_LAST, Variables, framework, framework_class

FREE_SCANS, SHARE = 2, 400  # after so many after steps, those take at most one part in SHARE of the time
FOLDERS = framework + "autograd/", framework, weakref.__file__.rpartition("/")[0] + "/"  # of backward passes, of PyTorch, of the standard library

scalers = {}  # id of a scaler of gradients -> (weak reference, name)


class Scans:
    """The scans so far."""
    homes = {}  # id of a tensor -> home: (name, weak reference to its module, kind, key, number of the scan); each scan has its own, and another thread may go on with the last one
    count, last, cost = 0, 0.0, 0.0
    after_steps = 0  # of them; others may have come while the program was moving its modules to the device
    wanted = False  # one that has to wait for its time


def due():
    return Scans.after_steps < FREE_SCANS or perf_counter() - Scans.last >= SHARE * Scans.cost


def holds(home, tensor):
    """Whether a tensor is where it was found. id numbers come again: the name is right while the module has the tensor in that place."""
    _, reference, kind, place, _ = home
    module = reference()
    if module is None:
        return False
    space = module_fields(module)
    values = dict.get(space, kind)
    if type(values) is dict:
        return values.get(place) is tensor
    return any(value is tensor for key, value in held(space, kind) if key == place)


def scan(rows, whole=True, sure_only=False, stepped=False):
    """Names every module, parameter and buffer that there is, or, not whole, those that variables lead to. sure_only leaves out what no variable refers to."""
    began = perf_counter()
    called = Variables()
    found = all_instances(Module) if whole else [module for names in (called.modules, called.passing) for _, module in names.values()]
    tops, sure = name_roots(found, called, sure_only)
    fresh, tree, made = {} if whole else dict(Scans.homes), Tree(), Tree()
    made.seen = tree.seen
    Graph = framework_class("torch.fx.graph_module", "GraphModule")
    for name, top in tops[:sure] if sure_only else tops:
        compiled = below(Graph, type(top)) and not roots.get(id(top), (None, None, False, 0))[2]  # made by the compiler: its parts belong to the original
        (made if compiled else tree).grow(name, top)
    if not sure_only:
        for module in found:  # those in a circle
            if id(module) not in tree.seen:
                tree.grow(classname(type(module)), module)
    for part in made, tree:
        rows.modules(part.paths, part.modules)
    Scans.count += 1
    Scans.after_steps += stepped
    name_parameters(rows, *collect(tree, "_parameters", fresh))
    rows.tensors(BUFFER, *collect(tree, "_buffers", fresh))
    name_scalers(rows, called)
    if whole:
        Scans.wanted = False
    Scans.homes = fresh
    Scans.last, Scans.cost = perf_counter(), max(perf_counter() - began, Scans.cost / 2)
    return called


def collect(tree, kind, fresh):
    """(names, tensors) of a kind that modules have, each in its first place, which is noted."""
    names, found = [], []
    for path, module, space in zip(tree.paths, tree.modules, tree.spaces):
        values = dict.get(space, kind)
        if type(values) is dict and not values:
            continue
        reference = weakref.ref(module)
        for key, tensor in list(values.items()) if type(values) is dict else held(space, kind):
            if type(key) is not str or type(tensor) not in PLAIN and not below(Tensor, type(tensor)):
                continue
            name = path + "." + key
            known = fresh.get(id(tensor))
            if known is not None and known[0] != name and holds(known, tensor):
                continue  # one that several modules share is called after the first
            fresh[id(tensor)] = name, reference, kind, key, Scans.count
            names.append(name)
            found.append(tensor)
    return names, found


def name_parameters(rows, names, parameters):
    rows.tensors(PARAMETER, names, parameters)
    name_unstepped_gradients(rows, [(name, p) for name, p in zip(names, parameters) if id(p) not in rows.covered and is_leaf(p)])
    for at in fielded(parameters):
        name, p, cls = names[at], parameters[at], type(parameters[at])
        own = plain_fields(p) if cls in PLAIN else fields(p) if dispatch_keys is not None and not dispatch_keys(p).has(PYTHON) else None  # wrappers' parts are their memory
        if own:
            name_additions(rows, name, own)


def read_with_gil(things, read):
    """The results of a function that keeps the interpreter's lock, None for all if a thread without the lock may be changing the objects."""
    found = None if FRAMES_GO_LAST else gradients(things, read, sys._current_frames, (gc.isenabled, gc.disable, gc.enable), FOLDERS)
    return found or [None] * len(things)


def is_only_thread():
    """Whether no other thread runs Python. The parts of a sparse tensor come from operators, which release the lock: another thread may begin to write it."""
    return len(sys._current_frames()) == 1


def name_unstepped_gradients(rows, unstepped):
    """Those of parameters that no optimizer steps just now, if no thread can be writing them."""
    found = read_with_gil([p for _, p in unstepped], grad_of)
    found = [(name, g) for (name, _), g in zip(unstepped, found) if g is not None and (layout_of(g) is torch.strided or is_only_thread())]
    rows.tensors(GRADIENT, [name for name, _ in found], [g for _, g in found])


def rename_unstepped_gradients(rows, covered):
    """The same between scans, for the parameters that the last ones found."""
    unstepped = []
    for key, (name, reference, kind, place, _) in list(Scans.homes.items()):
        module = reference() if kind == "_parameters" and key not in covered else None
        values = dict.get(module_fields(module), kind) if module is not None else None
        p = values.get(place) if type(values) is dict else None
        if p is not None and id(p) == key and is_leaf(p):
            unstepped.append((name, p))
    name_unstepped_gradients(rows, unstepped)


def name_additions(rows, name, own):
    """What libraries hang on a parameter: scales of its quantisation, its other copies, a gradient of their own."""
    for path, part in tensors(dict.copy(own), name):
        rows.tensor(GRADIENT if "grad" in path[len(name):] else PARAMETER, path, part)


def name_scalers(rows, called):
    for name, scaler in called.scalers:
        kept = scalers.get(id(scaler))
        if not kept or kept[0]() is not scaler:
            scalers[id(scaler)] = weakref.ref(scaler, forgetter(scalers, id(scaler))), name
    for reference, name in list(scalers.values()):
        for path, part in tensors(fields(reference()), name):
            rows.tensor(BUFFER, path, part)
