# How objects of the program's are read: past all that it could have put in the way.
from .framework import (
    Attribute, DEEP, FEW, Function, MANY, Method, Module, Namespace, Optimizer, SIMPLE, Slot, Tensor, attribute_of, below, members, mro, optimizer_fields,
    referents,
)


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


def optimizer_field(optimizer, key):
    """From an optimizer's dictionary, None if it is not there. From Python 3.11 on many objects have a dictionary only once it is requested, and are slower then: here it is not."""
    if any(key in members(cls) for cls in mro(type(optimizer))):
        return field(optimizer_fields(optimizer), key)  # a class attribute of that name may take precedence, and be the program's code
    try:
        return attribute_of(optimizer, key)
    except AttributeError:
        return None


def has_no_tensor(value):
    """Whether there is no tensor in a value, as far as a short check shows."""
    cls = type(value)
    if cls in SIMPLE or cls is Method or below(type, cls):
        return True
    kind = dict if below(dict, cls) else list if below(list, cls) else tuple if below(tuple, cls) else None
    return kind is not None and kind.__len__(value) < FEW and SIMPLE.issuperset(map(type, list(dict.values(value) if kind is dict else kind.__iter__(value))))


def parts(thing):
    """(key, value) for what an object of a class keeps in its dictionary and its slots."""
    for cls in mro(type(thing)):
        for key, slot in list(members(cls).items()) if members(cls).get("__slots__") is not None else ():
            if type(slot) is Slot:
                try:
                    yield key, slot.__get__(thing)
                except AttributeError:
                    pass  # not set
    found = referents(thing)
    if found and all(map(has_no_tensor, found)):
        return
    own = fields(thing)
    if below(dict, type(own)):
        yield from list(dict.items(own))


def key_text(key, at):
    """What a key in a dictionary, the one number at, is called."""
    return key if type(key) is str else str(key) if type(key) is int and -MANY < key < MANY else str(at)


def entries(value):
    """(key, value) for what a list, tuple, dictionary or object has in it."""
    cls = type(value)
    if below(dict, cls):
        yield from ((key_text(key, at), part) for at, (key, part) in enumerate(list(dict.items(value))))
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

