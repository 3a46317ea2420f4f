# What the program calls its objects: the variables of its modules and of its functions that run.
from ..library import variables
from .framework import Cell, FEW, MANY, Module, Namespace, Optimizer, SIMPLE, Tensor, below, classname, sys, torch
from .reading import entries, field, tensors
from .rows import Emitted

libraries = tuple({path for path in (sys.prefix, sys.base_prefix, sys.exec_prefix) if type(path) is str})
FRAMES_GO_LAST = sys.version_info[:3] == (3, 11, 0)  # it frees a function's variables while its frame can still be found: what another thread runs may be half gone
own_code = {}  # file -> whether it is the program's


def is_own(file):
    known = own_code.get(file)
    if known is None:
        library = "/site-packages/" in file or "/dist-packages/" in file or file.startswith("<") and not file.startswith(("<stdin", "<string", "<ipython"))
        known = own_code[file] = not library and not any(file.startswith(path + "/lib/python") for path in libraries)
    return known

own_globals, framework = globals(), torch.__file__.rpartition("/")[0] + "/"


def frames():
    """The calls that led here but for the framework's, the outermost first. None of ours: a frame in reach of itself would keep all of them, and what they have, for a while."""
    return thread_frames(sys._getframe())


def thread_frames(frame, whole=False):
    found, count = [], 0
    while frame is not None and count < MANY:
        if frame.f_globals is not own_globals and (whole or not frame.f_code.co_filename.startswith(framework)):
            found.append(frame)
        frame, count = frame.f_back, count + 1
    return found[::-1]


def all_frames():
    """Those of all threads, the oldest first, where they do not run meanwhile: an optimizer may step in a thread of autograd's."""
    if FRAMES_GO_LAST or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return frames()
    return [frame for innermost in list(sys._current_frames().values())[::-1] for frame in thread_frames(innermost)]


def local(frame):
    """(name, value) of a function's variables. Up to 3.12 they have no other reader that changes nothing: f_locals would keep what the function lets go."""
    code = frame.f_code
    if not code.co_flags & 1:
        return
    if sys.version_info >= (3, 13):
        mapping = frame.f_locals
        for key in code.co_varnames + code.co_cellvars + code.co_freevars:
            try:
                yield key, mapping[key]
            except KeyError:
                pass
    else:
        cells = code.co_cellvars
        if sys.version_info >= (3, 11):
            cells = tuple(key for key in cells if key not in code.co_varnames)
        keys = code.co_varnames + cells + code.co_freevars
        for key, value in zip(keys, variables(frame, len(keys)) or ()):
            if type(value) is Cell:
                try:
                    value = value.cell_contents
                except ValueError:
                    continue
            yield key, value


def lasting_variables():
    """(name, value) of what the program's own modules have, __main__ first."""
    loaded = dict.copy(sys.modules)
    for key in ["__main__"] + [key for key in loaded if key != "__main__"]:
        module = loaded.get(key)
        if not below(Namespace, type(module)):
            continue
        space = Namespace.__dict__["__dict__"].__get__(module)
        file = dict.get(space, "__file__")
        if key != "__main__" and not (type(file) is str and is_own(file)):
            continue
        for name, value in list(dict.items(space)):
            if type(name) is str and type(value) not in SIMPLE:
                yield name, value


def running_variables(frames):
    """(name, value) of what running functions have."""
    for frame in frames:
        values = None
        for name, value in local(frame):
            if name == "self":
                values = value
            elif type(value) not in SIMPLE:
                yield name, value
        if values is not None and not below(Module, type(values)) and not below(Optimizer, type(values)):
            yield classname(type(values)), values


def named_variables():
    """Lists of (name, value), the best names first: what lasts; what the program's functions that run have, the outermost first; names with an underscore; what libraries' functions
    have. The last say little: what a program gets from a library it calls by a name of its own soon. Where all that runs is a library's, that is the program."""
    own, others = [], []
    for frame in all_frames():
        (own if is_own(frame.f_code.co_filename) else others).append(frame)
    if not own:
        own, others = others, own
    lasting, running = list(lasting_variables()), list(running_variables(own))
    late = [pair for pair in lasting + running if pair[0].startswith("_")]
    return [pair for pair in lasting if not pair[0].startswith("_")], [pair for pair in running if not pair[0].startswith("_")], late, list(running_variables(others))


def framework_class(place, name):
    """A class of the framework's, if it is loaded."""
    module = sys.modules.get(place)
    found = module and field(Namespace.__dict__["__dict__"].__get__(module), name)
    return found if below(type, type(found)) else Emitted  # nothing is of that class


class Variables:
    """Names by variables, by id; those in passing only libraries' functions have."""

    def __init__(self):
        self.modules, self.passing, self.objects, self.scalers, self.met = {}, {}, [], [], set()
        *groups, passing = named_variables()
        self.kept = sum(groups, []) + passing
        self.Scaler = framework_class("torch.amp.grad_scaler", "GradScaler")
        if self.Scaler is Emitted:
            self.Scaler = framework_class("torch.cuda.amp.grad_scaler", "GradScaler")
        for group in groups:
            self.add(group, self.modules)
        self.add(passing, self.passing)

    def add(self, pairs, modules):
        """Takes in variables, then what they contain."""
        waiting = []
        for name, value in pairs:
            if self.take(name, value, modules):
                self.met.add(id(value))
                self.objects.append((name, value))
                waiting.append((name, value, 2))
        for name, value, deep in waiting:
            for (key, part), _ in zip(entries(value), range(FEW)):
                key = name + "." + key
                if self.take(key, part, modules) and deep > 1 and (below(list, type(part)) or below(tuple, type(part)) or below(dict, type(part))):
                    self.met.add(id(part))
                    waiting.append((key, part, deep - 1))

    def take(self, name, value, modules):
        """Reports whether what is in the value is to be looked at."""
        cls = type(value)
        if below(Module, cls):
            if id(value) not in self.modules:
                modules.setdefault(id(value), (name, value))
        elif below(self.Scaler, cls):
            self.scalers.append((name, value))
        else:
            return not below(Tensor, cls) and not below(type, cls) and id(value) not in self.met
        return False

    def tensor(self, wanted):
        """{id: name} for tensors that no module has, by variables and what is in them."""
        found = {id(value): name for name, value in reversed(self.kept) if id(value) in wanted}
        for name, value in self.objects:
            if len(found) == len(wanted):
                break
            for path, part in tensors(value, name, 3):
                if id(part) in wanted:
                    found.setdefault(id(part), path)
        return found
