# Names on their way into the recording.
from ..library import contain, emit, epoch, intern, pack
from .framework import MODULE, PLAIN, Struct, data_ptr, element_size, is_cuda, numel, storage_offset
from .memory import memory, storage_size

row, head, step_row = Struct("<QQQII"), Struct("<Q"), Struct("<QQQQII")  # a step's alone has its head before it
CLASSES = tuple(PLAIN)
SIZE = numel, element_size
PLACE = *SIZE, is_cuda, data_ptr, storage_offset


class Emitted:
    """What was emitted in one recording."""

    def __init__(self, number):
        self.epoch, self.numbers, self.modules = number, {}, {}  # name -> intern's number; id of a module -> its name

    def number(self, name):
        found = self.numbers.get(name)
        if found is None:
            found = self.numbers[name] = intern(name)
        return found


emitted = [Emitted(0)]


def current_emitted():
    """Of the recording that runs; a new one knows nothing."""
    current, number = emitted[0], epoch()
    if current.epoch != number:
        current = emitted[0] = Emitted(number)
    return current


class Chunk:
    """Rows of many tensors of one category, in the order of their names. Those of tensors that have none are empty."""
    __slots__ = "category", "names", "rows"

    def __init__(self, category, names, rows):
        self.category, self.names, self.rows = category, names, rows


class Rows:
    def __init__(self):
        self.emitted = current_emitted()
        self.covered = ()  # ids of parameters whose gradients are emitted separately
        self.found = []  # chunks, and (category, with the bytes of an element from bit 8 on, name, address, bytes, id, address of the storage, the tensor if it begins within)

    def modules(self, names, modules):
        known, new = self.emitted.modules, []
        for at, module in enumerate(modules):
            if known.get(id(module)) != names[at]:
                known[id(module)] = names[at]
                new.append(at)
        if new:
            names = [names[at] for at in new]
            self.found.append(Chunk(MODULE, names, pack(MODULE, names, [modules[at] for at in new], (), ())[0]))

    def tensor(self, category, name, tensor):
        try:
            for suffix, address, size, storage, element in memory(tensor):
                self.found.append((category | element << 8, name + suffix, address, size, id(tensor), storage, tensor if address != storage else None))
        except Exception as error:
            contain(error)

    def tensors(self, category, names, tensors):
        """Many at once, which is ten times as fast."""
        if tensors:
            rows, others = pack(category, names, tensors, CLASSES, PLACE)
            self.found.append(Chunk(category, names, rows))
            for at in others:
                self.tensor(category, names[at], tensors[at])

    def entries(self, start=0):
        """What was found from there on, with the rows of chunks among it that a tensor has."""
        for entry in self.found[start:]:
            if type(entry) is tuple:
                yield entry
                continue
            for name, (address, size, owner, _, category) in zip(entry.names, row.iter_unpack(entry.rows)):
                if category:
                    yield category, name, address, size, owner, address, None

    def flats(self, start=0):
        """{(category, address of a storage): (name, its bytes)} for storages that several named tensors lie in, none of which is all of it."""
        storages = {entry[5] for entry in self.found[start:] if type(entry) is tuple and entry[6] is not None}
        if not storages:
            return {}  # all begin with their storage
        shares, result = {}, {}
        for category, name, address, size, _, storage, tensor in self.entries(start):
            if storage in storages:
                shares.setdefault((category, storage), {}).setdefault(address, (name, size, tensor))
        for key, share in shares.items():
            if len(share) > 1:
                whole = max(tensor is not None and storage_size(tensor) for _, _, tensor in share.values()) or sum(size for _, size, _ in share.values())
                if max(size for _, size, _ in share.values()) < whole:
                    result[key] = together([name for name, _, _ in share.values()]), whole
        return result

    def send(self):
        number, packed, flats = self.emitted.number, [head.pack(self.emitted.epoch)], self.flats()

        def pack_flat(key):  # before its parts: the first name of a block stays
            name, size = flats.pop(key)
            packed.append(row.pack(key[1], size, 0, number(name), key[0]))

        for entry in self.found:
            if type(entry) is Chunk:
                for key in [key for key in flats if key[0] & 255 == entry.category]:
                    pack_flat(key)
                packed.append(entry.rows)
            else:
                category, name, address, size, owner, storage, _ = entry
                if (category, storage) in flats:
                    pack_flat((category, storage))
                packed.append(row.pack(address, size, owner, number(name), category))
        self.found = []
        if len(packed) > 1:
            emit(b"".join(packed))


def together(names):
    """What several tensors in one piece of memory are called."""
    kind, _, first = names[0].rpartition(":")
    shared = first.split(".")
    for name in names[1:]:
        other = name.rpartition(":")[2].split(".")
        shared = shared[:next((at for at, pair in enumerate(zip(shared, other)) if pair[0] != pair[1]), min(len(shared), len(other)))]
    return (kind + ":" if kind else "") + ".".join(shared + ["(flat of %d)" % len(names)])
