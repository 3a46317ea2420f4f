# What still refers to the program's tensors, for memtrace ctl PID referrers (cshim/adapters/referrers.c). Runs in one namespace with python/memtrace/_paths.py and
# _referrers.py, which stand before it.
# ruff: noqa: F821
LONGEST = 2000  # characters of a text


def _shown(text):
    return "".join([c if c.isprintable() else repr(c)[1:-1] for c in text[:LONGEST]])


def _row(holder):
    shape = ",".join(map(str, holder.shape))
    addresses = ",".join(["%x" % address for address in holder._storages])
    fields = holder.bytes, holder.tensors, holder.graph_nodes, holder.graph_bytes, holder.dtype, shape, holder.device, holder.path, holder.types, addresses
    return "\t".join([_shown(str(field)) for field in fields[:-1]] + [addresses]) + "\n"


def _answer():
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "Tensor"):
        answer(b"")
        return
    holders, tensors, late = _find(torch, LIMIT, BUDGET, SECONDS, moment)
    rows, left = [], ROOM - 100
    for holder in holders:
        row = _row(holder).encode("utf-8", "replace")
        left -= len(row)
        if left < 0:
            break
        rows.append(row)
    answer(b"%d\t%d\t%d\n" % (tensors, late, len(holders) - len(rows)) + b"".join(rows))


_answer()
