# What still refers to the program's tensors, for memtrace ctl PID referrers (cshim/adapters/referrers.c). Runs in one namespace with python/memtrace/_paths.py, _freed.py,
# _ways.py and _referrers.py, which precede it.
from memtrace._paths import type_name
from memtrace._referrers import Passes, _find, gc, sys, time

from .library import BRIEF, GOES_ON, LIMIT, MILLISECONDS, OWN_PASSES, PASS_MILLISECONDS, ROOM, VISITS, all_instances, answer, failed, freed, moment, pinned, ways

LONGEST = 2000  # characters of a text


def _shown(text):
    return "".join([c if c.isprintable() else repr(c)[1:-1] for c in text[:LONGEST]])


def _row(holder):
    shape = ",".join(map(str, holder.shape))
    addresses = "" if BRIEF else ",".join(["%x" % address for address in holder._storages])
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


def _wait_for_passes(passes):
    """A tensor that a backward pass lets go of would live until the search ends, so that the pass would need more memory. Reports whether none is under way, in time."""
    until = time.monotonic() + PASS_MILLISECONDS / 1000
    while passes.count() > OWN_PASSES:
        if time.monotonic() >= until:
            return False
        time.sleep(0.001)
    return True


def _answer():
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "Tensor"):
        answer(b"")
        return
    passes = Passes(torch, OWN_PASSES)
    if not _wait_for_passes(passes) and GOES_ON:
        failed(b"a backward pass was under way the whole time")
        return
    found = _find(torch, LIMIT, VISITS, MILLISECONDS / 1000, moment, _Collector, (lambda: False) if GOES_ON else passes.are_over)
    rows, left = [], ROOM - 100
    for holder in found.holders:
        row = _row(holder).encode("utf-8", "replace")
        left -= len(row)
        if left < 0:
            break
        rows.append(row)
    left_out = len(found.holders) - len(rows)
    answer(b"%d\t%d\t%d\t%d\t%d\n" % (found.tensors, found.late + 2 * found.graphs_unread, left_out, found.bytes, found.visits) + b"".join(rows))


def _reason(error):
    """What went wrong, and in which function. An exception of the program's own is not asked for its text."""
    at = error.__traceback__
    while at.tb_next is not None:
        at = at.tb_next
    text = f": {error}" if type(error) in (AttributeError, KeyError, RecursionError, RuntimeError, TypeError, ValueError) else ""
    return _shown(f"{type_name(type(error))} in {at.tb_frame.f_code.co_name}{text}").encode("utf-8", "replace")


_collects = gc.isenabled()  # up to Python 3.9; since then the library has switched it off
gc.disable()
try:
    _answer()
except Exception as error:  # noqa: BLE001  the requester is told
    failed(_reason(error))
finally:
    if _collects:
        gc.enable()
