package spool

import (
	"os"
	"path/filepath"
	"testing"
)

// newGrowingSpool lays out a spool of one ring in a file that holds the first of its two segments, and returns it with
// a view of the same file that holds both, as the recorder's does once it has made the file larger.
func newGrowingSpool(t *testing.T) (small, whole *Spool) {
	t.Helper()
	layout := newWideSpool(1, 2)
	path := filepath.Join(t.TempDir(), "grows")
	short := len(layout.data) - segmentSize
	if err := os.WriteFile(path, layout.data[:short], 0o600); err != nil {
		t.Fatal(err)
	}
	view := func(size int) *Spool {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := *layout
		s.opened, s.writable, s.data, s.mapped, s.segmentsPlanned = file, true, nil, nil, 2
		if err := s.mapFile(uint64(size)); err != nil {
			t.Fatal(err)
		}
		s.segmentsMax = s.data.room(s.segmentsOffset, segmentSize)
		t.Cleanup(func() { s.Close() })
		return &s
	}
	small = view(short)
	*small.data.word32(offSegmentsUsed) = 1
	base, _ := small.segmentOffset(1)
	*small.data.word32(base + segmentNext) = 0
	if err := os.Truncate(path, int64(len(layout.data))); err != nil {
		t.Fatal(err)
	}
	return small, view(len(layout.data))
}

// A thread wrote on where the spool had just grown and ended, between the drainer's reading and its release: its ring
// was taken for read to its end, and its records were overwritten without being counted as lost.
func TestRingGoesOnWhereTheSpoolHasGrown(t *testing.T) {
	s, recorder := newGrowingSpool(t)
	at, seq := position{1, 1}, uint64(1)
	for ; seq < segmentSlots; seq++ {
		recorder.commit(&at, seq)
	}
	c := NewCursor(s)
	if events, _, _ := c.Collect(false); len(events) != segmentSlots-1 {
		t.Fatalf("%d events of %d", len(events), segmentSlots-1)
	}

	*recorder.data.word32(offSegmentsUsed) = 2
	base, _ := recorder.segmentOffset(1)
	*recorder.data.word32(base + segmentNext) = 2
	for range 7 {
		recorder.commit(&at, seq)
		seq++
	}
	*recorder.data.word32(recorder.ringOffset(0) + ringState) = ringDead
	c.Release()
	if state := recorder.data.load32(recorder.ringOffset(0) + ringState); state != ringDead {
		t.Fatalf("the ring is in state %d before it was read to its end", state)
	}
	if events, _, _ := c.Collect(false); len(events) != 7 || events[0].Seq != segmentSlots {
		t.Errorf("%d events of 7", len(events))
	}
	c.Release()
	if state := recorder.data.load32(recorder.ringOffset(0) + ringState); state != ringFree {
		t.Errorf("the ring is in state %d after it was read to its end", state)
	}
}
