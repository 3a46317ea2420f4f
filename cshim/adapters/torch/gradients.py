# Gradients of what an optimizer steps. Their addresses are others in every step; all else about them stays.
from ..library import addresses, emit, emit_at, pack
from .framework import GRADIENT, PARAMETER, PLAIN, Tensor, below, data_ptr, grad_of, is_leaf
from .rows import SIZE, head, row


def name_gradients(plan, parameters, rows):
    """All that there are, and which of them lie in one piece of memory."""
    before = len(rows.found)
    found = [(at, g) for at, p in enumerate(parameters) if (type(p) in PLAIN or below(Tensor, type(p))) and is_leaf(p) and (g := grad_of(p)) is not None]
    rows.tensors(GRADIENT, [plan.names[id(parameters[at])] for at, _ in found], [g for _, g in found])
    flats, plan.flats = rows.flats(before), []
    if flats:
        places = {id(g): at for at, g in found}
        for category, _, address, _, owner, storage, _ in rows.entries(before):
            if owner in places and (category, storage) in flats:
                name, size = flats.pop((category, storage))
                plan.flats.append((places[owner], address - storage, size, rows.emitted.number(name)))


def emit_gradients(plan, parameters, rows):
    """All addresses in one go, for plain parameters. False if a gradient has none, as a sparse one. Parameters that have moved are emitted, too: after p.data = ..., module.to(...)."""
    found, own = addresses(parameters, data_ptr, grad_of), addresses(parameters, data_ptr, None)
    if found is None or own is None:
        return False
    names, start = plan.names, head.pack(plan.epoch)
    if plan.gradients is None:
        plan.gradients = start + pack(GRADIENT, [names[id(p)] for p in parameters], parameters, (), SIZE)[0]
    for index, before, size, number in plan.flats:
        address, = head.unpack_from(found, index * head.size)
        if address:
            emit(start + row.pack(address - before, size, 0, number, GRADIENT))
    emit_at(plan.gradients, found)
    if own != plan.addresses:
        plan.addresses = own
        rows.tensors(PARAMETER, [names[id(p)] for p in parameters], parameters)
    return True
