"""The sections of a trace file by kind, after docs/format.md: what a trace is made of."""
import struct

HEAD, NAMES = 16, {1: "info", 2: "dictionary", 3: "events", 4: "samples", 5: "index", 6: "end", 7: "clock", 8: "oom", 9: "symbols"}


def sizes(path):
    """Bytes on disk of every kind of section, headers included."""
    data, found = path.read_bytes(), {}
    if data[:8] != b"MEMTRACE":
        raise ValueError(f"{path} is no trace")
    at = HEAD
    while at + HEAD <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        name = NAMES.get(kind, str(kind))
        found[name] = found.get(name, 0) + HEAD + length
        at += HEAD + length
    if at != len(data):
        raise ValueError(f"{path} ends inside of a section")
    return found
