package analyzer

import (
	"encoding/binary"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/contradiction"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// eventBytes is how much fuzz input makes one event.
const eventBytes = 16

// eventsFrom makes events that hit each other often: few addresses, any kind, level and memory, any order, and now and
// then extreme values.
func eventsFrom(data []byte) []trace.Event {
	var events []trace.Event
	for ; len(data) >= eventBytes; data = data[eventBytes:] {
		e := trace.Event{Kind: trace.EventKind(data[0] % 16), Level: cuda.Level(data[1] % 5),
			Mem: cuda.MemoryKind(data[2] % 15), Flags: trace.Flags(data[3]),
			Addr: uint64(data[4]%16) << 21, Size: uint64(binary.LittleEndian.Uint16(data[5:])) << (data[7] % 56),
			Device: int16(data[8]%4) - 2,
			Thread: trace.ThreadID(data[9] % 4), Stack: trace.StackID(data[10] % 7), Tag: trace.StringID(data[11] % 20),
			Handle:    uint64(data[12]%16) << 21,
			Allocated: uint64(data[13]), Reserved: uint64(data[14]), API: cuda.API(data[15]),
			Object: cuda.ObjectKind(data[2] % 11)}
		if data[1] == 128 { // an object without a handle, such as a device's primary context
			e.Addr = 0
		}
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
	f.Add([]byte{1, 1, 6, 0, 2, 1, 0, 21, 2, 0, 1, 0, 0, 0, 0, 42, 3, 1, 0, 0, 3, 1, 0, 21, 2, 0, 1, 0, 2, 0, 0, 49, 2,
		1, 6, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 48,
		4, 1, 0, 0, 3, 1, 0, 21, 2, 0, 1, 0, 2, 0, 0, 50})
	f.Add([]byte{ // a context is noticed, owns memory, and is reset
		10, 1, 1, 16, 3, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 42, 1, 1, 1, 0, 1, 100, 0, 9, 2, 0, 1, 0, 3, 0, 1, 1, 11, 128, 1,
		0, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 42})
	f.Add([]byte{ // a graph's node is freed twice, its graph destroyed
		1, 1, 9, 0, 1, 100, 0, 9, 2, 0, 1, 0, 5, 0, 1, 1, 2, 1, 5, 0, 1, 0, 0, 0, 2, 0, 1, 0, 0, 0, 1, 1, 2, 1, 1, 0, 1,
		0, 0, 0, 2, 0, 1, 0, 0, 0, 1, 1,
		11, 1, 6, 0, 5, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 42})
	f.Add([]byte{ // an imported handle is mapped, retained, released twice and unmapped
		1, 1, 12, 0, 2, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 42, 3, 1, 0, 0, 3, 1, 0, 21, 2, 0, 1, 0, 2, 0, 0, 49, 1, 1, 6, 8,
		2, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 42,
		2, 1, 6, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 48, 2, 1, 6, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 48, 4, 1, 0, 0, 3,
		1, 0, 21, 2, 0, 1, 0, 2, 0, 0, 50})
	f.Add([]byte{ // a pool and a graph pool tell what they hold, and a pool ends
		12, 1, 3, 0, 1, 1, 0, 21, 2, 0, 0, 0, 0, 0, 0, 1, 12, 1, 9, 0, 0, 1, 0, 25, 2, 0, 0, 0, 0, 0, 0, 1, 11, 1, 3, 0,
		1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		src := &memorySource{events: eventsFrom(data)}
		fillTables(&src.tables)
		s, err := Summarize(src, Options{Question: Question{Groupings: profile.GroupingNames()}, Timeline: "name"})
		if err != nil {
			t.Fatal(err)
		}
		checkWindowOf(t, src, s)
		checkSizes(t, s)
		for _, fault := range contradiction.In(s) {
			t.Error(fault)
		}
	})
}

// checkSizes compares the sizes with the driver level, which no filter narrows here. Sizes beyond any device wrap
// around, as sums do elsewhere.
func checkSizes(t *testing.T, s *report.Summary) {
	for _, d := range s.Devices {
		v := d.Sizes
		if v.AtPeak.RequestedBytes != d.Driver.PeakBytes || v.AtEnd.RequestedBytes != d.Driver.LiveBytes {
			t.Errorf("device %d: requested %d at the peak and %d at the end, driver %+v", d.Index,
				v.AtPeak.RequestedBytes, v.AtEnd.RequestedBytes, d.Driver)
		}
		if v.AtEnd.PoolIdleBytes > v.AtEnd.PoolReservedBytes {
			t.Errorf("device %d: %+v", d.Index, v.AtEnd)
		}
		if d.Driver.LiveBytes == 0 && d.Driver.AllocCount == d.Driver.FreeCount && (v.AtEnd.RoundedBytes != 0 ||
			v.AtEnd.PageBytes != 0) {
			t.Errorf("device %d: nothing is live, but %+v", d.Index, v.AtEnd)
		}
	}
}

// checkWindowOf looks at the second half of a trace: it ends as the trace does, and its highest moment is not above the
// trace's, which the timeline shows.
func checkWindowOf(t *testing.T, src *memorySource, s *report.Summary) {
	half := &memorySource{events: src.events}
	fillTables(&half.tables)
	from := moment.At{Kind: moment.Time, Time: s.Process.DurationNS / 2}
	w, err := Summarize(half, Options{Question: Question{Groupings: []string{"name"}}, From: from})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []struct{ whole, half report.Level }{{s.Driver, w.Driver}, {s.Framework, w.Framework}} {
		if l.half.LiveBytes != l.whole.LiveBytes || l.half.PeakBytes > l.whole.PeakBytes ||
			l.half.LiveCount() != l.whole.LiveCount() {
			t.Errorf("half of the trace: %+v, all of it: %+v", l.half, l.whole)
		}
	}
	for _, l := range s.Timeline.Levels {
		level, highest := map[string]report.Level{"driver": s.Driver, "framework": s.Framework}[l.Level], uint64(0)
		for _, b := range l.Bins {
			highest = max(highest, b.PeakBytes)
		}
		if highest != level.PeakBytes {
			t.Errorf("%s: %d is highest over time, %d in all", l.Level, highest, level.PeakBytes)
		}
	}
}
