package export

import (
	"bytes"
	"strings"
	"testing"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/guest"
	"memtrace/trace"
)

// TestExportsAddUpToTheReport: for every trace of the report's own tests, each format's stacks add up to the summary's
// figure of the level, to the byte.
func TestExportsAddUpToTheReport(t *testing.T) {
	tried, stacked := 0, 0
	for name, raw := range guest.ReportTraces(t) {
		summary, err := analyzer.Summarize(open(t, raw), analyzer.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for level, want := range map[string]report.Level{"framework": summary.Framework, "driver": summary.Driver} {
			set, err := analyzer.Stacks(open(t, raw), analyzer.Options{}, level)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			tried++
			if len(set.Rows) > 1 {
				stacked++
			}
			checkSums(t, name+" "+level, set, want)
		}
	}
	if tried < 10 || stacked < 3 {
		t.Errorf("only %d levels, %d with several stacks", tried, stacked)
	}
}

func open(t *testing.T, raw []byte) *trace.Reader {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func checkSums(t *testing.T, name string, set *analyzer.StackSet, want report.Level) {
	t.Helper()
	if set.Level != strings.Fields(name)[2] {
		t.Errorf("%s: level %s", name, set.Level)
	}
	for value, whole := range map[Value]uint64{Peak: want.PeakBytes, Live: want.LiveBytes, Allocated: want.AllocBytes,
		Count: want.AllocCount} {
		o := Options{Value: value}
		if got := value.Sum(set); got != whole {
			t.Errorf("%s, %s: stacks add up to %d, the summary says %d", name, value, got, whole)
		}
		if _, sum := readCollapsed(t, collapse(t, set, o)); sum != whole {
			t.Errorf("%s, %s: collapsed stacks add up to %d, want %d", name, value, sum, whole)
		}
		if boxes := readFlame(t, flame(t, set, o)); whole == 0 && len(boxes) > 0 || whole > 0 &&
			boxes[0].value != whole {
			t.Errorf("%s, %s: the picture's whole is not %d", name, value, whole)
		}
		if file := readSpeedscope(t, scope(t, set, o)); file.Profiles[0].EndValue != whole {
			t.Errorf("%s, %s: speedscope's sum is %d, want %d", name, value, file.Profiles[0].EndValue, whole)
		}
		p := readPprof(t, writePprof(t, set, o))
		index, err := p.SampleIndexByName("")
		if err != nil {
			t.Fatal(err)
		}
		var sum uint64
		for _, s := range p.Sample {
			sum += uint64(s.Value[index])
		}
		if sum != whole {
			t.Errorf("%s, %s: pprof's sum is %d, want %d", name, value, sum, whole)
		}
	}
}
