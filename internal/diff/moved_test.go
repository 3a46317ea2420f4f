package diff

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

func groupOf(by string, keys ...string) *report.Group {
	g := &report.Group{By: by, Level: "driver"}
	for i, key := range keys {
		g.Rows = append(g.Rows, report.Row{Key: key, PeakBytes: uint64(i + 1)})
	}
	return g
}

// A line that is inserted above others moves them: it is the one that is new, and none of the others grew. Where equal
// lines explain the bytes as well, they are paired.
func TestDiffFindsInsertedLines(t *testing.T) {
	type lines map[string]uint64
	summary := func(held lines) *report.Summary {
		g := report.Group{By: "site", Level: "driver"}
		for key, bytes := range held {
			g.Rows = append(g.Rows, report.Row{Key: key, PeakBytes: bytes})
		}
		return &report.Summary{Groups: []report.Group{g}}
	}
	for _, test := range []struct {
		name          string
		base, changed lines
		grew          lines
	}{
		{"one above the others", lines{"a.py:16 f": 32, "a.py:17 f": 24, "a.py:18 f": 108, "a.py:19 f": 12},
			lines{"a.py:16 f": 32, "a.py:17 f": 24, "a.py:18 f": 25, "a.py:19 f": 108, "a.py:20 f": 12},
			lines{"a.py:18 f": 25}},
		{"one of which grew", lines{"a.py:1 f": 100, "a.py:2 f": 50},
			lines{"a.py:1 f": 7, "a.py:2 f": 101, "a.py:3 f": 50},
			lines{"a.py:1 f": 7, "a.py:2 f": 1}},
		{"below the others", lines{"a.py:1 f": 5, "a.py:2 f": 6}, lines{"a.py:1 f": 5, "a.py:2 f": 6, "a.py:3 f": 9},
			lines{"a.py:3 f": 9}},
		{"in place", lines{"a.py:1 f": 5, "a.py:2 f": 6}, lines{"a.py:1 f": 5, "a.py:2 f": 9, "a.py:3 f": 1},
			lines{"a.py:2 f": 3, "a.py:3 f": 1}},
		{"after a comment", lines{"a.py:1 f": 5, "a.py:2 f": 6}, lines{"a.py:4 f": 5, "a.py:5 f": 2, "a.py:6 f": 6},
			lines{"a.py:5 f": 2}},
	} {
		grew := lines{}
		for _, r := range New(summary(test.base), summary(test.changed)).Groups[0].Rows {
			if r.PeakBytes.Delta != 0 {
				grew[r.Key] = uint64(r.PeakBytes.Delta)
			}
		}
		if !maps.Equal(grew, test.grew) {
			t.Errorf("%s: %v grew, want %v", test.name, grew, test.grew)
		}
	}
}

func TestDiffMatchesMovedLines(t *testing.T) {
	for _, test := range []struct {
		name          string
		by            string
		base, changed []string
		want          []string // "base -> new" or a single key, sorted
		note          string
	}{
		{"nothing moved", "site", []string{"a.py:1 f", "a.py:2 f"}, []string{"a.py:2 f", "a.py:1 f"},
			[]string{"a.py:1 f", "a.py:2 f"}, ""},
		{"all moved", "site", []string{"a.py:9 f", "a.py:10 f"}, []string{"a.py:10 f", "a.py:11 f"},
			[]string{"a.py:10 f -> a.py:11 f", "a.py:9 f -> a.py:10 f"},
			"2 sites moved to another line"},
		{"one is new", "site", []string{"a.py:1 f"}, []string{"a.py:1 f", "a.py:5 f"}, []string{"a.py:1 f", "a.py:5 f"},
			""},
		{"one is gone", "site", []string{"a.py:1 f", "a.py:5 f"}, []string{"a.py:5 f"},
			[]string{"a.py:1 f", "a.py:5 f"}, ""},
		{"nobody can tell", "site", []string{"a.py:1 f", "a.py:2 f"}, []string{"a.py:7 f"}, []string{"a.py f"},
			"1 function has other places"},
		{"other functions are other places", "site", []string{"a.py:1 f"}, []string{"a.py:2 g"},
			[]string{"a.py:1 f", "a.py:2 g"}, ""},
		{"by line within the file", "line", []string{"a.py:1", "b.py:1"}, []string{"a.py:3", "b.py:1"},
			[]string{"a.py:1 -> a.py:3", "b.py:1"}, "1 site moved"},
		{"files have no lines", "file", []string{"a.py"}, []string{"b.py"}, []string{"a.py", "b.py"}, ""},
	} {
		base, changed := &report.Summary{Groups: []report.Group{*groupOf(test.by, test.base...)}},
			&report.Summary{Groups: []report.Group{*groupOf(test.by, test.changed...)}}
		d := New(base, changed)
		var got []string
		var growth int64
		for _, r := range d.Groups[0].Rows {
			if r.BaseKey != "" {
				r.Key = r.BaseKey + " -> " + r.Key
			}
			got = append(got, r.Key)
			growth += r.PeakBytes.Delta
		}
		slices.Sort(got)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		if want := int64(len(test.changed)*(len(test.changed)+1)/2 - len(test.base)*(len(test.base)+1)/2); growth !=
			want {
			t.Errorf("%s: the rows grew by %d, want %d", test.name, growth, want)
		}
		if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, test.note) || test.note == "" &&
			(strings.Contains(notes, "moved") || strings.Contains(notes, "place")) {
			t.Errorf("%s: notes %q, want %q", test.name, notes, test.note)
		}
	}
}
