# Parameters, executors and blocks.
from ..library import contain, instances
from .framework import BUFFER, Block, DATA, Executor, GRADIENT, Module, PARAMETER, Parameter, Updater, gc
from .states import called_by, scan_states
from .steps import is_owned


def is_auxiliary(parameter):
    return parameter._grad_req == "null" and (not parameter._differentiable or parameter.name.endswith(("running_mean", "running_var", "moving_mean", "moving_var")))


def scan_parameters(rows, parameters):
    for p in parameters:
        category, kind = (BUFFER, "aux_state") if is_auxiliary(p) else (PARAMETER, "in_arg")
        for array in p._data or ():
            rows.add(category, kind, p.name, array, p)
    for p in parameters:
        scan_gradient(rows, p)
    rows.complete += parameters


def scan_gradient(rows, p):
    for array in p._grad or ():
        rows.add(GRADIENT, "arg_grad", p.name, array, p)


def scan_executor(rows, executor, group):
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


def scan_all(rows):
    """Names what the garbage collector knows: parameters and executors that no trainer has, too, and blocks."""
    objects = gc.get_objects()
    blocks, parameters, executors, updaters, found = [instances(objects, kind) for kind in (Block, Parameter, Executor, Updater, Module)]
    del objects
    met = scan_blocks(rows, blocks)
    met = {id(p): p for p in met + sorted(parameters, key=lambda p: p.name)}  # the collector's own order is another one in every run
    scan_parameters(rows, [p for p in met.values() if isinstance(p, Parameter)])
    groups = [module._exec_group for module in found if module._exec_group is not None]
    for executor in executors:
        scan_executor(rows, executor, next((group for group in groups if any(e is executor for e in group.execs)), None))
    for updater in updaters:
        if not is_owned(updater):
            scan_states(rows, updater, called_by(updater.optimizer))


def scan_blocks(rows, blocks):
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
