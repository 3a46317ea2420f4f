package render

import (
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/sanitize"
	"memtrace/trace"
)

// hasField reports whether a type's JSON has a field at a path.
func hasField(t reflect.Type, path []string) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if len(path) == 0 {
		return true
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" && hasField(f.Type, path) || name == path[0] && hasField(f.Type, path[1:]) {
			return true
		}
	}
	return false
}

var indices = regexp.MustCompile(`\[\d+\]`)

// checkFinding: its kind is known, and it rests on fields that reports have.
func checkFinding(t *testing.T, f report.Finding) {
	t.Helper()
	at := slices.IndexFunc(report.FindingKinds, func(k report.FindingKind) bool { return k.ID == f.ID })
	if at < 0 || report.FindingKinds[at].Severity != f.Severity {
		t.Errorf("%s (%s) is not among finding.Kinds", f.ID, f.Severity)
	}
	if len(f.Evidence) == 0 {
		t.Errorf("%s rests on nothing", f.ID)
	}
	for _, field := range f.Evidence {
		path := strings.Split(indices.ReplaceAllString(field, ""), ".")
		if path[0] != "info" && !hasField(reflect.TypeOf(Document{}), path) {
			t.Errorf("%s rests on %s, which is no field of a report", f.ID, field)
		}
	}
}

// TestTextContainsFindings: the text contains the findings of the JSON, in the same words, and every sentence among the
// notes is a finding.
func TestTextContainsFindings(t *testing.T) {
	words := func(text string) string {
		return strings.Join(strings.Fields(regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(text, "")), " ")
	}
	seen := make(map[string]bool)
	for _, path := range goldenPaths(t) {
		g := readGolden(t, path)
		if g.part("base") != "" {
			continue
		}
		s := g.summary(t, "trace")
		s.Asked, s.At = false, nil // otherwise the requested parts replace the answer
		style := g.style
		text := written(t, func(w io.Writer) error { return Text(w, s, style) })
		style.Details = true
		text += written(t, func(w io.Writer) error { return Text(w, s, style) })
		for _, f := range Findings(s) {
			seen[f.ID] = true
			checkFinding(t, f)
			if sentence := sanitize.Text(f.Text); f.Severity != report.SeverityAdvice &&
				!strings.Contains(words(text), words(sentence)) {
				t.Errorf("%s: the text does not say %s: %s", filepath.Base(path), f.ID, sentence)
			}
		}
		if len(s.Limits) != len(s.Notes) {
			t.Errorf("%s: %d notes, %d of them findings", filepath.Base(path), len(s.Notes), len(s.Limits))
		}
	}
	if len(seen) < 15 {
		t.Errorf("only %d kinds of findings occur in testdata", len(seen))
	}
}

// TestGrowthIsAFinding: a trend is an alarm with its bytes.
func TestGrowthIsAFinding(t *testing.T) {
	s := &report.Summary{Trend: &report.Trend{Level: report.LevelFramework, Kind: report.GrowthSteady, Bytes: 3 << 20,
		BytesPerSecond: 1 << 20, FromTimeNS: 2e9, Owners: []report.TrendOwner{{Site: "train.py:7", Bytes: 3 << 20}}},
		OtherTrends: []report.Trend{{Level: "host", Kind: report.GrowthSteady, Bytes: 2 << 20, BytesPerSecond: 1 << 20,
			Owners: []report.TrendOwner{{Site: "load.py:9", Bytes: 2 << 20}}}}}
	s.Framework.PeakBytes, s.Framework.AllocCount, s.Framework.AllocBytes = 5<<20, 9, 5<<20
	list := Findings(s)
	at := slices.IndexFunc(list, func(f report.Finding) bool { return f.ID == "growth" })
	if at < 0 {
		t.Fatalf("no growth among %+v", list)
	}
	if f := list[at]; f.Severity != report.SeverityAlarm || f.Bytes != 3<<20 ||
		f.Text != "Memory grows by 1.00 MiB/s (3.00 MiB since +2.000 s). It was allocated at train.py:7." {
		t.Errorf("%+v", f)
	}
	if f := list[at+1]; f.ID != "growth" || f.Bytes != 2<<20 || !strings.HasPrefix(f.Text, "Pinned host memory grows") {
		t.Errorf("%+v", f)
	}
}

// What keeps the tensors that were there at the end is told after the growth that it explains.
func TestGrowthBeforeWhatKeepsIt(t *testing.T) {
	grows := &report.Trend{Kind: report.GrowthSteady, Level: report.LevelFramework, Bytes: 3 << 20}
	kept := report.Kept{Holder: trace.Holder{Path: "__main__.history[*]", Tensors: 3}, FreesBytes: 3 << 20}
	s := &report.Summary{Trend: grows, Framework: report.Level{PeakBytes: 9 << 20, AllocCount: 4},
		KeptBy: &report.KeptBy{Occasion: report.KeptAtEnd, Holders: []report.Kept{kept}}}
	var order []string
	for _, f := range verdictFindings(s) {
		if f.ID == "growth" || f.ID == "kept-by" {
			order = append(order, f.ID)
		}
	}
	if !slices.Equal(order, []string{"growth", "kept-by"}) {
		t.Errorf("%q of %+v", order, verdictFindings(s))
	}
}

// A run whose allocator gave memory back 40 times had 40 findings that differed by some bytes, and each said again that
// this was the null GPU. What is said again is one finding, with how often, and rests on all that say it.
func TestRepeatedAdviceIsOneFinding(t *testing.T) {
	const mib = 1 << 20
	null := report.Advice{Rule: "null-gpu", Text: "This was the null GPU."}
	event := func(mebi uint64, text string) report.OOMEvent {
		return report.OOMEvent{Advice: []report.Advice{{Rule: "recovered", FreesBytes: mebi * mib, Text: text}, null}}
	}
	s := &report.Summary{OOM: report.OOM{Events: []report.OOMEvent{event(3, "gave 3"), event(5, "gave 5"),
		event(4, "gave 4")}}}
	list := adviceFindings(s)
	if len(list) != 2 || list[0].Bytes != 5*mib || !strings.HasPrefix(list[0].Text,
		"3 times the allocator gave memory back to the device, at most 5.00 MiB at once, and then got what it wanted. ") ||
		list[1].Text != null.Text || !slices.Equal(list[1].Evidence,
		[]string{"oom.events[0].advice[1]", "oom.events[1].advice[1]", "oom.events[2].advice[1]"}) {
		t.Errorf("%+v", list)
	}
	s.OOM.Events = s.OOM.Events[:1]
	if list := adviceFindings(s); len(list) != 2 || list[0].Text != "gave 3" {
		t.Errorf("%+v", list)
	}
}
