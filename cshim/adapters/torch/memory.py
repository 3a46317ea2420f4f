# Where tensors have their elements, one tensor at a time: for those that are no plain ones, or begin within a storage. The others go by pack.
from ..library import contain, record_function
from .framework import (
    Base, PLAIN, PYTHON, Tensor, below, data_ptr, dispatch_keys, element_size, is_cuda, is_recorded, layout_of, numel, record, storage_offset, torch,
)
from .reading import parts


def memory(tensor, deep=2):
    """[(suffix, address, bytes, address of the storage, bytes of an element)] of what holds a tensor's elements on the device. Of wrappers of other tensors only the parts are queried."""
    cls = type(tensor)
    if cls not in PLAIN:
        inner = [(key, part) for key, part in parts(tensor) if below(Tensor, type(part)) and key not in ("_grad", "grad")]
        wrapper = dispatch_keys is None or dispatch_keys(tensor).has(PYTHON)
        if wrapper:
            single = len(inner) == 1 or any(key == "_local_tensor" for key, _ in inner)
            return [("" if single else "." + key + suffix, *rest) for key, part in inner if deep for suffix, *rest in memory(part, deep - 1)]
    if not is_cuda(tensor):
        return []
    try:
        address = data_ptr(tensor)
    except RuntimeError:
        if layout_of(tensor) is torch.strided:
            raise
        return sparse(tensor)
    if not address:
        return []
    size = element_size(tensor)
    return [("", address, numel(tensor) * size, address - storage_offset(tensor) * size, size)]


def sparse(tensor):
    """Its parts are tensors that only operators return. These run hidden from the program's modes and profilers, and take no sequence numbers."""
    guard, observed, recorded = torch._C._DisableTorchDispatch(), record_function(0), is_recorded()
    record(False)
    try:
        if layout_of(tensor) is torch.sparse_coo:
            found = ("indices", Base._indices(tensor)), ("values", Base._values(tensor))
        elif layout_of(tensor) in (torch.sparse_csr, getattr(torch, "sparse_bsr", None)):
            found = ("crow_indices", Base.crow_indices(tensor)), ("col_indices", Base.col_indices(tensor)), ("values", Base.values(tensor))
        else:
            return []
        return [("." + key, *rest) for key, part in found for _, *rest in memory(part)]
    finally:
        record(recorded)
        record_function(observed)
        del guard


def storage_size(tensor):
    try:
        return Base.untyped_storage(tensor).nbytes() if type(tensor) in PLAIN else 0
    except Exception as error:
        contain(error)
        return 0
