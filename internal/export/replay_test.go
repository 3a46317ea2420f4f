package export

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/guest"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/internal/rules"
	"memtrace/trace"
)

// noRules sort nothing: there is a single category.
var noRules = &rules.Set{Name: "none"}

// runOf is a trace in memory.
func runOf(raw []byte) *Run {
	return &Run{
		Count: analyzer.Options{HistoryBlocks: 1000,
			RuleSets: []profile.RuleGrouping{{Name: "category", Rules: noRules}}},
		Open: func() (trace.Source, io.Closer, error) {
			r, err := trace.NewReader(bytes.NewReader(raw), int64(len(raw)))
			return r, io.NopCloser(nil), err
		},
	}
}

func summarized(t *testing.T, raw []byte, o analyzer.Options) *report.Summary {
	t.Helper()
	s, err := analyzer.Summarize(open(t, raw), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func replayed(t *testing.T, write func(io.Writer, *Run, Options) (*Written, error), run *Run) ([]byte, *Written) {
	t.Helper()
	var out bytes.Buffer
	written, err := write(&out, run, Options{Writer: "memtrace test"})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), written
}

// dhatFile is a file for DHAT as its viewer reads it.
type dhatFile struct {
	dhatHead
	Points []dhatRecord `json:"pps"`
	Frames []string     `json:"ftbl"`
}

func readDHAT(t *testing.T, data []byte) (f dhatFile) {
	t.Helper()
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, p := range f.Points {
		var names []string
		for _, n := range p.Frames {
			names = append(names, f.Frames[n])
		}
		if key := strings.Join(names, "\x00"); seen[key] || len(names) == 0 {
			t.Errorf("two points, or one without frames: %q", names)
		} else {
			seen[key] = true
		}
		if p.MostBytes < max(p.AtBytes, p.EndBytes) || p.MostBytes > p.AllocBytes || p.AtBlocks > p.Allocs {
			t.Errorf("%q: %+v", names, p)
		}
	}
	return f
}

// TestDHATAddsUpToTheReport: bytes and blocks of all points together are those of the level.
func TestDHATAddsUpToTheReport(t *testing.T) {
	several := 0
	for name, raw := range guest.ReportTraces(t) {
		s := summarized(t, raw, analyzer.Options{})
		for level, want := range map[string]report.Level{"framework": s.Framework, "driver": s.Driver} {
			run := runOf(raw)
			run.Level = level
			data, written := replayed(t, DHAT, run)
			f := readDHAT(t, data)
			var sum dhatRecord
			for _, p := range f.Points {
				sum.AllocBytes += p.AllocBytes
				sum.Allocs += p.Allocs
				sum.AtBytes += p.AtBytes
				sum.EndBytes += p.EndBytes
				sum.EndBlocks += p.EndBlocks
			}
			if sum.AtBytes != want.PeakBytes || sum.EndBytes != want.LiveBytes || sum.AllocBytes != want.AllocBytes ||
				sum.Allocs != want.AllocCount || sum.EndBlocks != want.AllocCount-want.FreeCount {
				t.Errorf("%s, %s: points add up to %+v, the report has %+v", name, level, sum, want)
			}
			if f.Version != 2 || !f.Lifetimes || f.Accesses || f.Frames[0] != "[root]" ||
				!strings.Contains(written.Words, "at the peak") {
				t.Errorf("%s, %s: head %+v, %q", name, level, f.dhatHead, written.Words)
			}
			if len(f.Points) > 1 {
				several++
			}
		}
	}
	if several < 3 {
		t.Errorf("only %d files have several points", several)
	}
}

// Two stacks with equal names are one point, with the highest sum that they had together; lifetimes end with the run.
func TestDHATLifetimes(t *testing.T) {
	raw := guest.Encoded(t, `trace version=1
thread id=1 tid=7 name="python3"
code id=10 name="f" file="/home/ada/train.py" line=1 table=lnotab lines=0a01
stack id=30 frames=0x1000
pystack id=20 frames=10+0
alloc seq=1 time=1000000 thread=1 level=driver mem=device device=0 addr=0x1000 size=100 pystack=20
alloc seq=2 time=2000000 thread=1 level=driver mem=device device=0 addr=0x2000 size=50 pystack=20
free seq=3 time=4000000 thread=1 level=driver mem=device device=0 addr=0x1000
alloc seq=4 time=5000000 thread=1 level=driver mem=device device=0 addr=0x1000 size=70
end reason="exit" time=9000000
`)
	data, _ := replayed(t, DHAT, runOf(raw))
	f := readDHAT(t, data)
	if len(f.Points) != 2 {
		t.Fatalf("%d points", len(f.Points))
	}
	var found dhatRecord
	for _, p := range f.Points {
		if p.Allocs == 2 {
			found = p
		}
	}
	found.Frames = nil
	want := dhatRecord{AllocBytes: 150, Allocs: 2, Lifetimes: 3000 + 7000, MostBytes: 150, MostBlocks: 2, AtBytes: 150,
		AtBlocks: 2, EndBytes: 50, EndBlocks: 1}
	found2, _ := json.Marshal(found)
	if want2, _ := json.Marshal(want); string(found2) != string(want2) {
		t.Errorf("%s, want %s", found2, want2)
	}
	if f.Peak != 2000 || f.End != 9000 {
		t.Errorf("peak at %d, end at %d", f.Peak, f.End)
	}
	run := runOf(raw)
	run.Count.At, _ = moment.Parse("4.5ms")
	data, written := replayed(t, DHAT, run)
	var at uint64
	for _, p := range readDHAT(t, data).Points {
		at += p.AtBytes
	}
	if at != 50 || !strings.Contains(written.Words, "50 B at 4.5ms") {
		t.Errorf("%d bytes at 4.5 ms, %q", at, written.Words)
	}
}
