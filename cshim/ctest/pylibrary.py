"""The C half of the library, loaded into the interpreter that runs this: for pywalk.py and pyadapter.py."""
import ctypes
import os

STRING, INFO = 1, 6  # kinds of the dictionary's entries
HUNG = 600  # seconds after which what was waited for will not come; no measure of speed


class Library:
    """free is called without the interpreter's lock, as a thread of the library's calls it; held keeps it."""

    def __init__(self, path, folder, name):
        """Records into a spool of that name in a folder that is the caller's to remove."""
        self.free, self.held = ctypes.CDLL(path), ctypes.PyDLL(path)
        self.free.pylibrary_entry.restype = ctypes.c_void_p
        self.free.pylibrary_entry.argtypes = [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p]
        self.folder = folder
        self.open(name)

    def open(self, name):
        if not self.free.pylibrary_open(os.path.join(self.folder, name).encode()):
            raise SystemExit("it does not record")

    def entry(self, number):
        """(kind, bytes) of the dictionary's entry; (0, b"") without one."""
        kind, length = ctypes.c_uint32(), ctypes.c_uint32()
        at = self.free.pylibrary_entry(number, ctypes.byref(kind), ctypes.byref(length))
        return (kind.value, ctypes.string_at(at, length.value)) if at else (0, b"")

    def entries(self, wanted):
        numbers = range(1, self.free.pylibrary_entries() + 1)
        return [data for kind, data in map(self.entry, numbers) if kind == wanted]

    def raw(self, key):
        """The last thing that was said about it."""
        found = [data.split(b"\0", 1)[1] for data in self.entries(INFO) if data.startswith(key.encode() + b"\0")]
        return found[-1] if found else None

    def info(self, key):
        said = self.raw(key)
        return None if said is None else said.decode()
