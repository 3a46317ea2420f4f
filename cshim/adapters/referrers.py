# What still refers to the program's tensors, for memtrace ctl PID referrers (cshim/adapters/referrers.c). Runs in one namespace with python/memtrace/_paths.py, _freed.py,
# _ways.py and _referrers.py, which precede it.
from memtrace._referrers import _find, gc, sys

from .library import LIMIT, MILLISECONDS, ROOM, STILL, VISITS, all_instances, answer, failed, freed, moment, pinned, ways

LONGEST = 2000  # characters of a text


def _shown(text):
    return "".join([c if c.isprintable() else repr(c)[1:-1] for c in text[:LONGEST]])


def _row(holder):
    shape = ",".join(map(str, holder.shape))
    addresses = ",".join(["%x" % address for address in holder._storages])
    fields = holder.bytes, holder.tensors, holder.graph_nodes, holder.graph_bytes, holder._outputs, int(holder.garbage), holder.dtype, shape, holder.device, holder.path, holder.types
    ends = str(holder.frees_bytes or 0), str(holder._freed_outputs), str(int(holder.certain)), str(int(holder._earlier)), str(holder.hidden_bytes)
    return "\t".join([*[_shown(str(field)) for field in fields], addresses, *ends]) + "\n"


class _Collector:
    instances = staticmethod(all_instances)

    @staticmethod
    def pinned(tensor):
        return pinned(tensor.data_ptr())

    @staticmethod
    def ways(wanted, roots, visits, milliseconds, last):
        return ways(wanted, roots, visits, milliseconds, last)

    @staticmethod
    def freed(groups, own, kept, visits, milliseconds, tensor):
        return freed(groups, own, kept, visits, milliseconds, tensor)


def _answer():
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "Tensor"):
        answer(b"")
        return
    found = _find(torch, LIMIT, VISITS, MILLISECONDS / 1000, moment, _Collector, bool(STILL))
    rows, left = [], ROOM - 100
    for holder in found.holders:
        row = _row(holder).encode("utf-8", "replace")
        left -= len(row)
        if left < 0:
            break
        rows.append(row)
    left_out = len(found.holders) - len(rows)
    answer(b"%d\t%d\t%d\t%d\t%d\n" % (found.tensors, found.late, left_out, found.bytes, found.visits) + b"".join(rows))


def _reason(error):
    """What went wrong, and in which function. An exception of the program's own is not asked for its text."""
    at = error.__traceback__
    while at.tb_next is not None:
        at = at.tb_next
    text = f": {error}" if type(error).__module__ == "builtins" else ""
    return _shown(f"{type(error).__name__} in {at.tb_frame.f_code.co_name}{text}").encode("utf-8", "replace")


_collects = gc.isenabled()  # up to Python 3.9; since then the library has switched it off
gc.disable()
try:
    _answer()
except Exception as error:  # noqa: BLE001  the requester is told
    failed(_reason(error))
finally:
    if _collects:
        gc.enable()
