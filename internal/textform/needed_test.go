package textform

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"memtrace/trace"
)

// someEvents is a source that passes on the events with these order numbers.
type someEvents struct {
	trace.Source
	want map[uint64]bool
}

func (s someEvents) ReadBatch() ([]trace.Event, error) {
	batch, err := s.Source.ReadBatch()
	var kept []trace.Event
	for _, e := range batch {
		if s.want[e.Seq] {
			kept = append(kept, e)
		}
	}
	return kept, err
}

// TestEventsTextHasWhatItRefersTo: of a large dictionary only what the chosen events refer to is written, once and
// before them, and the text is a trace again.
func TestEventsTextHasWhatItRefersTo(t *testing.T) {
	var text strings.Builder
	text.WriteString("trace version=1\ninfo key=\"process.pid\" value=\"7\"\n")
	for i := range 100 {
		fmt.Fprintf(&text,
			"thread id=%d tid=%d name=\"t%d\"\nstring id=%d value=\"tag%d\"\nmodule id=%d start=%#x end=%#x base=%#x path=\"/lib/%d.so\" buildid=\"\"\n", 1000+i, i, i, 2000+i, i, 3000+i, 1<<20+i<<12, 1<<20+(i+1)<<12, 1<<20+i<<12, i)
		fmt.Fprintf(&text, "stack id=%d frames=%#x,%#x end=whole\n", 4000+i, 1<<20+i<<12+16, 1<<20+((i+1)%100)<<12+32)
	}
	for i := range 100 {
		fmt.Fprintf(&text,
			"alloc seq=%d time=%d thread=%d tag=%d level=driver api=cuMemAlloc_v2 mem=device addr=%#x size=64 stack=%d\n", i+1, i+1, 1000+i, 2000+i, 1<<30+i<<12, 4000+i)
	}
	text.WriteString(
		"flush watermark=101\nend reason=\"exit\" lost_records=0 lost_rings=0 lost_dict=0 events=100 time=200\n")
	var file bytes.Buffer
	if err := Encode(&file, strings.NewReader(text.String())); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteEvents(&out, someEvents{r, map[uint64]bool{5: true, 6: true}}); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	for part, count := range map[string]int{"\ninfo ": 0, "\nthread ": 2, "\nstring ": 2, "\nstack ": 2, "\nmodule ": 3,
		"\nalloc ": 2, "name=\"t4\"": 1, "value=\"tag5\"": 1, "\"/lib/4.so\"": 1, "\"/lib/6.so\"": 1} {
		if n := strings.Count(got, part); n != count {
			t.Errorf("%q stands there %d times, want %d:\n%s", part, n, count, got)
		}
	}
	if strings.Index(got, "\nstack id=4004 ") > strings.Index(got, "\nalloc seq=5 ") {
		t.Errorf("a stack stands behind its event:\n%s", got)
	}
	if err := Encode(&bytes.Buffer{}, strings.NewReader(got)); err != nil {
		t.Errorf("the text is no trace: %v", err)
	}
}
