# What an optimizer keeps.
from .framework import NDArray, OPTIMIZER, Optimizer


def arrays(value):
    """The arrays in what an optimizer keeps, with their place in it: () for one alone."""
    if isinstance(value, NDArray):
        yield (), value
    elif type(value) in (tuple, list):
        for i, part in enumerate(value):
            for place, array in arrays(part):
                yield (i,) + place, array


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


def scan_states(rows, updater, called):
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
