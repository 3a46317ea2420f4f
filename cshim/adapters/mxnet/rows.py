# ruff: noqa: F821
# What is said of memory: names of addresses, and who has them.

row, head = Struct("<QQQII"), Struct("<Q")
numbers, spoken_in = {}, [0]  # what intern gave, and in which recording
said = {}                     # what was said last: (category, name, device, id of the owner) -> (address, bytes), id of a block -> its name
held_at = {}                  # address -> keys in said; several if arrays of several owners share memory
owners = {}                   # id of who keeps arrays -> (weak reference, keys in said)


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
    held_at.clear()
    owners.clear()
    for plan in list(plans.values()):
        plan.seen = None
    return True


def when_gone(call, *arguments):
    return quietly(lambda _: call(*arguments))


def belongs(key, owner):
    """The memory's name is gone when its owner is, for the pool keeps the memory. Arrays themselves cannot be watched."""
    found = owners.get(id(owner))
    if found is None or found[0]() is not owner:
        found = owners[id(owner)] = ref(owner, when_gone(forget, id(owner))), set()
    found[1].add(key)


def leave(key):
    """The memory that was called so is no more; its address if nobody else has it."""
    address = said.pop(key)[0]
    keys = held_at[address]
    keys.discard(key)
    if keys:
        return 0
    del held_at[address]
    return address


def free(address):
    return row.pack(address, 0, 0, 0, FREE)


def forget(owner):
    try:
        places = [leave(key) for key in owners.pop(owner, (None, ()))[1] if key in said]
        if epoch() == spoken_in[0] and not ending():  # what is there at the end keeps its name
            emit(head.pack(spoken_in[0]) + b"".join([free(place) for place in places if place]))
    except BaseException as error:
        contain(error)


class Rows:
    def __init__(self):
        self.packed = [head.pack(spoken_in[0])]
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
                old = said.get(key)
                if old == where:
                    continue
                if old is None:
                    belongs(key, owner)
                elif leave(key) and old[0] not in self.taken:
                    self.packed.append(free(old[0]))
                said[key] = where
                held_at.setdefault(address, set()).add(key)
                self.packed.append(row.pack(address, size, id(owner), number(full), category))
        except BaseException as error:
            contain(error)

    def step(self, name, count, owner):
        self.packed.append(row.pack(0, count, id(owner), number(name), STEP))

    def block(self, name, owner):
        if said.get(id(owner)) != name:
            said[id(owner)] = name
            self.packed.append(row.pack(0, 0, id(owner), number(name), MODULE))

    def send(self):
        for owner in self.complete:
            for key in owners.get(id(owner), (None, set()))[1] - self.met:
                if key in said:
                    place = leave(key)
                    if place:
                        self.packed.append(free(place))
        if len(self.packed) > 1:
            emit(b"".join(self.packed))
