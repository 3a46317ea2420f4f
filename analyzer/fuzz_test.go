package analyzer

import (
	"encoding/binary"
	"testing"

	"memtrace/cuda"
	"memtrace/trace"
)

// eventBytes is how much fuzz input makes one event.
const eventBytes = 16

// eventsFrom makes events that hit each other often: few addresses, any kind, level and memory, any order, and now and then extreme values.
func eventsFrom(data []byte) []trace.Event {
	var events []trace.Event
	for ; len(data) >= eventBytes; data = data[eventBytes:] {
		e := trace.Event{Kind: trace.EventKind(data[0] % 11), Level: cuda.Level(data[1] % 5), Mem: cuda.MemoryKind(data[2] % 11), Flags: trace.Flags(data[3] & 7),
			Addr: uint64(data[4]%16) << 21, Size: uint64(binary.LittleEndian.Uint16(data[5:])) << (data[7] % 56), Device: int16(data[8]%4) - 2,
			Thread: trace.ThreadID(data[9] % 4), Stack: trace.StackID(data[10] % 7), Tag: trace.StringID(data[11] % 20), Handle: uint64(data[12]%16) << 21,
			Allocated: uint64(data[13]), Reserved: uint64(data[14]), API: cuda.API(data[15])}
		e.Seq = uint64(len(events)) + uint64(data[13]%8)
		e.Time = int64(e.Seq) * int64(data[14])
		if data[15] == 255 {
			e.Status = 2
		}
		if data[15] == 254 {
			e.Addr, e.Device, e.Stack, e.Thread, e.Tag = ^uint64(0), -32768, 1<<31, 1<<31, 1<<31
		}
		events = append(events, e)
	}
	return events
}

// FuzzReplay looks for histories that break the replay: it must not panic, and what it counts must still add up.
func FuzzReplay(f *testing.F) {
	f.Add([]byte{1, 1, 1, 0, 1, 100, 0, 0, 2, 0, 1, 0, 0, 0, 0, 1, 2, 1, 1, 0, 1, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 1})
	f.Add([]byte{1, 1, 6, 0, 2, 1, 0, 21, 2, 0, 1, 0, 0, 0, 0, 42, 3, 1, 0, 0, 3, 1, 0, 21, 2, 0, 1, 0, 2, 0, 0, 49, 2, 1, 6, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 48,
		4, 1, 0, 0, 3, 1, 0, 21, 2, 0, 1, 0, 2, 0, 0, 50})
	f.Fuzz(func(t *testing.T, data []byte) {
		src := &memorySource{events: eventsFrom(data)}
		fillTables(&src.tables)
		s, err := Summarize(src, Options{Groupings: GroupingNames()})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range s.Groups {
			level := map[string]Level{"driver": s.Driver, "framework": s.Framework}[g.Level]
			var peak, live, count uint64
			for _, r := range g.Rows {
				peak, live, count = peak+r.PeakBytes, live+r.LiveBytes, count+r.AllocCount
				if r.FreeCount > r.AllocCount {
					t.Errorf("%s by %s: %s was freed more often than allocated", g.Level, g.By, r.Key)
				}
			}
			if peak != level.PeakBytes || live != level.LiveBytes || count != level.AllocCount {
				t.Errorf("%s by %s: %d, %d, %d; want %d, %d, %d", g.Level, g.By, peak, live, count, level.PeakBytes, level.LiveBytes, level.AllocCount)
			}
		}
	})
}
