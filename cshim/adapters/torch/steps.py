# Steps of optimizers: how they are noticed, and what is done then.
from ..library import contain
from .framework import Function, Optimizer, WithoutFunctions, compiling, function_modes, functools, gc, members, old, sys
from .optimizers import plan_of, plans
from .rows import Rows
from .scans import Scans


class Steps:
    """Those of all optimizers."""
    count = 0


def run_isolated(work, *arguments):
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
    if compiling():
        return
    Steps.count = count = Steps.count + 1
    if count > 1 and not count & count - 1:
        Scans.wanted = True
    plan = plans.get(id(optimizer))
    if plan is not None and plan.gone() is optimizer and plan.passes(optimizer):
        return
    run_isolated(step, optimizer)


def make_hook(compiling, quiet):
    """What PyTorch calls: C all the way, so that no tracer and no profiler has a frame of it to show. A compiler that takes the whole of a step into its graph does not call a partial
    but reads its function, which does nothing. By its question the compiler knows that without it something else happens, and keeps a graph of which else nothing is left."""
    def hook(optimizer, args, kwargs):
        compiling()

    class Hook(functools.partial):
        __slots__ = ()
        __call__ = staticmethod(quiet)
    return Hook(hook)


def follow_steps(quiet):
    """Has stepped called after every step. From 2.0 on PyTorch has a list for that; before, optimizers call an empty method of their own for its profiler, or nothing."""
    place = sys.modules["torch.optim.optimizer"]
    if hasattr(place, "register_optimizer_step_post_hook"):
        place.register_optimizer_step_post_hook(make_hook(compiling, quiet))
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
                follow_class(cls, members(cls)["step"], quiet)


def follow_class(cls, step, quiet):
    if type(step) is not Function:
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
