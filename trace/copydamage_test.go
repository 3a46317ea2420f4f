package trace

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"memtrace/internal/section"
)

// lossyTrace has blocks of events, each with an account of records that were dropped, and an end that has their sum.
func lossyTrace(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := NewWriter(&file, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lost := uint64(0)
	stream := trainingStream(3000, 5)
	for len(stream) > 0 {
		n := min(500, len(stream))
		block := slices.Clone(stream[:n])
		block[n/2] = Lost{Count: 10, Enders: 4, Known: true}.Event(block[n/2-1].Seq)
		lost += 10
		stream = stream[n:]
		if err := w.WriteEvents(block); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(0); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(End{Reason: "exit", LostRecords: lost}); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// A mutated trace had a copy with other losses than the trace itself: where damage took an account of dropped records,
// the end still has these, and what the damage took is lost on top.
func TestCopyOfDamageLosesTheSame(t *testing.T) {
	whole := lossyTrace(t)
	seen := make(map[string]bool)
	for at := section.HeadSize; at+700 < len(whole); at += 350 {
		file := slices.Clone(whole)
		clear(file[at : at+700]) // more than check bytes restore
		_, original := readAll(t, file)
		_, copied := readAll(t, copyOf(t, file, verbatim{}))
		want, _, _ := original.Lost()
		if got, _, _ := copied.Lost(); got != want {
			t.Errorf("damage at byte %d of %d: the copy lost %d records, the original %d: %+v", at, len(file), got,
				want, original.Health())
		}
		if original.Health().Torn.Records > 0 {
			seen["torn"] = true
		}
		if _, ended := original.End(); ended {
			seen["ended"] = true
		}
	}
	if !seen["torn"] || !seen["ended"] {
		t.Error("no damage took events of a trace that has its end")
	}
}

// Of a trace that is whole the copy has the end as it was.
func TestCopyKeepsTheEnd(t *testing.T) {
	file := encode(t, "trace version=1\nlost seq=1 count=7\nend reason=\"exit\" lost_records=5\n")
	if got := dump(t, copyOf(t, file, verbatim{})); !strings.Contains(got, "lost_records=5") {
		t.Errorf("the copy is\n%s", got)
	}
}
