package runprofile

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/guest"
	"memtrace/internal/profile"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
	"memtrace/internal/rules/rulefile"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// sourceOf is a trace as a source of profiles.
func sourceOf(tb testing.TB, raw []byte) Source {
	tb.Helper()
	set, err := rulefile.Open(rulefile.Default)
	if err != nil {
		tb.Fatal(err)
	}
	open := func() trace.Source {
		r, err := trace.NewReader(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			tb.Fatal(err)
		}
		return r
	}
	return Source{Memtrace: "test", Options: analyzer.Options{Question: analyzer.Question{Sites: true}, Training: true,
		Symbols: symbol.Options{NoFiles: true}, RuleSets: []profile.RuleGrouping{{Name: "category", Rules: set}}},
		Complete: func(trace.Info, *report.Summary) error { return nil },
		Open: func(o *analyzer.Options) (trace.Source, func(), error) {
			if o.NeedsAhead() {
				o.Ahead = open()
			}
			return open(), func() {}, nil
		}}
}

// madeOf makes the profile of a trace, and the bytes of its file.
func madeOf(tb testing.TB, raw []byte) (*Profile, []byte) {
	tb.Helper()
	p, err := Make(sourceOf(tb, raw))
	if err != nil {
		tb.Fatal(err)
	}
	var file bytes.Buffer
	if err := p.Write(&file); err != nil {
		tb.Fatal(err)
	}
	return p, file.Bytes()
}

// read reads both parts of a file.
func read(data []byte) (*report.Head, *Body, error) {
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, nil, err
	}
	head, err := f.Head()
	if err != nil {
		return nil, nil, err
	}
	body, err := f.Body()
	return head, body, err
}

// TestReportIsThatOfTheTrace: with all details and as JSON, of every trace that has a golden report.
func TestReportIsThatOfTheTrace(t *testing.T) {
	for name, raw := range guest.ReportTraces(t) {
		source := sourceOf(t, raw)
		replayed, _, _, err := source.replay(source.Options)
		if err != nil {
			t.Fatal(err)
		}
		want, err := replayed.Report(source.Options.Question)
		if err != nil {
			t.Fatal(err)
		}
		_, data := madeOf(t, raw)
		_, body, err := read(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := body.Answer(&source.Options)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got.FromProfile = false // it changes what is proposed
		for form, write := range map[string]func(w *bytes.Buffer, s *report.Summary) error{
			"text": func(w *bytes.Buffer, s *report.Summary) error {
				return render.Text(w, s, layout.Options{Path: "a.bin", Details: true})
			},
			"brief": func(w *bytes.Buffer, s *report.Summary) error {
				return render.Text(w, s, layout.Options{Path: "a.bin"})
			},
			"JSON": func(w *bytes.Buffer, s *report.Summary) error { return render.JSON(w, s) },
		} {
			var a, b bytes.Buffer
			if err := write(&a, want); err != nil {
				t.Fatal(err)
			}
			if err := write(&b, got); err != nil {
				t.Fatal(err)
			}
			if a.String() != b.String() {
				t.Errorf("%s: the %s of the profile differs from that of the trace:\n%s", name, form,
					difference(a.String(), b.String()))
			}
		}
		replayed.Close()
	}
}

// difference shows the first line that differs.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "trace:   " + w[i] + "\nprofile: " + g[i]
		}
	}
	return "one is longer"
}

// TestComplete: what is added to the report of a trace is in that of its profile, too. It goes by all that the trace
// says, also behind the events: JAX's own account was looked for before they were read.
func TestComplete(t *testing.T) {
	source := sourceOf(t, guest.Encoded(t, `trace version=1
alloc seq=1 time=1000 thread=1 level=driver api=cuMemAlloc_v2 mem=device addr=0x10000000 size=1024
info key="account.jax" value="said at the end"
flush watermark=2
end reason="exit" events=1 time=9000
`))
	source.Complete = func(info trace.Info, s *report.Summary) error {
		s.OwnAccounts = []report.OwnAccount{{Framework: info["account.jax"]}}
		return nil
	}
	p, err := Make(source)
	if err != nil {
		t.Fatal(err)
	}
	if list := p.Body.Summary.OwnAccounts; len(list) != 1 || list[0].Framework != "said at the end" {
		t.Errorf("%+v", list)
	}
}

// TestMoments: what a profile has of a moment adds up to what the trace had then.
func TestMoments(t *testing.T) {
	moments := 0
	for name, raw := range guest.ReportTraces(t) {
		p, _ := madeOf(t, raw)
		s := p.Body.Summary
		for _, m := range p.Body.Moments {
			sum := uint64(0)
			for _, bytes := range m.Cells.Bytes {
				sum += bytes
			}
			level := &s.Driver
			if m.Level == report.LevelFramework {
				level = &s.Framework
			}
			want := uint64(0)
			switch {
			case m.What == "peak":
				want = level.PeakBytes
			case m.What == "exit":
				want = level.LiveBytes
			case strings.HasPrefix(m.What, "mark:"):
				for _, mark := range s.Marks {
					if "mark:"+mark.Name == m.What && m.Level == report.LevelFramework {
						want = mark.FrameworkBytes
					} else if "mark:"+mark.Name == m.What {
						want = mark.DriverBytes
					}
				}
			default:
				continue
			}
			if moments++; sum != want {
				t.Errorf("%s: %s of the %s level: cells of %d bytes, want %d", name, m.What, m.Level, sum, want)
			}
		}
	}
	if moments < 20 {
		t.Errorf("%d moments are too few to believe", moments)
	}
}

// TestRefuses: what a profile cannot answer, it says so, and why.
func TestRefuses(t *testing.T) {
	_, data := madeOf(t, guest.ReportTraces(t)["training.txtar trace"])
	for lacks, ask := range map[string]func(o *analyzer.Options){
		"not divided by stream": func(o *analyzer.Options) { o.Groupings = []string{"stream"} },
		"one device":            func(o *analyzer.Options) { o.Devices = []int16{0} },
		"selection":             func(o *analyzer.Options) { o.Tag = "a" },
		"blocks":                func(o *analyzer.Options) { o.HistoryBlocks = 5 },
		"by the rules tbd":      func(o *analyzer.Options) { o.RuleSets = otherRules(t) },
		"unfolded":              func(o *analyzer.Options) { o.FullStacks = true },
		"own and libraries":     func(o *analyzer.Options) { o.Own = []string{"x"} },
	} {
		_, body, err := read(data)
		if err != nil {
			t.Fatal(err)
		}
		o := sourceOf(t, guest.Encoded(t, "trace version=1\n")).Options
		if ask(&o); reflect.DeepEqual(o, analyzer.Options{}) {
			t.Fatal("nothing is asked")
		}
		if _, err := body.Answer(&o); err == nil || !strings.Contains(err.Error(), lacks) {
			t.Errorf("%q, want %q", err, lacks)
		}
	}
}

func otherRules(t *testing.T) []profile.RuleGrouping {
	t.Helper()
	set, err := rulefile.Open("tbd-paper")
	if err != nil {
		t.Fatal(err)
	}
	return []profile.RuleGrouping{{Name: "category", Rules: set}}
}
