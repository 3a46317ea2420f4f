# What steps: trainers, modules and updaters.
from .framework import SCAN_EARLY, SCAN_EVERY, SCAN_FROM, plans, ref
from .rows import Rows, when_gone
from .scans import scan_all, scan_executor, scan_gradient, scan_parameters
from .states import called_by, scan_states


class Plan:
    """What steps: a trainer, a module or an updater on its own, as it was last seen."""
    def __init__(self, stepper):
        self.gone = ref(stepper, when_gone(plans.pop, id(stepper), None))
        self.seen, self.steps, self.sparse, self.early = None, 0, (), False

    def step(self, stepper):
        self.steps += 1
        rows, now = Rows(), self.fingerprint(stepper)
        if now != self.seen or self.steps < 3 or self.early and self.steps <= SCAN_EARLY or self.steps >= SCAN_FROM and self.steps & self.steps - 1 == 0 or self.steps % SCAN_EVERY == 0:
            if self.seen is None:
                scan_all(rows)
            self.seen = now
            self.scan(stepper, rows)
            self.early = rows.early
        for p in self.sparse:
            scan_gradient(rows, p)
        rows.step(type(self.optimizer(stepper)).__name__, self.steps, stepper)
        rows.send()


class TrainerPlan(Plan):
    def updaters(self, trainer):
        kept = getattr(trainer._kvstore, "_updater", None) if trainer._update_on_kvstore else None
        return trainer._updaters if kept is None else [kept]

    def fingerprint(self, trainer):
        params = trainer._params
        return [id(p._data) for p in params], [id(p._grad) for p in params], sum([len(u.states) for u in self.updaters(trainer)])

    def scan(self, trainer, rows):
        params = trainer._params
        scan_parameters(rows, params)
        for updater in self.updaters(trainer):
            own(updater)
            scan_states(rows, updater, lambda index: params[index].name)
        self.sparse = [p for p in params if p._grad_stype != "default" or p._stype != "default"]

    def optimizer(self, trainer):
        return trainer._optimizer


class ModulePlan(Plan):
    def updater(self, module):
        return getattr(module._kvstore, "_updater", None) if module._update_on_kvstore else module._updater

    def fingerprint(self, module):
        updater = self.updater(module)
        return [id(e) for e in module._exec_group.execs], len(updater.states) if updater is not None else 0

    def scan(self, module, rows):
        group, updater, devices = module._exec_group, self.updater(module), len(module._context)
        for executor in group.execs:
            scan_executor(rows, executor, group)
        if updater is not None:
            own(updater)
            scan_states(rows, updater, lambda index: index if isinstance(index, str) else group.param_names[index // devices])

    def optimizer(self, module):
        return module._optimizer


class UpdaterPlan(Plan):
    """An updater that the program calls itself, for one parameter or several at a time: a step is over when each of them has had its turn."""
    states, calls, late = -1, 0, False

    def fingerprint(self, updater):
        return len(updater.states)

    def scan(self, updater, rows):
        scan_states(rows, updater, called_by(updater.optimizer))

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


def plan_of(stepper, kind):
    plan = plans.get(id(stepper))
    if plan is None or plan.gone() is not stepper:
        plan = plans[id(stepper)] = kind(stepper)
    return plan
