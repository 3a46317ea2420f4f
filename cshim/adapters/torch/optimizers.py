# Optimizers: what they step, and what its names are.
from ..library import addresses, emit, epoch, identities, same, unchanged
from .framework import Optimizer, PARAMETER, PLAIN, STEP, Tensor, below, classname, data_ptr, is_leaf, weakref
from .gradients import emit_gradients, name_gradients
from .modules import forgetter
from .reading import field, optimizer_field
from .rows import emitted, step_row
from .scans import Scans, due, holds, rename_unstepped_gradients, scan
from .states import additions, name_state

FIRST, OFTEN = 16, 16  # so many steps have their gradients named, and parameters' addresses compared; after them every sixteenth one
LARGE = 2000            # with so many parameters the work is spread: gradients in the first step and in every sixteenth, states in the second one

plans = {}  # id of an optimizer -> Plan


class Plan:
    """An optimizer as it was last seen."""

    def __init__(self, optimizer):
        self.gone = weakref.ref(optimizer, forgetter(plans, id(optimizer)))
        self.name = classname(type(optimizer))
        self.steps, self.states, self.scan, self.epoch = 0, -1, 0, 0
        self.ids = None         # of the parameters, in 64 bits each
        self.names = {}         # id of a parameter -> its name
        self.large = False
        self.plain = False      # all parameters are leaves whose address can be had without a detour
        self.gradients = None   # rows of the parameters' gradients, without addresses, once there is use for them
        self.flats = []         # (index of a parameter, bytes before its gradient, its bytes, number of the name) of gradients in one piece of memory
        self.addresses = None   # of the parameters
        self.wraps = any(below(Optimizer, type(value)) for _, value in additions(optimizer))

    def lists(self, optimizer):
        """[parameters of a group] for all groups, as the optimizer has them; empty lists where it has something else."""
        groups = optimizer_field(optimizer, "param_groups")
        found = [field(group, "params") for group in list.copy(groups)] if below(list, type(groups)) else []
        return [held if below(list, type(held)) else [] for held in found]

    def parameters(self, optimizer):
        return list(map(list.copy, self.lists(optimizer)))

    def find_names(self, groups, parameters, rows, may_scan, began):
        """Names by modules, else by variables, else by the place in the optimizer. Scans after number began were just now."""
        called, homes = None, Scans.homes

        def unknown():  # what was found just now needs no proof
            home_of = homes.get
            return [p for p in parameters if (home := home_of(id(p))) is None or not (home[4] > began or holds(home, p))]

        unstepped = unknown()
        if may_scan and unstepped:
            called, homes = scan(rows, whole=False), Scans.homes
            unstepped = unknown()
            if unstepped and due():
                called, homes = scan(rows, stepped=True), Scans.homes
                unstepped = unknown()
        unstepped = {id(p) for p in unstepped}
        found = called.tensor(unstepped) if called and unstepped else {key: self.names[key] for key in unstepped if key in self.names}
        if not unstepped:
            self.names.update([(id(p), homes[id(p)][0]) for p in parameters])
            return
        for at, group in enumerate(groups):
            for index, p in enumerate(group):
                if not below(Tensor, type(p)):
                    continue
                if id(p) not in unstepped:
                    self.names[id(p)] = homes[id(p)][0]
                else:
                    self.names[id(p)] = found.get(id(p)) or "%s.%d.%d" % (self.name, at, index)
                    rows.tensor(PARAMETER, self.names[id(p)], p)

    def prepare(self, groups, rows, may_scan, began):
        everything = [p for group in groups for p in group]
        parameters = [p for p in everything if type(p) in PLAIN or below(Tensor, type(p))]
        self.find_names(groups, parameters, rows, may_scan, began)
        self.scan, self.epoch, self.ids = Scans.count, rows.emitted.epoch, identities(everything)
        self.plain = len(parameters) == len(everything) and PLAIN.issuperset(map(type, parameters)) and all(map(is_leaf, parameters))
        self.addresses = addresses(parameters, data_ptr, None) if self.plain else None
        self.plain = self.addresses is not None
        self.gradients, self.large = None, len(everything) >= LARGE

    def is_time_for_gradients(self):
        return not self.steps % OFTEN or self.steps <= FIRST and not self.large

    def is_time_for_states(self, new, held):
        """Whether states are to be scanned: there are parameters that had none, or a step came in which optimizers begin to keep more."""
        count = self.steps
        if self.large and count == 1:
            return False
        return new or held != self.states or count < 4 and not self.large or not count & count - 1 and (count >= FIRST or not self.large)

    def follow_parameters(self, groups, rows, new, wanted, began):
        parameters = [p for group in groups for p in group]
        if new or wanted:
            rows.covered = frozenset(map(id, parameters))
        if wanted:
            scan(rows, stepped=True)
        if new or self.scan != Scans.count:
            self.prepare(groups, rows, new, began)
            name_gradients(self, parameters, rows)
        elif self.is_time_for_gradients() and not (self.plain and emit_gradients(self, parameters, rows)):
            name_gradients(self, parameters, rows)
        if not self.steps & self.steps - 1 and not self.large and not wanted:
            rename_unstepped_gradients(rows, frozenset(map(id, parameters)))

    def passes(self, optimizer):
        """Whether nothing but the step itself is to be emitted, which is then done. Most steps are so, and the code of follow would be cold in the caches."""
        count, known = self.steps + 1, emitted[0]
        if count <= FIRST or not count % OFTEN or self.wraps or self.scan != Scans.count or Scans.wanted and due():
            return False
        if self.epoch != known.epoch or self.epoch != epoch() or not unchanged(optimizer, self.ids, self.states, "param_groups", "params", "state"):
            return False
        self.steps = count
        emit(step_row.pack(self.epoch, 0, count, id(optimizer), known.number(self.name), STEP))
        return True

    def follow(self, optimizer, rows):
        """A step is over."""
        began = Scans.count
        self.steps += 1
        new, wanted = self.epoch != rows.emitted.epoch or not same(self.lists(optimizer), self.ids), Scans.wanted and due()
        if new or wanted or self.scan != began or self.is_time_for_gradients():
            self.follow_parameters(self.parameters(optimizer), rows, new, wanted, began)
        state = optimizer_field(optimizer, "state")
        held = dict.__len__(state) if below(dict, type(state)) else 0
        if self.is_time_for_states(new, held):
            self.states = held
            name_state(self, optimizer, rows)
        if not self.wraps:  # the inner one emits it
            rows.found.append((STEP, self.name, 0, self.steps, id(optimizer), 0, None))


def plan_of(optimizer):
    plan = plans.get(id(optimizer))
    if plan is None or plan.gone() is not optimizer:
        plan = plans[id(optimizer)] = Plan(optimizer)
    return plan
