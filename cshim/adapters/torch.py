# ruff: noqa: F821
# What PyTorch calls its memory. Runs inside the traced program: it only reads, and lets no exception out. epoch, intern, emit, emit_at, all_instances, variables, quietly, contain
# and again come from the library (cshim/pyfunction.h).
#
# Nothing of the program's runs: attributes are read past __getattr__ and properties, from dictionaries and slots; methods are those of PyTorch's and Python's own classes, called
# as such; functions of __torch_function__ and __torch_dispatch__ are switched off or avoided. Tensors get no weak references, which torch.utils.swap_tensors would refuse.
#
# Looks at everything are rare (docs/names.md): between them a step says what its gradients' addresses are, and that it happened. Threads may step at the same time; what they
# share is replaced, not changed, or of no harm when a thread sees the other's half.

def _start():
    import sys
    import weakref
    from array import array
    from struct import Struct
    from time import perf_counter
    torch = sys.modules["torch"]
    gc = sys.modules.get("gc") or __import__("gc")
    read_variables = globals().get("variables")
    Module, Tensor, Parameter, Optimizer = torch.nn.Module, torch.Tensor, torch.nn.Parameter, torch.optim.Optimizer
    Base = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase
    data_ptr, numel, element_size, storage_offset = Base.data_ptr, Base.numel, Base.element_size, Base.storage_offset
    is_cuda, is_leaf, grad_of, layout_of = (Base.__dict__[key].__get__ for key in ("is_cuda", "is_leaf", "grad", "layout"))
    WithoutFunctions = torch._C.DisableTorchFunction
    function_modes = getattr(torch._C, "_len_torch_function_stack", lambda: 0)
    old = not hasattr(torch._C, "DisableTorchFunctionSubclass")  # to 1.13: modes see what DisableTorchFunction hides from subclasses only
    dispatch_keys, PYTHON = getattr(torch._C, "_dispatch_keys", None), getattr(torch._C.DispatchKey, "Python", None)
    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or getattr(torch._utils, "is_compiling", None) or (lambda: False)
    mro, members, classname = (type.__dict__[key].__get__ for key in ("__mro__", "__dict__", "__name__"))
    below = type.__subclasscheck__
    module_fields, optimizer_fields = Module.__dict__["__dict__"].__get__, Optimizer.__dict__["__dict__"].__get__
    Slot, Attribute, Namespace, Function = type(type(lambda: 0).__dict__["__globals__"]), type(type.__dict__["__dict__"]), type(sys), type(lambda: 0)
    Cell = type((lambda: sys).__closure__[0])
    MODULE, PARAMETER, BUFFER, GRADIENT, OPTIMIZER, STEP = range(1, 7)
    FREE_LOOKS, SHARE = 2, 100       # after so many, looks take at most one part in SHARE of the time
    SOON = 0.5                       # seconds to the next look at a program without steps, at least
    FIRST, OFTEN = 16, 8             # so many steps have their gradients named, and parameters' addresses compared; after them every eighth one
    FEW, MANY, DEEP = 64, 4096, 4    # of a variable's parts, of an object's tensors, levels of its parts
    row, head = Struct("<QQQII"), Struct("<Q")
    linked = [False]
    steps = [0]       # of all optimizers
    wanted = [False]  # a look that has to wait for its time
    plans = {}        # id of an optimizer -> Plan
    roots = {}        # id of a module that is in no other one -> (weak reference, name, whether the name is a variable's)
    scalers = {}      # id of a scaler of gradients -> (weak reference, name)
    homes = {}        # id of a tensor -> Home; replaced by each look

    class Told:
        """What was said in one recording."""

        def __init__(self, number):
            self.epoch, self.numbers, self.modules = number, {}, {}  # name -> intern's number; id of a module -> its name

        def number(self, name):
            found = self.numbers.get(name)
            if found is None:
                found = self.numbers[name] = intern(name)
            return found

    told = [Told(0)]

    def now_told():
        """Of the recording that runs; a new one knows nothing."""
        current, number = told[0], epoch()
        if current.epoch != number:
            current = told[0] = Told(number)
        return current

    def forgetter(known, key):
        return quietly(lambda _: known.pop(key, None))

    # -- reading

    def field(fields, key):
        """From an object's dictionary, None if it is not there."""
        return dict.get(fields, key) if below(dict, type(fields)) else None

    def fields(thing):
        """An object's dictionary, None where it has none or the program made its own."""
        for cls in mro(type(thing)):
            found = members(cls).get("__dict__")
            if found is not None:
                return found.__get__(thing) if type(found) is Attribute else None
        return None

    def parts(thing):
        """(key, value) for what an object of a class keeps in its dictionary and its slots."""
        for cls in mro(type(thing)):
            for key, slot in list(members(cls).items()) if members(cls).get("__slots__") is not None else ():
                if type(slot) is Slot:
                    try:
                        yield key, slot.__get__(thing)
                    except AttributeError:
                        pass  # not set
        own = fields(thing)
        if below(dict, type(own)):
            yield from list(dict.items(own))

    def entries(value):
        """(key, value) for what a list, tuple, dictionary or object has in it."""
        cls = type(value)
        if below(dict, cls):
            for at, (key, part) in enumerate(list(dict.items(value))):
                yield (key if type(key) is str else str(key) if type(key) is int and -MANY < key < MANY else str(at)), part
        elif below(list, cls):
            yield from ((str(at), part) for at, part in enumerate(list.copy(value)))
        elif below(tuple, cls):
            yield from ((str(at), part) for at, part in enumerate(tuple.__iter__(value)))
        elif not (below(type, cls) or below(Namespace, cls) or below(Module, cls) or below(Optimizer, cls) or cls is Function) and members(cls).get("__module__") is not None:
            yield from ((key, part) for key, part in parts(value) if type(key) is str)

    def tensors(value, path="", deep=DEEP):
        """(path, tensor) for what a value is or has in it."""
        count, waiting, met = 0, [(path, value, deep)], set()
        while waiting and count < MANY:
            path, value, deep = waiting.pop()
            cls = type(value)
            if below(Tensor, cls):
                count += 1
                yield path, value
            elif deep and cls not in SIMPLE and id(value) not in met:
                met.add(id(value))
                inside = [(path + "." + key if path else key, part, deep - 1) for (key, part), _ in zip(entries(value), range(MANY))]
                waiting.extend(reversed(inside))

    SIMPLE = frozenset((int, float, str, bytes, bool, type(None), complex, Function, type, Namespace))

    def memory(tensor, deep=2):
        """[(suffix, address, bytes, address of the storage)] of what holds a tensor's elements on the device. Wrappers of other tensors are never asked, their parts are."""
        cls = type(tensor)
        if cls is not Tensor and cls is not Parameter:
            inner = [(key, part) for key, part in parts(tensor) if below(Tensor, type(part)) and key not in ("_grad", "grad")]
            wrapper = dispatch_keys is None or dispatch_keys(tensor).has(PYTHON)
            if wrapper:
                single = len(inner) == 1 or any(key == "_local_tensor" for key, _ in inner)
                return [("" if single else "." + key + suffix, *rest) for key, part in inner if deep for suffix, *rest in memory(part, deep - 1)]
        if not is_cuda(tensor):
            return []
        try:
            address = data_ptr(tensor)
        except RuntimeError:
            if layout_of(tensor) is torch.strided:
                raise
            return sparse(tensor)
        if not address:
            return []
        size = element_size(tensor)
        return [("", address, numel(tensor) * size, address - storage_offset(tensor) * size)]

    def sparse(tensor):
        """Its parts are tensors that only operators give, which go past the program's modes."""
        guard = torch._C._DisableTorchDispatch()
        try:
            if layout_of(tensor) is torch.sparse_coo:
                found = ("indices", Base._indices(tensor)), ("values", Base._values(tensor))
            elif layout_of(tensor) in (torch.sparse_csr, getattr(torch, "sparse_bsr", None)):
                found = ("crow_indices", Base.crow_indices(tensor)), ("col_indices", Base.col_indices(tensor)), ("values", Base.values(tensor))
            else:
                return []
            return [("." + key, *rest) for key, part in found for _, *rest in memory(part)]
        finally:
            del guard

    # -- saying

    class Rows:
        """Names on their way into the recording."""

        def __init__(self):
            self.told = now_told()
            self.covered = ()  # ids of parameters whose gradients are said apart
            self.found = []  # (category, name, address, bytes, id, address of the storage, the tensor if it begins within)

        def module(self, name, module):
            if self.told.modules.get(id(module)) != name:
                self.told.modules[id(module)] = name
                self.found.append((MODULE, name, 0, 0, id(module), 0, None))

        def tensor(self, category, name, tensor):
            try:
                for suffix, address, size, storage in memory(tensor):
                    self.found.append((category, name + suffix, address, size, id(tensor), storage, tensor if address != storage else None))
            except Exception as error:
                contain(error)

        def flats(self):
            """{(category, address of a storage): (name, its bytes)} for storages that several named tensors lie in, none of which is all of it."""
            if not any(entry[6] is not None for entry in self.found):
                return {}  # all begin with their storage
            shares, result = {}, {}
            for category, name, address, size, _, storage, tensor in self.found:
                if storage:
                    shares.setdefault((category, storage), {}).setdefault(address, (name, size, tensor))
            for key, share in shares.items():
                if len(share) > 1:
                    whole = max(tensor is not None and storage_size(tensor) for _, _, tensor in share.values()) or sum(size for _, size, _ in share.values())
                    if max(size for _, size, _ in share.values()) < whole:
                        result[key] = together([name for name, _, _ in share.values()]), whole
            return result

        def send(self):
            number, said, packed = self.told.number, set(), [head.pack(self.told.epoch)]
            flats = self.flats()
            for category, name, address, size, owner, storage, _ in self.found:
                key = category, storage
                if key in flats and key not in said:  # before its parts: the first name of a block stays
                    said.add(key)
                    packed.append(row.pack(storage, flats[key][1], 0, number(flats[key][0]), category))
                packed.append(row.pack(address, size, owner, number(name), category))
            self.found = []
            if len(packed) > 1:
                emit(b"".join(packed))

    def storage_size(tensor):
        try:
            return Base.untyped_storage(tensor).nbytes() if type(tensor) is Tensor or type(tensor) is Parameter else 0
        except Exception as error:
            contain(error)
            return 0

    def together(names):
        """What several tensors in one piece of memory are called."""
        kind, _, first = names[0].rpartition(":")
        shared = first.split(".")
        for name in names[1:]:
            other = name.rpartition(":")[2].split(".")
            shared = shared[:next((at for at, pair in enumerate(zip(shared, other)) if pair[0] != pair[1]), min(len(shared), len(other)))]
        return (kind + ":" if kind else "") + ".".join(shared + ["(flat of %d)" % len(names)])

    # -- what the program calls its objects

    libraries = tuple({path for path in (sys.prefix, sys.base_prefix, sys.exec_prefix) if type(path) is str})
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
        """Those of all threads, the oldest first, where they stand still meanwhile: an optimizer may step in a thread of autograd's."""
        if not getattr(sys, "_is_gil_enabled", lambda: True)():
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
        elif read_variables:
            cells = code.co_cellvars
            if sys.version_info >= (3, 11):
                cells = tuple(key for key in cells if key not in code.co_varnames)
            keys = code.co_varnames + cells + code.co_freevars
            for key, value in zip(keys, read_variables(frame, len(keys)) or ()):
                if type(value) is Cell:
                    try:
                        value = value.cell_contents
                    except ValueError:
                        continue
                yield key, value

    def variables():
        """(name, value) of what the program's own modules and running functions have, __main__ first. Names with an underscore come last."""
        late, loaded = [], dict.copy(sys.modules)
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
                    if name.startswith("_"):
                        late.append((name, value))
                    else:
                        yield name, value
        own, others = [], []
        for frame in all_frames():
            (own if is_own(frame.f_code.co_filename) else others).append(frame)
        for frame in own + others:
            for name, value in local(frame):
                if type(value) not in SIMPLE and name != "self":
                    if name.startswith("_"):
                        late.append((name, value))
                    else:
                        yield name, value
            values = next((value for name, value in local(frame) if name == "self"), None)
            if values is not None and not below(Module, type(values)) and not below(Optimizer, type(values)):
                yield classname(type(values)), values
        yield from late

    def framework_class(place, name):
        """A class of the framework's, if it is loaded."""
        module = sys.modules.get(place)
        found = module and field(Namespace.__dict__["__dict__"].__get__(module), name)
        return found if below(type, type(found)) else Told  # nothing is of that class

    class Called:
        """What variables say, by id."""

        def __init__(self):
            self.modules, self.objects, self.scalers, met = {}, [], [], set()
            self.kept = list(variables())
            Scaler = framework_class("torch.amp.grad_scaler", "GradScaler")
            if Scaler is Told:
                Scaler = framework_class("torch.cuda.amp.grad_scaler", "GradScaler")

            def take(name, value):
                cls = type(value)
                if below(Module, cls):
                    self.modules.setdefault(id(value), (name, value))
                elif below(Scaler, cls):
                    self.scalers.append((name, value))
                else:
                    return not below(Tensor, cls) and not below(type, cls) and id(value) not in met
                return False

            waiting = []
            for name, value in self.kept:
                if take(name, value):
                    met.add(id(value))
                    self.objects.append((name, value))
                    waiting.append((name, value, 2))
            for name, value, deep in waiting:
                for (key, part), _ in zip(entries(value), range(FEW)):
                    key = name + "." + key
                    if take(key, part) and deep > 1 and (below(list, type(part)) or below(tuple, type(part)) or below(dict, type(part))):
                        met.add(id(part))
                        waiting.append((key, part, deep - 1))

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

    # -- modules

    class Home:
        """Where a tensor was found. id numbers come again: the name holds while the module has the tensor in that place."""
        __slots__ = "name", "module", "kind", "key"

        def __init__(self, name, module, kind, key):
            self.name, self.module, self.kind, self.key = name, module, kind, key

        def holds(self, tensor):
            module = self.module()
            return module is not None and any(value is tensor for key, value in held(module_fields(module), self.kind) if key == self.key)

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
            return list(field(fields(values), "_c").items())
        return []

    def walk(name, module, seen):
        """(path, module, its dictionary) in the order of named_modules, without those that were met."""
        waiting = [(name, module)]
        while waiting:
            name, module = waiting.pop()
            if id(module) not in seen:
                seen[id(module)] = module
                space = module_fields(module)
                yield name, module, space
                children = held(space, "_modules")
                if children:
                    waiting.extend([(name + "." + key, child) for key, child in children if type(key) is str and below(Module, type(child))][::-1])

    def name_roots(found, called):
        """(name, module) of modules that are in no other one, those with a variable or without one for long first, and how many these are."""
        inner = {id(child) for module in found for _, child in held(module_fields(module), "_modules") if child is not None}
        tops = [module for module in found if id(module) not in inner]
        for key, (gone, _, _) in list(roots.items()):
            if gone() is None:
                roots.pop(key, None)
        taken, result, waiting = {}, [], []

        def take(module, name, sure):
            plain, count = name, 1
            while taken.get(name, module) is not module:
                count += 1
                name = "%s#%d" % (plain, count)
            taken[name] = module
            roots[id(module)] = weakref.ref(module), name, sure
            result.append((name, module))

        for module in tops:
            kept = roots.get(id(module))
            if kept and kept[0]() is module and kept[2]:
                taken[kept[1]] = module
                result.append((kept[1], module))
            else:
                waiting.append(module)
        order = {key: at for at, key in enumerate(called.modules)}
        for module in sorted((m for m in waiting if id(m) in order), key=lambda m: order[id(m)]):
            take(module, called.modules[id(module)][0], True)
        others = [module for module in waiting if id(module) not in order]
        settled = [module for module in others if id(module) in roots and roots[id(module)][0]() is module]
        for module in settled:  # no variable since the last look: none is to be expected
            take(module, classname(type(module)), False)
        sure, met = len(result), set(map(id, settled))
        for module in others:
            if id(module) not in met:
                take(module, classname(type(module)), False)
        return result, sure

    def being_made():
        """Whether a module is being put together by a call that led here: its parts have no parents yet."""
        return any(frame.f_code.co_name == "__init__" and any(below(Module, type(value)) for name, value in local(frame) if name == "self")
                   for frame in thread_frames(sys._getframe(), whole=True))

    last, cost, looks = [0.0], [0.0], [0]

    def due():
        return looks[0] < FREE_LOOKS or perf_counter() - last[0] >= SHARE * cost[0]

    def look(rows, whole=True, sure_only=False):
        """Names every module, parameter and buffer that there is, or, not whole, those that variables lead to. sure_only leaves out what no variable refers to."""
        began = perf_counter()
        called = Called()
        found = all_instances(Module) if whole else [module for _, module in called.modules.values()]
        tops, sure = name_roots(found, called)
        seen, fresh = {}, {} if whole else dict(homes)
        Graph = framework_class("torch.fx.graph_module", "GraphModule")
        for name, top in tops[:sure] if sure_only else tops + [(classname(type(module)), module) for module in found]:  # the latter for those in a circle
            made = below(Graph, type(top)) and not roots.get(id(top), (None, None, False))[2]  # by the compiler: what it has is somebody else's
            for path, module, space in walk(name, top, seen):
                if made:
                    rows.module(path, module)
                else:
                    name_module(rows, path, module, space, fresh)
        name_scalers(rows, called)
        if whole:
            wanted[0] = False
        homes.clear()
        homes.update(fresh)
        looks[0] += 1
        last[0], cost[0] = perf_counter(), max(perf_counter() - began, cost[0] / 2)
        return called

    def name_module(rows, path, module, space, fresh):
        rows.module(path, module)
        reference = None
        for category, kind in (PARAMETER, "_parameters"), (BUFFER, "_buffers"):
            for key, tensor in held(space, kind):
                if type(key) is not str or not below(Tensor, type(tensor)):
                    continue
                known = fresh.get(id(tensor))
                if known and known.name != path + "." + key and known.holds(tensor):
                    continue  # one that several modules share is called after the first
                reference = reference or weakref.ref(module)
                name = path + "." + key
                fresh[id(tensor)] = Home(name, reference, kind, key)
                rows.tensor(category, name, tensor)
                if category == PARAMETER:
                    g = grad_of(tensor) if id(tensor) not in rows.covered and is_leaf(tensor) else None
                    if g is not None:
                        rows.tensor(GRADIENT, name, g)
                    name_additions(rows, name, tensor)

    def name_additions(rows, name, tensor):
        """What libraries hang on a parameter: scales of its quantisation, its other copies, a gradient of their own."""
        if type(tensor) is not Tensor and type(tensor) is not Parameter and (dispatch_keys is None or dispatch_keys(tensor).has(PYTHON)):
            return  # its parts are its memory
        own = fields(tensor)
        if own:
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

    # -- optimizers

    class Plan:
        """An optimizer as it was last seen."""

        def __init__(self, optimizer):
            self.gone = weakref.ref(optimizer, forgetter(plans, id(optimizer)))
            self.name = classname(type(optimizer))
            self.ids, self.steps, self.states, self.look, self.epoch = None, 0, -1, 0, 0
            self.names = {}        # id of a parameter -> its name
            self.plain = False     # all parameters are leaves whose address can be had without a detour
            self.gradients = self.places = b""  # rows of the parameters' gradients, and of the parameters, without addresses
            self.flats = []        # (index of a parameter, bytes before its gradient, row without address) of gradients in one piece of memory
            self.addresses = None  # of the parameters
            self.wraps = any(below(Optimizer, type(value)) for value in list((optimizer_fields(optimizer) or {}).values()))

        def parameters(self, optimizer):
            """[parameters of a group] for all groups; empty lists where the optimizer has something else."""
            groups = field(optimizer_fields(optimizer), "param_groups")
            lists = [field(group, "params") for group in list.copy(groups)] if below(list, type(groups)) else []
            return [list.copy(held) if below(list, type(held)) else [] for held in lists]

        def name_parameters(self, groups, parameters, rows, may_look):
            """Names by modules, else by variables, else by the place in the optimizer."""
            def unknown():
                return [p for p in parameters if not ((home := homes.get(id(p))) and home.holds(p))]

            loose, called = unknown(), None
            if may_look and loose:
                called = look(rows, whole=False)
                loose = unknown()
                if loose and due():
                    called = look(rows)
                    loose = unknown()
            loose = {id(p) for p in loose}
            found = called.tensor(loose) if called and loose else {key: self.names[key] for key in loose if key in self.names}
            for at, group in enumerate(groups):
                for index, p in enumerate(group):
                    if id(p) not in loose:
                        self.names[id(p)] = homes[id(p)].name
                    elif below(Tensor, type(p)):
                        self.names[id(p)] = found.get(id(p)) or "%s.%d.%d" % (self.name, at, index)
                        rows.tensor(PARAMETER, self.names[id(p)], p)

        def prepare(self, groups, rows, may_look):
            parameters = [p for group in groups for p in group if below(Tensor, type(p))]
            self.name_parameters(groups, parameters, rows, may_look)
            number, start = rows.told.number, head.pack(rows.told.epoch)
            self.plain = all((type(p) is Tensor or type(p) is Parameter) and is_leaf(p) and layout_of(p) is torch.strided for p in parameters)
            self.plain = self.plain and len(parameters) == sum(map(len, groups))
            self.look, self.epoch, self.ids, self.addresses = looks[0], rows.told.epoch, [id(p) for group in groups for p in group], None
            if self.plain:
                sizes = [numel(p) * element_size(p) for p in parameters]
                self.gradients = start + b"".join(row.pack(0, size, id(p), number(self.names[id(p)]), GRADIENT) for p, size in zip(parameters, sizes))
                self.places = start + b"".join(row.pack(0, size, id(p), number(self.names[id(p)]), PARAMETER) for p, size in zip(parameters, sizes))

        def name_gradients(self, parameters, rows):
            """One by one, which finds those that lie in one piece of memory."""
            before = len(rows.found)
            parameters = [p for p in parameters if below(Tensor, type(p)) and is_leaf(p)]
            for p in parameters:
                g = grad_of(p)
                if g is not None:
                    rows.tensor(GRADIENT, self.names[id(p)], g)
            flats, at, self.flats = rows.flats(), {key: index for index, key in enumerate(self.ids)}, []
            by_gradient = {id(grad_of(p)): id(p) for p in parameters}
            for category, _, address, _, owner, storage, _ in rows.found[before:]:
                flat = flats.pop((category, storage), None)
                if flat and category == GRADIENT and owner in by_gradient:
                    self.flats.append((at[by_gradient[owner]], address - storage, flat[1], rows.told.number(flat[0])))

        def follow(self, optimizer, rows):
            self.steps += 1
            groups = self.parameters(optimizer)
            parameters = groups[0] if len(groups) == 1 else [p for group in groups for p in group]
            new = list(map(id, parameters)) != self.ids or self.epoch != rows.told.epoch
            if new or wanted[0]:
                rows.covered = frozenset(map(id, parameters))
            if wanted[0] and due():
                look(rows)
            if new or self.look != looks[0]:
                self.prepare(groups, rows, new)
                self.name_gradients(parameters, rows)
            elif (self.steps <= FIRST or not self.steps % OFTEN) and not (self.plain and self.quick(parameters)):
                self.name_gradients(parameters, rows)
            state = field(optimizer_fields(optimizer), "state")
            held = dict.__len__(state) if below(dict, type(state)) else 0
            if new or held != self.states or self.steps < 4 or not self.steps & self.steps - 1:
                self.states = held
                self.keep(optimizer, rows)
            if not self.wraps:  # the one inside says so
                rows.found.append((STEP, self.name, 0, self.steps, id(optimizer), 0, None))

        def quick(self, parameters):
            """All addresses in one go. False if a gradient has none, as a sparse one."""
            try:
                gradients = [0 if (g := p.grad) is None else data_ptr(g) for p in parameters]
            except RuntimeError:
                if all(layout_of(p.grad) is torch.strided for p in parameters if p.grad is not None):
                    raise
                return False
            for index, before, size, number in self.flats:
                if gradients[index]:
                    emit(head.pack(self.epoch) + row.pack(gradients[index] - before, size, 0, number, GRADIENT))
            emit_at(self.gradients, array("Q", gradients).tobytes())
            addresses = list(map(data_ptr, parameters))
            if addresses != self.addresses:
                if self.addresses is not None:  # p.data = ..., module.to(...)
                    emit_at(self.places, array("Q", [place if is_cuda(p) else 0 for place, p in zip(addresses, parameters)]).tobytes())
                self.addresses = addresses
            return True

        def keep(self, optimizer, rows):
            """What the optimizer keeps: for a parameter, and for itself."""
            own = optimizer_fields(optimizer)
            state = field(own, "state")
            for key, value in list(dict.items(state)) if below(dict, type(state)) else ():
                name = self.names.get(id(key)) or (key if type(key) is str else self.name)
                for path, tensor in tensors(value, ""):
                    if id(tensor) not in self.names:
                        rows.tensor(OPTIMIZER, "%s:%s" % (path or "state", name), tensor)
            for key, value in list(dict.items(own)):
                if key not in ("state", "param_groups", "defaults"):
                    for path, tensor in tensors(value, key):
                        if id(tensor) not in self.names and id(tensor) not in homes:
                            rows.tensor(OPTIMIZER, "%s:%s" % (path, self.name), tensor)
            for index, group in enumerate(field(own, "param_groups") or ()):
                for key, value in list(dict.items(group)):
                    if key != "params" and below(Tensor, type(value)):  # a learning rate on the device
                        rows.tensor(OPTIMIZER, "%s:%s.%d" % (key, self.name, index), value)

    def plan_of(optimizer):
        plan = plans.get(id(optimizer))
        if plan is None or plan.gone() is not optimizer:
            plan = plans[id(optimizer)] = Plan(optimizer)
        return plan

    def carefully(work, *arguments):
        """Does it without functions of the program's that PyTorch would call, and without a garbage collection, which what we make for a moment would cause."""
        if old and function_modes():
            return
        collects = gc.isenabled()
        gc.disable()
        try:
            with WithoutFunctions():
                rows = Rows()
                work(rows, *arguments)
                rows.send()
        except Exception as error:
            contain(error)
        finally:
            if collects:
                gc.enable()

    def step(rows, optimizer):
        plan_of(optimizer).follow(optimizer, rows)

    def stepped(optimizer, args, kwargs):
        steps[0] = count = steps[0] + 1
        if count > 1 and not count & count - 1:
            wanted[0] = True
        carefully(step, optimizer)
        if not linked[0] and count < 4:
            try_link()

    def begin(rows):
        """What has names by now. Most often the program is in the middle of moving its first module to the device, and what it is going to be called is not known."""
        if not being_made():
            look(rows, whole=False, sure_only=True)
        ask(SOON)

    asked = [0.0, 0]  # when the next look is due where nothing steps, and the steps until it was asked for

    def ask(seconds):
        asked[:] = perf_counter() + seconds, steps[0]
        again(int(seconds * 1000))

    def tell(rows):
        running = bool(frames())
        in_turn = running and perf_counter() >= asked[0]
        if in_turn and steps[0] != asked[1]:
            ask(max(SOON, SHARE * cost[0]))  # what trains looks when it steps
            return
        if in_turn and being_made():
            ask(SOON)
            return
        look(rows, sure_only=in_turn)
        for optimizer in all_instances(Optimizer):
            plan = plan_of(optimizer)
            plan.prepare(plan.parameters(optimizer), rows, plan.ids is None)
            plan.keep(optimizer, rows)
        if running:
            ask(max(SOON, SHARE * cost[0]))

    def everything():
        """All that there is: at the end, when memory ran out, and now and then where no optimizer steps."""
        carefully(tell)

    def link():
        """Finds out how the nodes of the graph look inside, with a small graph of our own. Whether it is known now."""
        if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack() or not link_begin():
            return False

        class Probe(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, gradient):
                link_look()
                return gradient

        with torch.inference_mode(False), torch.enable_grad():
            x = torch.zeros(1, device="cpu", dtype=torch.float32, requires_grad=True)
            y = Probe.apply(x)
            z = Probe.apply(y)
            first, second = z.grad_fn._sequence_nr(), y.grad_fn._sequence_nr()
            torch.autograd.Variable._execution_engine.run_backward((z,), (torch.ones_like(z),), False, False, (), allow_unreachable=True, accumulate_grad=True)  # imports nothing
        return link_end(first, second) == 1

    def try_link():
        try:
            linked[0] = linked[0] or link()
        except Exception as error:
            contain(error)

    quiet = quietly(stepped)

    def hook(optimizer, args, kwargs):
        """Where the compiler takes the whole of a step into its graph, it comes here, and must find nothing to do."""
        if not compiling():
            quiet(optimizer, args, kwargs)

    def hide():
        """Has the compiler leave our functions as they are where it compiles what the program calls. It would break graphs, count, and warn."""
        skip = getattr(getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None), "skip_code", None)
        waiting = [_start.__code__] if skip else []
        while waiting:
            code = waiting.pop()
            skip(code)
            waiting.extend(const for const in code.co_consts if type(const) is type(code))

    def follow_steps():
        """Has stepped called after every step. From 2.0 on PyTorch has a list for that; before, optimizers call an empty method of their own for its profiler, or nothing."""
        place = sys.modules["torch.optim.optimizer"]
        if hasattr(place, "register_optimizer_step_post_hook"):
            place.register_optimizer_step_post_hook(hook)
        elif hasattr(Optimizer, "_optimizer_step_code"):
            def _optimizer_step_code(self):
                quiet(self, (), {})
            Optimizer._optimizer_step_code = _optimizer_step_code
        else:
            waiting = [Optimizer]
            while waiting:
                cls = waiting.pop()
                waiting.extend(type.__subclasses__(cls))
                if cls is not Optimizer and "step" in members(cls):
                    follow_class(cls, members(cls)["step"])

    def follow_class(cls, step):
        if type(step) is not type(follow_steps):
            return

        def followed(self, *args, **kwargs):
            result = step(self, *args, **kwargs)
            quiet(self, args, kwargs)
            return result

        for key in "__module__", "__name__", "__qualname__", "__doc__":
            setattr(followed, key, getattr(step, key))
        followed.__dict__.update(step.__dict__)
        followed.__wrapped__ = step
        cls.step = followed

    try:
        hide()
    except Exception as error:
        contain(error)
    follow_steps()
    try_link()
    carefully(begin)
    return everything


report = _start()
