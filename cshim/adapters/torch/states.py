# What an optimizer keeps: for a parameter, and for itself.
from .framework import DEEP, FEW, OPTIMIZER, PLAIN, SIMPLE, Tensor, below, optimizer_fields, referents
from .reading import has_no_tensor, key_text, optimizer_field, tensors
from .scans import Scans


def name_state(plan, optimizer, rows):
    state = optimizer_field(optimizer, "state")
    name_states(plan, list(dict.items(state)) if below(dict, type(state)) else (), rows)
    for key, value in additions(optimizer):
        for path, tensor in tensors(value, key):
            if id(tensor) not in plan.names and id(tensor) not in Scans.homes:
                rows.tensor(OPTIMIZER, "%s:%s" % (path, plan.name), tensor)
    for index, group in enumerate(optimizer_field(optimizer, "param_groups") or ()):
        for key, value in list(dict.items(group)):
            if key != "params" and below(Tensor, type(value)):  # a learning rate on the device
                rows.tensor(OPTIMIZER, "%s:%s.%d" % (key, plan.name, index), value)


def additions(optimizer):
    """[(key, value)] of what an optimizer has beside what all have, if a tensor or another optimizer may be in it."""
    usual = "state", "param_groups", "defaults"
    known = {id(optimizer_field(optimizer, key)) for key in usual}
    if all(id(value) in known or has_no_tensor(value) for value in referents(optimizer)):
        return []
    return [(key, value) for key, value in list(dict.items(optimizer_fields(optimizer))) if key not in usual]


def name_states(plan, state, rows):
    """Of the parameters. Most states are a dictionary with a few tensors."""
    known, names, found = plan.names, [], []
    for key, value in state:
        name = known.get(id(key)) or (key if type(key) is str else plan.name)
        if type(value) is dict and len(value) < FEW:
            for at, (kind, part) in enumerate(list(value.items())):
                cls = type(part)
                if cls in PLAIN and type(kind) is str:
                    if id(part) not in known:
                        names.append(kind + ":" + name)
                        found.append(part)
                elif cls not in SIMPLE:
                    name_part(plan, name, part, key_text(kind, at), DEEP - 1, rows)
        else:
            name_part(plan, name, value, "", DEEP, rows)
    rows.tensors(OPTIMIZER, names, found)


def name_part(plan, name, value, path, deep, rows):
    for place, tensor in tensors(value, path, deep):
        if id(tensor) not in plan.names:
            rows.tensor(OPTIMIZER, "%s:%s" % (place or "state", name), tensor)
