"""Reads a trace with Perfetto's own message classes, and prints as JSON what its viewer draws: counters by the path of their track as [time, value], slices as [begin, end, name] and instants as [time, name].

    perfetto_tracks.py FILE
"""
import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos



def known(message):
    """Every field of a message and of those in it has a name."""
    assert len(UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in [value] if hasattr(value, "ListFields") else value:
                known(part)


trace = protos.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
paths, counters, slices, instants, begun, units = {}, {}, {}, [], {}, set()
for packet in trace.packet:
    kind = packet.WhichOneof("data")
    known(packet)
    if kind == "track_descriptor":
        track = packet.track_descriptor
        paths[track.uuid] = f"{paths[track.parent_uuid]}/{track.name}" if track.HasField("parent_uuid") else track.name
        if track.HasField("counter"):
            units.add(protos.CounterDescriptor.Unit.Name(track.counter.unit))
        continue
    assert kind == "track_event", kind
    event, time = packet.track_event, packet.timestamp
    path = paths[event.track_uuid]
    if event.type == protos.TrackEvent.TYPE_COUNTER:
        counters.setdefault(path, []).append([time, event.counter_value])
    elif event.type == protos.TrackEvent.TYPE_SLICE_BEGIN:
        begun.setdefault(event.track_uuid, []).append([time, event.name])
    elif event.type == protos.TrackEvent.TYPE_SLICE_END:
        begin, name = begun[event.track_uuid].pop()
        assert begin <= time, (path, name)
        slices.setdefault(path, []).append([begin, time, name])
    else:
        assert event.type == protos.TrackEvent.TYPE_INSTANT, event.type
        instants.append([time, event.name])
assert not any(begun.values()), begun
json.dump({"counters": counters, "slices": slices, "instants": instants, "units": sorted(units)}, sys.stdout)
