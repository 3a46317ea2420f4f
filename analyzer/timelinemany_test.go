package analyzer

import (
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// manyOracle goes through the same events with nothing but sums: for each width, the highest total of each stretch and
// what tags held then.
type manyOracle struct {
	widths []int64
	bins   [][]manyBin // by width
	held   [4]uint64
	total  uint64
}

type manyBin struct {
	peak uint64
	held [4]uint64
}

func newManyOracle(v *report.Timeline) *manyOracle {
	o := &manyOracle{}
	for ; ; v = v.Joined() {
		o.widths, o.bins = append(o.widths, v.WidthNS), append(o.bins, nil)
		if v.Bins() == 1 {
			return o
		}
	}
}

func (o *manyOracle) event(e *trace.Event) {
	o.open(e.Time)
	tag := e.Tag - 10
	if e.Kind == trace.EventFree {
		o.held[tag] -= e.Size
		o.total -= e.Size
		return
	}
	o.held[tag] += e.Size
	o.total += e.Size
	for i := range o.bins {
		if b := &o.bins[i][len(o.bins[i])-1]; o.total > b.peak {
			*b = manyBin{o.total, o.held}
		}
	}
}

// open begins the stretches that a time has reached, with what is live.
func (o *manyOracle) open(time int64) {
	for i, width := range o.widths {
		for int64(len(o.bins[i])) <= time/width {
			o.bins[i] = append(o.bins[i], manyBin{o.total, o.held})
		}
	}
}

// TestTimelineOfManyEvents: however long a trace is, every stretch of every level of detail has its highest moment, and
// what tags held then; and what was taken for it is less than 300 MB. TIMELINE_EVENTS sets the number of events:
// `make nightly` reads 50 million.
func TestTimelineOfManyEvents(t *testing.T) {
	events := 300_000
	if text := os.Getenv("TIMELINE_EVENTS"); text != "" {
		var err error
		if events, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	p, err := NewProfile(newEndlessSource(events), Options{Timeline: "tag"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := soFar(p)
	if err != nil {
		t.Fatal(err)
	}
	resident := mostResident(t)
	if events >= 50_000_000 && resident > 300e6 { // fewer are read beside other tests
		t.Errorf("%d events: %d bytes were resident", events, resident)
	}
	o, source := newManyOracle(s.Timeline), newEndlessSource(events)
	o.open(0)
	for {
		batch, err := source.ReadBatch()
		if errors.Is(err, io.EOF) {
			break
		}
		for i := range batch {
			o.event(&batch[i])
		}
	}
	stretches := 0
	for level, v := 0, s.Timeline; level < len(o.bins); level, v = level+1, v.Joined() {
		bins := v.Level(report.LevelFramework).Bins
		if len(bins) != len(o.bins[level]) {
			t.Fatalf("%d stretches of %d ns, want %d", len(bins), v.WidthNS, len(o.bins[level]))
		}
		for i, want := range o.bins[level] {
			var held [4]uint64
			for _, p := range bins[i].Held {
				held[tagNumber(t, v.Keys[p.Key].Key)] += p.Bytes
			}
			if stretches++; bins[i].PeakBytes != want.peak || held != want.held {
				t.Fatalf("stretch %d of %d ns: %d by tag %v, want %d and %v", i, v.WidthNS, bins[i].PeakBytes, held,
					want.peak, want.held)
			}
		}
	}
	t.Logf("%d events: %d maxima in %d levels of detail agree, at most %d bytes resident", events, stretches,
		len(o.bins), resident)
}

// mostResident is the most that this process ever had in memory, in bytes.
func mostResident(t *testing.T) uint64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the kernel does not say how much is resident")
	}
	kb, err := strconv.ParseUint(string(found[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// tagNumber is the number of a tag that fillTables names.
func tagNumber(t *testing.T, key string) int {
	t.Helper()
	source := newEndlessSource(0)
	for n := range 4 {
		if source.tables.String(trace.StringID(10+n)) == key {
			return n
		}
	}
	t.Fatalf("no tag is called %q", key)
	return 0
}
