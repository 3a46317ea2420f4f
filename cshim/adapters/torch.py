# What PyTorch calls its memory. Runs inside the traced program: it only reads, and lets no exception out. epoch, intern, emit and instances come from the library
# (cshim/pyfunction.c). Everything is read again where it may have changed; what did not change is not said again, except gradients, whose memory is new in every step.

def _start():
    import sys
    import weakref
    torch = sys.modules["torch"]
    gc = sys.modules.get("gc") or __import__("gc")
    from struct import Struct
    from array import array
    Module, Tensor = torch.nn.Module, torch.Tensor
    PLAIN = Tensor, torch.nn.Parameter  # others may be made of several tensors
    MODULE, PARAMETER, BUFFER, GRADIENT, OPTIMIZER, STEP = range(1, 7)
    row, head = Struct("<QQQII"), Struct("<Q")
    STATES_EVERY = 64  # steps after which an optimizer's state is looked at again, once it has settled
    numbers, spoken_in = {}, [0]  # what intern gave, and in which recording
    names = {}      # id of a parameter -> its name
    modules = {}    # id of a module -> (its name, weak reference)
    plans = {}      # id of an optimizer -> Plan
    said = {}       # (category, name) -> what was said last: address, bytes, id
    trouble, linked = [0], [False]

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
        return True

    def memory(tensor):
        """(address, bytes) of what holds a tensor's elements on a device, None if nothing does."""
        tensor = getattr(tensor, "_local_tensor", tensor)
        if not tensor.is_cuda:
            return None
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()._untyped()
        address = storage.data_ptr()
        return (address, storage.nbytes()) if address else None

    class Rows:
        def __init__(self):
            self.packed = [head.pack(spoken_in[0])]

        def add(self, category, name, where, owner, again=False):
            key, now = (category, name), (where, owner)
            if not again and said.get(key) == now:
                return
            said[key] = now
            self.packed.append(row.pack(where[0], where[1], owner, number(name), category))

        def tensor(self, category, name, tensor, again=False):
            try:
                where = memory(tensor)
            except Exception:
                trouble[0] += 1
                return
            if where:
                self.add(category, name, where, id(tensor), again)

        def send(self):
            if len(self.packed) > 1:
                emit(b"".join(self.packed))

    def roots():
        """Modules that are in no other one, the oldest first, and what each is called."""
        found = instances(gc.get_objects(), Module)
        inner = {id(child) for module in found for child in vars(module).get("_modules", {}).values() if child is not None}
        taken = {}
        for module in found:
            if id(module) in inner or type(module).__module__.startswith("torch.nn.modules.loss"):
                continue
            name = type(module).__name__
            taken[name] = count = taken.get(name, 0) + 1
            yield (name if count == 1 else "%s#%d" % (name, count)), module

    def look(rows):
        """Names every module, parameter and buffer that there is."""
        seen = {}
        for root, top in roots():
            for path, module in top.named_modules():
                name = root + "." + path if path else root
                modules[id(module)] = name
                rows.add(MODULE, name, (0, 0), id(module))
                for kind, members in (PARAMETER, vars(module).get("_parameters")), (BUFFER, vars(module).get("_buffers")):
                    for key, tensor in (members or {}).items():
                        if tensor is None:
                            continue
                        if seen.setdefault(id(tensor), name + "." + key) == name + "." + key:  # one that several modules share is called after the first
                            names[id(tensor)] = name + "." + key
                            rows.tensor(kind, name + "." + key, tensor)

    class Plan:
        """An optimizer as it was last seen."""

        def __init__(self, optimizer):
            self.gone = weakref.ref(optimizer, lambda _, key=id(optimizer): plans.pop(key, None))
            self.name = type(optimizer).__name__
            self.ids, self.steps, self.states = [], 0, -1
            self.gradients = b""  # rows of the parameters' gradients, without addresses
            self.plain = True     # all of them are tensors whose address can be had without a detour

        def prepare(self, parameters, rows):
            look(rows)
            self.plain = all(type(p) in PLAIN for p in parameters)
            self.gradients = head.pack(spoken_in[0]) + b"".join(row.pack(0, 0, id(p), number(self.called(p)), GRADIENT) for p in parameters)

        def called(self, parameter):
            return names.get(id(parameter)) or "(no module)"

        def step(self, optimizer, rows):
            self.steps += 1
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            ids = list(map(id, parameters))
            if ids != self.ids:
                self.ids = ids
                self.prepare(parameters, rows)
            try:
                addresses = self.plain and [0 if (g := p.grad) is None else g.data_ptr() for p in parameters]
            except Exception:
                addresses = None  # a sparse one has no address
            if addresses:
                emit_at(self.gradients, array("Q", addresses).tobytes())
            else:
                for p in parameters:
                    if p.grad is not None:
                        rows.tensor(GRADIENT, self.called(p), p.grad, again=True)
            if len(optimizer.state) != self.states or self.steps < 3 or self.steps % STATES_EVERY == 0:
                self.states = len(optimizer.state)
                self.keep(optimizer, rows)
            rows.add(STEP, self.name, (0, self.steps), id(optimizer), again=True)

        def keep(self, optimizer, rows):
            for p, state in optimizer.state.items():
                for key, value in state.items() if hasattr(state, "items") else ():
                    if isinstance(value, Tensor):
                        rows.tensor(OPTIMIZER, "%s:%s" % (key, self.called(p)), value)

    def stepped(optimizer, args, kwargs):
        try:
            plan = plans.get(id(optimizer))
            if plan is None or plan.gone() is not optimizer:
                plan = plans[id(optimizer)] = Plan(optimizer)
            if renewed():
                plan.ids = []
            rows = Rows()
            plan.step(optimizer, rows)
            rows.send()
            if not linked[0] and plan.steps < 4:
                try_link()
        except Exception:
            trouble[0] += 1

    def everything():
        """What a program without an optimizer has, too."""
        try:
            if renewed() or not plans:
                rows = Rows()
                look(rows)
                rows.send()
        except Exception:
            trouble[0] += 1

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
            z.backward(torch.ones_like(z))
        return link_end(first, second) == 1

    def try_link():
        try:
            linked[0] = linked[0] or link()
        except Exception:
            trouble[0] += 1

    from torch.optim.optimizer import register_optimizer_step_post_hook
    register_optimizer_step_post_hook(stepped)
    try_link()
    everything()
    return everything


report = _start()
