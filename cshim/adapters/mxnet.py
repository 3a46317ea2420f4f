# What MXNet calls its memory. Runs inside the traced program: it only reads, and lets no exception out. epoch, intern, emit and instances come from the library
# (cshim/adapters/pyfunction.c). Names are those of the GPU memory profilers that were made for MXNet: in_arg:PARAMETER, arg_grad:PARAMETER, aux_state:PARAMETER,
# optimizer_state:KIND:PARAMETER, data_entry:NAME. docs/names-mxnet.md says what a program can see of this.

def _start():
    import sys
    from struct import Struct
    from time import perf_counter
    from types import CodeType, FunctionType
    from weakref import ref
    modules, ending = sys.modules, sys.is_finalizing
    mxnet, ctypes, gc = modules["mxnet"], modules["ctypes"], modules.get("gc") or __import__("gc")
    NDArray = modules["mxnet.ndarray"].NDArray
    Parameter, Block = modules["mxnet.gluon.parameter"].Parameter, modules["mxnet.gluon.block"].Block
    Trainer = modules["mxnet.gluon.trainer"].Trainer
    Executor, Module = modules["mxnet.executor"].Executor, modules["mxnet.module.module"].Module
    Optimizer, Updater = modules["mxnet.optimizer.optimizer"].Optimizer, modules["mxnet.optimizer.optimizer"].Updater
    MODULE, PARAMETER, BUFFER, GRADIENT, OPTIMIZER, STEP, DATA, FREE = range(1, 9)
    GPU = 2          # of mxnet's device types
    LOOK_EARLY = 16  # steps in which arrays are waited for that have no memory yet
    LOOK_FROM, LOOK_EVERY = 64, 4096  # steps after which everything is read again although nothing seems to have changed: 64, 128, 256, and so on
    row, head = Struct("<QQQII"), Struct("<Q")
    numbers, spoken_in = {}, [0]  # what intern gave, and in which recording
    said = {}                     # what was said last: (category, name, device, id of the owner) -> (address, bytes), id of a block -> its name
    held_at = {}                  # address -> keys in said; several if arrays of several owners share memory
    owners = {}                   # id of who keeps arrays -> (weak reference, keys in said)
    plans = {}                    # id of a trainer, module or updater -> Plan

    def number(name):
        found = numbers.get(name)
        if found is None:
            found = numbers[name] = intern(name)
        return found

    def renewed():
        """Whether a recording began since the last time, in which nothing was said so far."""
        now = epoch()
        if now == spoken_in[0]:
            return False
        spoken_in[0] = now
        numbers.clear()
        said.clear()
        held_at.clear()
        owners.clear()
        for plan in list(plans.values()):
            plan.seen = None
        return True

    # An array of MXNet 1.x as it lies in memory: a pointer to what holds its elements, which begins with address, bytes, type and number of the device, and goes on with the same
    # of index arrays, for a sparse one. Asking MXNet itself would allocate what it has put off, and stand in its profiles.
    string_at, pointer, part, whole = ctypes.string_at, ctypes.c_uint64.from_address, Struct("<QQiiii"), Struct("<QQiiiiQQ")

    def storage(array):
        """[(part, address, bytes, device)] of the device memory that holds an array's elements, after that of their indices. The address is 0 until the engine has come to it."""
        at = array.handle.value
        chunk = at and pointer(at).value
        if not chunk:
            return ()
        address, size, kind, device, _, _, begin, end = whole.unpack(string_at(chunk, whole.size))
        if kind != GPU:
            return ()
        if begin == end:
            return (("", address, size, device),) if size else ()
        parts = []
        if end - begin in (part.size, 2 * part.size):
            names = ("indices:",) if end - begin == part.size else ("indptr:", "indices:")
            parts = [(name,) + part.unpack_from(string_at(begin, end - begin), i * part.size)[:2] + (device,) for i, name in enumerate(names)]
        parts.append(("", address, size, device))
        return [found for found in parts if found[2]]

    def check_layout():
        probe, found = mxnet.nd.empty((3, 5), ctx=mxnet.cpu(0), dtype="float32"), ctypes.c_void_p()
        if not mxnet.__version__.startswith("1.") or modules["mxnet.base"]._LIB.MXNDArrayGetData(probe.handle, ctypes.byref(found)):
            raise RuntimeError
        chunk = pointer(probe.handle.value).value
        address, size, kind, device, _, _, begin, end = whole.unpack(string_at(chunk, whole.size))
        if (address, size, kind, device, begin, end) != (found.value, 60, 1, 0, 0, 0):
            raise RuntimeError

    def arrays(value):
        """The arrays in what an optimizer keeps, with their place in it: () for one alone."""
        if isinstance(value, NDArray):
            yield (), value
        elif type(value) in (tuple, list):
            for i, part in enumerate(value):
                for place, array in arrays(part):
                    yield (i,) + place, array

    def when_gone(call, *arguments):
        return quietly(lambda _: call(*arguments))

    def belongs(key, owner):
        """The memory's name is gone when its owner is, for the pool keeps the memory. Arrays themselves cannot be watched."""
        found = owners.get(id(owner))
        if found is None or found[0]() is not owner:
            found = owners[id(owner)] = ref(owner, when_gone(forget, id(owner))), set()
        found[1].add(key)

    def leave(key):
        """The memory that was called so is no more; its address if nobody else has it."""
        address = said.pop(key)[0]
        keys = held_at[address]
        keys.discard(key)
        if keys:
            return 0
        del held_at[address]
        return address

    def free(address):
        return row.pack(address, 0, 0, 0, FREE)

    def forget(owner):
        try:
            places = [leave(key) for key in owners.pop(owner, (None, ()))[1] if key in said]
            if epoch() == spoken_in[0] and not ending():  # what is there at the end keeps its name
                emit(head.pack(spoken_in[0]) + b"".join([free(place) for place in places if place]))
        except BaseException as error:
            contain(error)

    class Rows:
        def __init__(self):
            self.packed = [head.pack(spoken_in[0])]
            self.taken = set()  # arrays may share memory: the first one that is named gives it its name
            self.met, self.complete = set(), []  # keys; owners all of whose arrays were met
            self.early = False  # an array has no memory yet: on a busy machine the engine may be steps behind

        def add(self, category, kind, name, array, owner):
            try:
                for part, address, size, device in storage(array) if array is not None else ():
                    if not address:
                        self.early = True
                        continue
                    if address in self.taken:
                        continue
                    self.taken.add(address)
                    full = "%s:%s%s" % (kind, part, name)
                    key, where = (category, full, device, id(owner)), (address, size)
                    self.met.add(key)
                    old = said.get(key)
                    if old == where:
                        continue
                    if old is None:
                        belongs(key, owner)
                    elif leave(key) and old[0] not in self.taken:
                        self.packed.append(free(old[0]))
                    said[key] = where
                    held_at.setdefault(address, set()).add(key)
                    self.packed.append(row.pack(address, size, id(owner), number(full), category))
            except BaseException as error:
                contain(error)

        def step(self, name, count, owner):
            self.packed.append(row.pack(0, count, id(owner), number(name), STEP))

        def block(self, name, owner):
            if said.get(id(owner)) != name:
                said[id(owner)] = name
                self.packed.append(row.pack(0, 0, id(owner), number(name), MODULE))

        def send(self):
            for owner in self.complete:
                for key in owners.get(id(owner), (None, set()))[1] - self.met:
                    if key in said:
                        place = leave(key)
                        if place:
                            self.packed.append(free(place))
            if len(self.packed) > 1:
                emit(b"".join(self.packed))

    def is_auxiliary(parameter):
        return parameter._grad_req == "null" and (not parameter._differentiable or parameter.name.endswith(("running_mean", "running_var", "moving_mean", "moving_var")))

    def look_parameters(rows, parameters):
        for p in parameters:
            category, kind = (BUFFER, "aux_state") if is_auxiliary(p) else (PARAMETER, "in_arg")
            for array in p._data or ():
                rows.add(category, kind, p.name, array, p)
        for p in parameters:
            look_gradient(rows, p)
        rows.complete += parameters

    def look_gradient(rows, p):
        for array in p._grad or ():
            rows.add(GRADIENT, "arg_grad", p.name, array, p)

    def look_executor(rows, executor, group):
        """Group: that of the module whose executor it is, None if a symbol was bound without one. What has a gradient is a parameter then."""
        symbol, grads = executor._symbol, executor.grad_arrays
        names, auxiliary = (symbol.list_arguments(), symbol.list_auxiliary_states()) if group is None else (group.arg_names, group.aux_names)
        parameters = set(group.param_names) if group is not None else {name for name, grad in zip(names, grads) if grad is not None}
        arguments = list(zip(names, executor.arg_arrays))
        for name, array in arguments:
            if name in parameters:
                rows.add(PARAMETER, "in_arg", name, array, executor)
        for name, array in zip(names, grads):
            rows.add(GRADIENT, "arg_grad", name, array, executor)
        for name, array in zip(auxiliary, executor.aux_arrays):
            rows.add(BUFFER, "aux_state", name, array, executor)
        for name, array in arguments:
            if name not in parameters:
                rows.add(DATA, "data_entry", name, array, executor)
        for name, array in zip(symbol.list_outputs(), executor.outputs):
            rows.add(DATA, "data_entry", name, array, executor)
        rows.complete.append(executor)

    # What the optimizers' states are, by the names that their source gives them.
    KINDS = {"SGD": ("momentum",), "NAG": ("momentum",), "Signum": ("momentum",), "LARS": ("momentum",), "LBSGD": ("momentum",), "DCASGD": ("momentum", "previous_weight"),
             "FTML": ("d_0", "v_0", "z_0"), "LAMB": ("mean", "variance"), "Adam": ("mean", "variance"), "Adamax": ("mean", "variance"), "Nadam": ("mean", "variance"),
             "AdaGrad": ("history",), "GroupAdaGrad": ("history",), "RMSProp": ("n", "g", "delta"), "AdaDelta": ("accumulated_g", "accumulated_delta"), "Ftrl": ("z", "n")}

    def kinds_of(optimizer):
        for base in type(optimizer).__mro__:
            if base.__name__ in KINDS and base.__module__.startswith("mxnet."):
                return KINDS[base.__name__]
        return ()

    def doubled(optimizer, state, kinds):
        """Place of the copy in full precision that is kept of a half-precision weight, None without one."""
        if not (getattr(optimizer, "multi_precision", False) and type(state) is tuple and len(state) == 2):
            return None
        if type(optimizer).create_state_multi_precision is not Optimizer.create_state_multi_precision:
            return 1
        copy, rest = state  # or two states of a weight that needs none
        return None if not isinstance(copy, NDArray) or isinstance(rest, NDArray) and len(kinds) != 1 else 0

    def look_states(rows, updater, called):
        optimizer = updater.optimizer
        kinds = kinds_of(optimizer)
        for index, state in list(updater.states.items()):
            name, copy = called(index), doubled(optimizer, state, kinds)
            for place, array in arrays(state):
                if copy is not None and place[:1] == (copy,) and len(place) == 1:
                    kind = "weight_master_copy"
                else:
                    at = place[1:] if copy is not None else place
                    i = at[0] if at else 0
                    kind = kinds[i] if i < len(kinds) else "state%d" % i if at else "state"
                rows.add(OPTIMIZER, "optimizer_state:" + kind, name, array, updater)
        cumulated = getattr(optimizer, "cumgrads", None)  # of LBSGD
        for index, kept in list(cumulated.items()) if type(cumulated) is dict else ():
            rows.add(OPTIMIZER, "optimizer_state:cum_grad", called(index), kept.get("cum_grad"), updater)
        rows.complete.append(updater)

    def called_by(optimizer):
        """How an updater's indices are called where only the optimizer knows."""
        def called(index):
            p = optimizer.param_dict.get(index)
            return p.name if p is not None else str(optimizer.idx2name.get(index, index))
        return called

    class Plan:
        """What steps: a trainer, a module or an updater on its own, as it was last seen."""
        def __init__(self, stepper):
            self.gone = ref(stepper, when_gone(plans.pop, id(stepper), None))
            self.seen, self.steps, self.sparse, self.early = None, 0, (), False

        def step(self, stepper):
            self.steps += 1
            rows, now = Rows(), self.glance(stepper)
            if now != self.seen or self.steps < 3 or self.early and self.steps <= LOOK_EARLY or self.steps >= LOOK_FROM and self.steps & self.steps - 1 == 0 or self.steps % LOOK_EVERY == 0:
                if self.seen is None:
                    look_around(rows)
                self.seen = now
                self.look(stepper, rows)
                self.early = rows.early
            for p in self.sparse:
                look_gradient(rows, p)
            rows.step(type(self.optimizer(stepper)).__name__, self.steps, stepper)
            rows.send()

    class TrainerPlan(Plan):
        def updaters(self, trainer):
            kept = getattr(trainer._kvstore, "_updater", None) if trainer._update_on_kvstore else None
            return trainer._updaters if kept is None else [kept]

        def glance(self, trainer):
            params = trainer._params
            return [id(p._data) for p in params], [id(p._grad) for p in params], sum([len(u.states) for u in self.updaters(trainer)])

        def look(self, trainer, rows):
            params = trainer._params
            look_parameters(rows, params)
            for updater in self.updaters(trainer):
                own(updater)
                look_states(rows, updater, lambda index: params[index].name)
            self.sparse = [p for p in params if p._grad_stype != "default" or p._stype != "default"]

        def optimizer(self, trainer):
            return trainer._optimizer

    class ModulePlan(Plan):
        def updater(self, module):
            return getattr(module._kvstore, "_updater", None) if module._update_on_kvstore else module._updater

        def glance(self, module):
            updater = self.updater(module)
            return [id(e) for e in module._exec_group.execs], len(updater.states) if updater is not None else 0

        def look(self, module, rows):
            group, updater, devices = module._exec_group, self.updater(module), len(module._context)
            for executor in group.execs:
                look_executor(rows, executor, group)
            if updater is not None:
                own(updater)
                look_states(rows, updater, lambda index: index if isinstance(index, str) else group.param_names[index // devices])

        def optimizer(self, module):
            return module._optimizer

    class UpdaterPlan(Plan):
        """An updater that the program calls itself, for one parameter or several at a time: a step is over when each of them has had its turn."""
        states, calls, late = -1, 0, False

        def glance(self, updater):
            return len(updater.states)

        def look(self, updater, rows):
            look_states(rows, updater, called_by(updater.optimizer))

        def optimizer(self, updater):
            return updater.optimizer

        def called(self, updater, index):
            states = len(updater.states)
            if states != self.states:  # the first step, whose end is known when the second one begins
                self.states, self.late = states, True
                return
            if self.late:
                self.late, self.calls = False, 0
                self.step(updater)
            self.calls += len(index) if isinstance(index, (tuple, list)) else 1
            if self.calls >= states:
                self.calls = 0
                self.step(updater)

    owned = {}  # id of an updater of a trainer or module -> weak reference

    def own(updater):
        owned[id(updater)] = ref(updater)

    def is_owned(updater):
        found = owned.get(id(updater))
        return found is not None and found() is updater

    def look_around(rows):
        """Names what the garbage collector knows: parameters and executors that no trainer has, too, and blocks."""
        objects = gc.get_objects()
        blocks, parameters, executors, updaters, found = [instances(objects, kind) for kind in (Block, Parameter, Executor, Updater, Module)]
        del objects
        met = look_blocks(rows, blocks)
        met = {id(p): p for p in met + sorted(parameters, key=lambda p: p.name)}  # the collector's own order is another one in every run
        look_parameters(rows, [p for p in met.values() if isinstance(p, Parameter)])
        groups = [module._exec_group for module in found if module._exec_group is not None]
        for executor in executors:
            look_executor(rows, executor, next((group for group in groups if any(e is executor for e in group.execs)), None))
        for updater in updaters:
            if not is_owned(updater):
                look_states(rows, updater, called_by(updater.optimizer))

    def look_blocks(rows, blocks):
        """Returns the blocks' parameters, in the order of the model."""
        inner = {id(child) for block in blocks for child in block._children.values()}
        done, met = set(), []

        def walk(path, block):
            if id(block) not in done:
                done.add(id(block))
                rows.block(path, block)
                met.extend(getattr(block, "_reg_params", {}).values())
                for key, child in block._children.items():
                    walk(path + "." + key, child)

        for block in blocks:
            if id(block) not in inner:
                try:
                    walk(block.name, block)
                except BaseException as error:
                    contain(error)
        return met

    def plan_of(stepper, kind):
        plan = plans.get(id(stepper))
        if plan is None or plan.gone() is not stepper:
            plan = plans[id(stepper)] = kind(stepper)
        return plan

    def after(kind, method):
        """Stands among a function's constants. `it @ (self, ...)` there tells that the function is about to return."""
        def told(arguments):
            if epoch():
                renewed()
                stepper = arguments[0]
                if kind is not UpdaterPlan or not is_owned(stepper):
                    method(plan_of(stepper, kind), *arguments)

        return type("after", (), {"__matmul__": quietly(told)})()

    MARK = "<memtrace>"

    def place(node, at):
        for name in node._attributes:
            setattr(node, name, at.end_lineno if "lineno" in name else at.end_col_offset)
        for name in node._fields:
            part = getattr(node, name)
            for child in part if isinstance(part, list) else [part]:
                if hasattr(child, "_fields"):
                    place(child, at)

    def inner(code, name):
        return next(part for part in code.co_consts if type(part) is CodeType and part.co_name == name)

    def source_of(function):
        """A method's text in a class of its own, each line where it was."""
        lines = modules[function.__module__].__loader__.get_source(function.__module__).split("\n")
        first = function.__code__.co_firstlineno
        depth = len(lines[first - 1]) - len(lines[first - 1].lstrip())
        last = next((i for i in range(first, len(lines)) if lines[i].strip() and len(lines[i]) - len(lines[i].lstrip()) <= depth), len(lines))
        return "\n" * (first - 2) + "class %s:\n" % function.__qualname__.split(".")[0] + "\n".join(lines[first - 1:last]) + "\n"

    SAME = "co_code", "co_consts", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_flags", "co_firstlineno", "co_lnotab"

    def follow(kind, owner, name, arguments, method):
        """From now on a method tells when it is about to return. It stays the object that it is, and has the same lines; its code is made again from its text, with one
        expression more, and only if the text without it makes the code that is there."""
        function = vars(owner)[name]
        if type(function) is not FunctionType:
            raise TypeError
        original = function.__code__
        outer = function.__qualname__.split(".")[0]
        tree = compile(source_of(function), original.co_filename, "exec", 0x400, True)  # the tree alone
        again = inner(inner(compile(tree, original.co_filename, "exec", 0, True), outer), name)
        if any(getattr(again, part) != getattr(original, part) for part in SAME):
            raise ValueError
        body = tree.body[0].body[0].body
        told = compile("%r @ (%s,)" % (MARK, arguments), MARK, "exec", 0x400, True).body[0]
        place(told, body[-1])
        body.append(told)
        code = inner(inner(compile(tree, original.co_filename, "exec", 0, True), outer), name)
        mark = after(kind, method)
        function.__code__ = code.replace(co_consts=tuple([mark if part == MARK else part for part in code.co_consts]))

    def follow_all():
        for kind, owner, name, arguments, method in ((TrainerPlan, Trainer, "_update", "self", TrainerPlan.step), (ModulePlan, Module, "update", "self", ModulePlan.step),
                                                     (UpdaterPlan, Updater, "__call__", "self, index", UpdaterPlan.called)):
            try:
                follow(kind, owner, name, arguments, method)
            except BaseException as error:
                contain(error)

    pause = [0.0]  # seconds until the next look

    def everything():
        """What a program without an optimizer has, too. Until something steps it is looked for again: after a second, then at a cost of one percent of the time, then of less."""
        if not epoch():
            return
        begin = perf_counter()
        renewed()
        rows = Rows()
        look_around(rows)
        rows.send()
        if not plans:
            pause[0] = max(2 * pause[0], 100 * (perf_counter() - begin)) if pause[0] else 1.0
            again(int(1000 * min(pause[0], 3600)))

    check_layout()
    follow_all()
    look = quietly(everything)
    look()
    return look


report = _start()
