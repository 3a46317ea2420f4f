package render

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/render/layout"
	"memtrace/trace"
)

// eachStyle renders every golden case in its own style.
func eachStyle(t *testing.T, o layout.Options, look func(t *testing.T, name, text string)) {
	for _, path := range goldenPaths(t) {
		g := readGolden(t, path)
		o.Path = g.style.Path
		if g.part("base") != "" {
			d := diff.New(g.summary(t, "base"), g.summary(t, "new"))
			look(t, path, written(t, func(w io.Writer) error { return DiffText(w, d, o) }))
			continue
		}
		s := g.summary(t, "trace")
		look(t, path, written(t, func(w io.Writer) error { return Text(w, s, o) }))
	}
}

func TestTextKeepsToItsWidth(t *testing.T) {
	for _, width := range []int{60, 72, 80, 100, 140} {
		eachStyle(t, layout.Options{Width: width}, func(t *testing.T, name, text string) {
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > width && !strings.HasPrefix(line, "Next:") {
					t.Errorf("%s at width %d: a line of %d columns: %s", name, width, n, line)
				}
				if strings.HasSuffix(line, " ") {
					t.Errorf("%s: blanks at the end of %q", name, line)
				}
			}
			if strings.Contains(text, "\n\n\n") {
				t.Errorf("%s: two empty lines together", name)
			}
		})
	}
}

func TestASCIIAndColour(t *testing.T) {
	eachStyle(t, layout.Options{ASCII: true}, func(t *testing.T, name, text string) {
		for _, r := range text {
			if r > 126 || r < 32 && r != '\n' {
				t.Errorf("%s: %q in ASCII output", name, r)
			}
		}
	})
	plain := make(map[string]string)
	eachStyle(t, layout.Options{}, func(_ *testing.T, name, text string) { plain[name] = text })
	eachStyle(t, layout.Options{Color: true}, func(t *testing.T, name, text string) {
		bare := text
		for _, s := range []string{string(layout.Strong), string(layout.Faint), string(layout.Alarm),
			string(layout.Relief), string(layout.Blocks), string(layout.Slack), string(layout.Outside),
			layout.StyleEnd} {
			bare = strings.ReplaceAll(bare, s, "")
		}
		if bare == text {
			t.Errorf("%s has no colour", name)
		}
		if trimLines(bare) != plain[name] {
			t.Errorf("%s: colour changes more than the colour", name)
		}
	})
}

func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// brokenWriter takes some bytes and then fails.
type brokenWriter struct{ left int }

var errFull = errors.New("disk full")

func (b *brokenWriter) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteErrorsAreReturned(t *testing.T) {
	s := readGolden(t, "testdata/training.txtar").summary(t, "trace")
	d := diff.New(s, s)
	for _, left := range []int{0, 10, 500} {
		for name, write := range map[string]func(io.Writer) error{
			"Text":     func(w io.Writer) error { return Text(w, s, layout.Options{}) },
			"JSON":     func(w io.Writer) error { return JSON(w, s) },
			"DiffText": func(w io.Writer) error { return DiffText(w, d, layout.Options{}) },
			"DiffJSON": func(w io.Writer) error { return DiffJSON(w, d) },
		} {
			if err := write(&brokenWriter{left}); !errors.Is(err, errFull) {
				t.Errorf("%s after %d bytes: %v", name, left, err)
			}
		}
	}
}

// TestJSONGuaranteedFields checks the fields that are guaranteed to other programs, in a report of a run with a
// framework.
func TestJSONGuaranteedFields(t *testing.T) {
	s := readGolden(t, "testdata/training.txtar").summary(t, "trace")
	text := written(t, func(w io.Writer) error { return JSON(w, s) })
	type level struct {
		PeakBytes  *uint64 `json:"peak_bytes"`
		PeakTimeNS *int64  `json:"peak_time_ns"`
		LiveBytes  *uint64 `json:"live_bytes"`
		AllocCount *uint64 `json:"alloc_count"`
		FreeCount  *uint64 `json:"free_count"`
		AllocBytes *uint64 `json:"alloc_bytes"`
	}
	var r struct {
		Schema      *string `json:"schema"`
		LostRecords *uint64 `json:"lost_records"`
		Process     struct {
			PID     int64  `json:"pid"`
			Command string `json:"command"`
			Started string `json:"started"`
			Ended   string `json:"ended"`
		} `json:"process"`
		Devices []struct {
			Index             int    `json:"index"`
			Name              string `json:"name"`
			TotalBytes        uint64 `json:"total_bytes"`
			Driver            level  `json:"driver"`
			Framework         level  `json:"framework"`
			ReservedBytesPeak uint64 `json:"reserved_bytes_peak"`
		} `json:"devices"`
		Groups []struct {
			By, Level string
			Rows      []struct {
				Key        string  `json:"key"`
				PeakBytes  uint64  `json:"peak_bytes"`
				LiveBytes  *uint64 `json:"live_bytes"`
				AllocCount *uint64 `json:"alloc_count"`
				AllocBytes *uint64 `json:"alloc_bytes"`
			}
		} `json:"groups"`
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	if r.Schema == nil || *r.Schema != ReportSchema || r.LostRecords == nil || r.Process.PID != 4711 ||
		r.Process.Ended != "clean" ||
		r.Process.Command != "python3 train.py --steps 2" ||
		!strings.HasPrefix(r.Process.Started, "2026-09-21T14:13:20") {
		t.Errorf("heading: %+v", r)
	}
	if len(r.Devices) != 2 || r.Devices[0].Name != "Null GPU" || r.Devices[0].TotalBytes != 8<<30 ||
		r.Devices[0].ReservedBytesPeak != 384<<20 {
		t.Fatalf("devices: %+v", r.Devices)
	}
	d := r.Devices[0]
	for name, l := range map[string]level{"driver": d.Driver, "framework": d.Framework} {
		if l.PeakBytes == nil || l.PeakTimeNS == nil || l.LiveBytes == nil || l.AllocCount == nil ||
			l.FreeCount == nil || l.AllocBytes == nil {
			t.Errorf("%s lacks a field: %+v", name, l)
		}
	}
	if *d.Framework.PeakBytes != 346<<20 || *d.Framework.LiveBytes != 300<<20 || *d.Framework.AllocCount != 6 ||
		*d.Framework.FreeCount != 4 || *d.Driver.PeakBytes != 424<<20 {
		t.Errorf("device 0: framework %d at most, %d live, %d allocs, %d frees; driver %d at most",
			*d.Framework.PeakBytes, *d.Framework.LiveBytes,
			*d.Framework.AllocCount, *d.Framework.FreeCount, *d.Driver.PeakBytes)
	}
	if len(r.Groups) < 2 || r.Groups[0].Level != "framework" || r.Groups[1].Level != "driver" ||
		r.Groups[0].By != r.Groups[1].By {
		t.Fatalf("the framework's groups do not come first: %+v", r.Groups)
	}
	for _, g := range r.Groups {
		var peak uint64
		for _, row := range g.Rows {
			if row.LiveBytes == nil || row.AllocCount == nil || row.AllocBytes == nil {
				t.Errorf("%s by %s: %s lacks a field", g.Level, g.By, row.Key)
			}
			peak += row.PeakBytes
		}
		if want := map[string]uint64{"framework": 376 << 20, "driver": 552 << 20}[g.Level]; peak != want {
			t.Errorf("%s by %s adds up to %d, want %d", g.Level, g.By, peak, want)
		}
	}
}

// TestJSONListsAreNeverNull: programs may loop over every list without a check.
func TestJSONListsAreNeverNull(t *testing.T) {
	empty := &report.Summary{}
	for _, path := range goldenPaths(t) {
		g := readGolden(t, path)
		for line := range strings.Lines(g.part("json")) {
			if strings.Contains(line, "null,") || strings.HasSuffix(strings.TrimSpace(line), "null") {
				if !strings.Contains(line, `"reported": null`) {
					t.Errorf("%s: %s", path, line)
				}
			}
		}
	}
	if text := written(t, func(w io.Writer) error { return Text(w, empty, layout.Options{}) }); !strings.Contains(text,
		"unknown") {
		t.Errorf("the zero summary's report: %s", text)
	}
}

// The second line of a place with many stacks is as long as its numbers, which no golden has.
func TestPlaceKeepsToItsWidth(t *testing.T) {
	for _, width := range []int{60, 72, 80} {
		text := written(t, func(w io.Writer) error {
			p := layout.NewPage(w, layout.Options{Width: width})
			writePlace(p, &report.Site{Key: strings.Repeat("long/", 30), Bytes: 1 << 30, AllocCount: 12_345_678,
				StackCount: 123_456}, 1<<31)
			return p.Err()
		})
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("width %d: %d columns: %s", width, n, line)
			}
		}
	}
}

// Where memory grew and nothing was found that keeps it, as in a short run, the report did not say how to find it.
func TestNextFindsWhatKeeps(t *testing.T) {
	for _, c := range []struct {
		name, ended, want string
		growth            string
		kept              *report.KeptBy
	}{
		{"running", report.EndedRunning, "memtrace ctl 7 referrers", "", nil},
		{"grew", report.EndedClean, "memtrace ctl PID referrers", report.GrowthSteady, nil},
		{"grew, skipped", report.EndedClean, "memtrace ctl PID referrers", report.GrowthSteady,
			&report.KeptBy{Skipped: "busy"}},
		{"grew, found", report.EndedClean, "", report.GrowthSteady, &report.KeptBy{Holders: make([]report.Kept, 1)}},
		{"grew, garbage at the end", report.EndedClean, "memtrace ctl PID referrers", report.GrowthSteady,
			&report.KeptBy{Holders: []report.Kept{{Holder: trace.Holder{Garbage: true}}}}},
		{"did not grow", report.EndedClean, "", report.GrowthNone, nil},
	} {
		s := &report.Summary{Versions: map[string]string{"torch": "2.7.1"}, KeptBy: c.kept,
			Trend: &report.Trend{Kind: c.growth}, Notes: []string{"a note"}}
		s.Process.PID, s.Process.Ended = 7, c.ended
		got := ""
		for _, next := range nextCommands(s, layout.Options{Path: "t.bin"}) {
			if strings.Contains(next.command, "referrers") {
				got = next.command
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
