package analyzer

import (
	"errors"
	"io"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"testing"

	"memtrace/cuda"
	"memtrace/internal/moment"
	"memtrace/trace"
)

// endlessSource makes the events of a training program while they are read, so that none of them takes memory.
type endlessSource struct {
	memorySource
	left  int
	rng   *rand.Rand
	live  []trace.Event // of the step
	seq   uint64
	now   int64
	total uint64
	batch []trace.Event
}

func newEndlessSource(events int) *endlessSource {
	s := &endlessSource{left: events, rng: rand.New(rand.NewPCG(1, 2))}
	fillTables(&s.tables)
	return s
}

// ReadBatch implements trace.Source.
func (s *endlessSource) ReadBatch() ([]trace.Event, error) {
	if s.left == 0 {
		return nil, io.EOF
	}
	s.batch = s.batch[:0]
	for ; len(s.batch) < 1024 && s.left > 0; s.left-- {
		s.seq++
		s.now += 1 + int64(s.rng.IntN(4000))
		e := trace.Event{Kind: trace.EventAlloc, Seq: s.seq, Time: s.now, Level: cuda.LevelFramework,
			Mem: cuda.MemoryDevice, Thread: 1, Stack: trace.StackID(1 + s.seq%4), Tag: trace.StringID(10 + s.seq%4)}
		if n := len(s.live); n >= 2000 || n > 0 && s.rng.IntN(9) < 4 {
			at := s.rng.IntN(n)
			e = s.live[at]
			s.live[at] = s.live[n-1]
			s.live = s.live[:n-1]
			e.Kind, e.Seq, e.Time = trace.EventFree, s.seq, s.now
			s.total -= e.Size
		} else {
			e.Addr, e.Size = 0x7f0000000000+s.seq<<9, uint64(1+s.rng.IntN(4096))*512
			s.total += e.Size
			s.live = append(s.live, e)
		}
		e.Allocated = s.total
		s.batch = append(s.batch, e)
	}
	return s.batch, nil
}

// summarizeOverTime reads events with a timeline, and returns what it is made of.
func summarizeOverTime(t testing.TB, events int) *overTime {
	t.Helper()
	p, err := NewProfile(newEndlessSource(events), Options{Timeline: "tag"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := soFar(p); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	for _, f := range p.replayer.figures.list {
		if followed, is := f.(*overTime); is {
			return followed
		}
	}
	t.Fatal("no figure over time")
	return nil
}

// TestTimelineDoesNotGrow: ten times the events make no more stretches, keys or parts than the bounds allow, and a
// trace's length is in the width of the stretches alone.
func TestTimelineDoesNotGrow(t *testing.T) {
	for _, events := range []int{20_000, 200_000, 2_000_000} {
		c := summarizeOverTime(t, events)
		parts, bins := 0, 0
		for _, s := range c.Stacks {
			for _, b := range s.Bins() {
				parts += cap(b.Held)
				bins++
			}
		}
		v := c.Value(0)
		if v.Bins() > moment.MaxTimelineBins || v.Bins() < moment.MaxTimelineBins/2 || bins > len(c.Stacks)*
			moment.MaxTimelineBins || parts > 2*5*moment.MaxTimelineBins {
			t.Errorf("%d events: %d stretches, %d of all accounts, %d parts", events, v.Bins(), bins, parts)
		}
		if want := int64(events) * 2000 / moment.MaxTimelineBins; bits.Len64(uint64(v.WidthNS/want)) > 2 {
			t.Errorf("%d events: stretches of %d ns, about %d expected", events, v.WidthNS, want)
		}
	}
}

// BenchmarkOverTime reads a long trace without and with a timeline, and says what memory that took. With -benchtime
// 50000000x it is one of 50 million events.
func BenchmarkOverTime(b *testing.B) {
	for _, c := range []struct{ name, by string }{{"without", ""}, {"by tag", "tag"}, {"by use", ByUse}} {
		b.Run(c.name, func(b *testing.B) {
			p, err := NewProfile(newEndlessSource(b.N), Options{Timeline: c.by})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := soFar(p); err != nil {
				b.Fatal(err)
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.Sys)/(1<<20), "MiB")
		})
	}
}
