# Where an array lies in memory.

# An array of MXNet 1.x as it lies in memory: a pointer to what holds its elements, which begins with address, bytes, type and number of the device, and goes on with the same
# of index arrays, for a sparse one. MXNet's own functions would allocate what is delayed, and show in its profiles.
from .framework import GPU, Struct, ctypes, modules, mxnet

string_at, pointer, part, whole = ctypes.string_at, ctypes.c_uint64.from_address, Struct("<QQiiii"), Struct("<QQiiiiQQ")


def storage(array):
    """[(part, address, bytes, device)] of the device memory that holds an array's elements, after that of their indices. The address is 0 until the engine has come to it."""
    at = array.handle.value
    chunk = at and pointer(at).value
    if not chunk:
        return ()
    address, size, kind, device, _, _, begin, end = whole.unpack(string_at(chunk, whole.size))
    if kind != GPU:
        return ()
    if begin == end:
        return (("", address, size, device),) if size else ()
    parts = []
    if end - begin in (part.size, 2 * part.size):
        names = ("indices:",) if end - begin == part.size else ("indptr:", "indices:")
        parts = [(name,) + part.unpack_from(string_at(begin, end - begin), i * part.size)[:2] + (device,) for i, name in enumerate(names)]
    parts.append(("", address, size, device))
    return [found for found in parts if found[2]]


def check_layout():
    probe, found = mxnet.nd.empty((3, 5), ctx=mxnet.cpu(0), dtype="float32"), ctypes.c_void_p()
    if not mxnet.__version__.startswith("1.") or modules["mxnet.base"]._LIB.MXNDArrayGetData(probe.handle, ctypes.byref(found)):
        raise RuntimeError
    chunk = pointer(probe.handle.value).value
    address, size, kind, device, _, _, begin, end = whole.unpack(string_at(chunk, whole.size))
    if (address, size, kind, device, begin, end) != (found.value, 60, 1, 0, 0, 0):
        raise RuntimeError
