# What PyTorch's allocator holds when recording begins in a running program (cshim/adapters/snapshot.c).
import sys

from .library import TRIES, bypassed, record_snapshot


def _rows(snapshot):
    rows = []
    allocated, reserved = {}, {}
    for segment in snapshot["segments"] if isinstance(snapshot, dict) else snapshot:  # to PyTorch 1.13 a list of segments
        device, at = segment["device"], segment["address"]
        place = segment.get("stream", 0), *segment.get("segment_pool_id", (0, 0))
        reserved[device] = reserved.get(device, 0) + segment["total_size"]
        if not segment.get("is_expandable"):  # those are mapped piece by piece
            rows += 0, device, at, segment["total_size"], 0, 0, 0, *place
        for block in segment["blocks"]:
            size = block["size"]
            if block["state"] == "active_allocated":
                allocated[device] = allocated.get(device, 0) + size
                rows += 1, device, block.get("address", at), size, block.get("requested_size", 0), allocated[device], reserved[device], *place
            at += size
    return b"".join([number.to_bytes(8, "little") for number in rows])


def _record_before():  # its name is known to internal/callstack
    torch = sys.modules.get("torch")
    try:
        if torch is None or not torch.cuda.is_initialized():
            return
        for _ in range(TRIES):
            count = bypassed()
            if record_snapshot(count, _rows(torch.cuda.memory._snapshot())):
                return
    except (AttributeError, KeyError, RuntimeError):  # another allocator is plugged in, or a version without it
        pass


_record_before()
