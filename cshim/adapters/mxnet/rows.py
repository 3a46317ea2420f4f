# Emitted rows: names of addresses, and their owners.
from ..library import contain, emit, epoch, intern, quietly
from .framework import FREE, MODULE, STEP, Struct, ending, plans, ref
from .memory import storage

row, head = Struct("<QQQII"), Struct("<Q")
numbers, emitted_in = {}, [0]  # what intern gave, and in which recording
emitted = {}                  # the latest row: (category, name, device, id of the owner) -> (address, bytes), id of a block -> its name
held_at = {}                  # address -> keys in emitted; several if arrays of several owners share memory
owners = {}                   # id of who keeps arrays -> (weak reference, keys in emitted)


def number(name):
    found = numbers.get(name)
    if found is None:
        found = numbers[name] = intern(name)
    return found


def reset_for_new_recording():
    """Resets what was emitted if a new recording began. Whether one did."""
    now = epoch()
    if now == emitted_in[0]:
        return False
    emitted_in[0] = now
    numbers.clear()
    emitted.clear()
    held_at.clear()
    owners.clear()
    for plan in list(plans.values()):
        plan.seen = None
    return True


def when_gone(call, *arguments):
    return quietly(lambda _: call(*arguments))


def add_owner_key(key, owner):
    """The memory's name is gone when its owner is, for the pool keeps the memory. Arrays themselves cannot be watched."""
    found = owners.get(id(owner))
    if found is None or found[0]() is not owner:
        found = owners[id(owner)] = ref(owner, when_gone(on_owner_gone, id(owner))), set()
    found[1].add(key)


def drop_name(key):
    """Removes a name from its memory; the address if it has no other name."""
    address = emitted.pop(key)[0]
    keys = held_at[address]
    keys.discard(key)
    if keys:
        return 0
    del held_at[address]
    return address


def free(address):
    return row.pack(address, 0, 0, 0, FREE)


def on_owner_gone(owner):
    try:
        places = [drop_name(key) for key in owners.pop(owner, (None, ()))[1] if key in emitted]
        if epoch() == emitted_in[0] and not ending():  # what is there at the end keeps its name
            emit(head.pack(emitted_in[0]) + b"".join([free(place) for place in places if place]))
    except BaseException as error:
        contain(error)


class Rows:
    def __init__(self):
        self.packed = [head.pack(emitted_in[0])]
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
                old = emitted.get(key)
                if old == where:
                    continue
                if old is None:
                    add_owner_key(key, owner)
                elif drop_name(key) and old[0] not in self.taken:
                    self.packed.append(free(old[0]))
                emitted[key] = where
                held_at.setdefault(address, set()).add(key)
                self.packed.append(row.pack(address, size, id(owner), number(full), category))
        except BaseException as error:
            contain(error)

    def step(self, name, count, owner):
        self.packed.append(row.pack(0, count, id(owner), number(name), STEP))

    def block(self, name, owner):
        if emitted.get(id(owner)) != name:
            emitted[id(owner)] = name
            self.packed.append(row.pack(0, 0, id(owner), number(name), MODULE))

    def send(self):
        for owner in self.complete:
            for key in owners.get(id(owner), (None, set()))[1] - self.met:
                if key in emitted:
                    place = drop_name(key)
                    if place:
                        self.packed.append(free(place))
        if len(self.packed) > 1:
            emit(b"".join(self.packed))
