package render

import (
	"bytes"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// compareFile compares a text with a file of testdata, or writes it there.
func compareFile(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "views", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update rewrites it):\n%s", name, firstDifference(got, string(want)))
	}
}

// TestGoldenViews renders every view as text and as CSV.
func TestGoldenViews(t *testing.T) {
	steady, leaky, long := trainingCase(12, 0), trainingCase(12, 3*mib), trainingCase(1000, 0)
	none := trainingCase(1, 0)
	none.Training.IterationsBy, none.Training.Iterated, none.Training.Highest = report.IterationsByNothing, "", 0
	none.Training.Iterations[0].Ended = false
	options := layout.Options{Path: "memtrace.python3.4711.bin", Depth: layout.DefaultDepth}
	with := func(change func(o *layout.Options)) layout.Options {
		o := options
		change(&o)
		return o
	}
	cases := []struct {
		name, view string
		of         *report.Summary
		style      layout.Options
	}{
		{"modules", "modules", steady, options},
		{"modules-deep", "modules", steady, with(func(o *layout.Options) { o.Depth, o.Width = 1, 60 })},
		{"modules-all", "modules", steady, with(func(o *layout.Options) { o.Rows, o.Depth, o.ASCII = -1, -1, true })},
		{"parameters", "parameters", steady, options},
		{"parameters-mib", "parameters", steady, with(func(o *layout.Options) { o.Unit, o.Rows = layout.UnitMiB, -1 })},
		{"iterations", "iterations", leaky, options},
		{"iterations-all", "iterations", steady, with(func(o *layout.Options) { o.Rows, o.Width = -1, 140 })},
		{"iterations-long", "iterations", long, options},
		{"iterations-none", "iterations", none, options},
		{"cross", "cross", steady, options},
		{"cross-narrow", "cross", steady, with(func(o *layout.Options) {
			o.Width, o.Rows, o.ASCII, o.Unfolded = 60, 3, true, true
		})},
		{"timeline", "timeline", steady, options},
		{"timeline-narrow", "timeline", steady, with(func(o *layout.Options) {
			o.Width, o.Rows, o.ASCII = 60, 12, true
		})},
		{"timeline-wide", "timeline", steady, with(func(o *layout.Options) { o.Width, o.Rows = 150, -1 })},
		{"tbd", "tbd", steady, with(func(o *layout.Options) { o.Period, o.Unit = 4, layout.UnitMB })},
		{"tbd-epoch", "tbd", steady, with(func(o *layout.Options) { o.Epoch, o.Period, o.Unit = 2, 6, layout.UnitB })},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			view := FindView(c.view)
			compareFile(t, c.name+".txt", written(t, func(w io.Writer) error { return view.Text(w, c.of, c.style) }))
			compareFile(t, c.name+".csv", written(t, func(w io.Writer) error { return view.CSV(w, c.of, c.style) }))
		})
	}
}

// TestViewsAsCSV reads every CSV back: names with commas, quotes and line breaks are preserved, and the numbers are the
// summary's.
func TestViewsAsCSV(t *testing.T) {
	s := trainingCase(12, 0)
	for _, view := range Views() {
		for _, unit := range []layout.Unit{layout.UnitB, layout.UnitMiB, layout.UnitMB} {
			text := written(t, func(w io.Writer) error { return view.CSV(w, s, layout.Options{Unit: unit}) })
			if comment := strings.HasPrefix(text, "# "); comment == (unit == layout.UnitMB) {
				t.Errorf("%s in %s: comment %v", view.Name, unit, comment)
			}
			r := csv.NewReader(strings.NewReader(text))
			r.Comment = '#'
			rows, err := r.ReadAll() // refuses rows of different lengths
			if err != nil || len(rows) < 2 {
				t.Errorf("%s in %s: %d rows, %v", view.Name, unit, len(rows), err)
			}
		}
	}
	rows := readCSV(t, "parameters", s)
	last := rows[len(rows)-3]
	if last[0] != "head,\"odd\"\nname" || last[2] != "3076" || last[3] != "3584" {
		t.Errorf("the parameter of the odd name: %q", last)
	}
	rows = readCSV(t, "iterations", s)
	if got, want := strings.Join(rows[0][:7], " "),
		"epoch iteration peak_cached current_cached total_feature_map_usage total_weight_usage embed.weight"; got !=
		want {
		t.Errorf("columns %q, want %q", got, want)
	}
	if n, width := len(s.Training.Parameters)-2, len(rows[0]); width != 8+2*n ||
		rows[0][6+n] != "total_layer_weight_gradient_usage" || rows[0][7+n] != "embed.weight_grad" ||
		rows[0][width-1] != "intermediate_gradients" {
		t.Errorf("columns %q", rows[0])
	}
}

func readCSV(t *testing.T, view string, s *report.Summary) [][]string {
	t.Helper()
	var b bytes.Buffer
	if err := FindView(view).CSV(&b, s, layout.Options{}); err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(&b)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestUnitsOfViews checks the rounding: halves are rounded to even.
func TestUnitsOfViews(t *testing.T) {
	for _, c := range []struct {
		unit         layout.Unit
		bytes        uint64
		exact, unit0 string
	}{
		{layout.UnitMB, 499_999, "0", "0"}, {layout.UnitMB, 500_000, "0", "0"}, {layout.UnitMB, 500_001, "1", "1"},
		{layout.UnitMB, 1_500_000, "2", "2"}, {layout.UnitMB, 2_500_000, "2", "2"},
		{layout.UnitMB, 127_330_308, "127", "127"},
		{layout.UnitMiB, 512, "0.000", "0"}, {layout.UnitMiB, mib / 2, "0.500", "0"},
		{layout.UnitMiB, 3 * mib / 2, "1.500", "2"}, {layout.UnitMiB, mib - 1, "1.000", "1"},
		{layout.UnitMiB, 1<<64 - 1, "17592186044416.000", "17592186044416"},
		{layout.UnitB, 1<<64 - 1, "18446744073709551615", "18446744073709551615"},
	} {
		if exact, whole := c.unit.Exact(c.bytes), c.unit.Whole(c.bytes); exact != c.exact || whole != c.unit0 {
			t.Errorf("%d in %s: %q and %q, want %q and %q", c.bytes, c.unit, exact, whole, c.exact, c.unit0)
		}
	}
	if _, err := layout.ParseUnit("GB"); err == nil {
		t.Error("GB is accepted")
	}
}

// TestImportedTracesHaveNoIterations: the output reports what an imported trace lacks, and does not suggest it.
func TestImportedTracesHaveNoIterations(t *testing.T) {
	s := trainingCase(1, 0)
	s.Training = nil
	for _, o := range []layout.Options{{}, {Epoch: 1}, {Period: 3}} {
		if why := NothingSelected(s, o); why != "" {
			t.Errorf("%q", why)
		}
	}
	for i := range views {
		v := &views[i]
		var b bytes.Buffer
		if err := v.Text(&b, s, layout.Options{}); (err != nil) != !v.any {
			t.Errorf("%s: %v", v.Name, err)
		}
		for range v.Rows(s) {
		}
	}
}

// TestMissingNames checks the explanations of missing names.
func TestMissingNames(t *testing.T) {
	s := trainingCase(1, 0)
	s.Training.Parameters, s.Training.Modules = nil, nil
	for _, c := range []struct{ state, want string }{{"", "MEMTRACE_ADAPTERS"}, {"on", "reported no model"},
		{"off: the script failed", "could not read them from PyTorch (off: the script failed)"}} {
		s.Training.Adapters = map[string]string{"torch": c.state}
		for _, name := range []string{"modules", "parameters"} {
			if why := FindView(name).Missing(s); !strings.Contains(why, c.want) {
				t.Errorf("%s, adapter %q: %q", name, c.state, why)
			}
		}
	}
	s.Training.Adapters, s.Versions = nil, nil
	if why := FindView("modules").Missing(s); !strings.Contains(why, "neither PyTorch nor MXNet") {
		t.Errorf("without a framework: %q", why)
	}
	s.Framework, s.Driver = report.Level{}, report.Level{}
	if why := FindView("modules").Missing(s); !strings.Contains(why, "no CUDA memory call") {
		t.Errorf("without memory: %q", why)
	}
	s.Training.Parameters = caseParameters()
	if why := FindView("modules").Missing(s); !strings.Contains(why, "--view parameters") {
		t.Errorf("with parameters alone, as under MXNet: %q", why)
	}
	if err := FindView("modules").Text(io.Discard, s, layout.Options{}); err == nil {
		t.Error("a view without anything to show is written")
	}
	if why := FindView("iterations").Missing(s); why != "" {
		t.Errorf("iterations need no names: %q", why)
	}
}

// TestPickIterations keeps both ends and the highest one, and fills the rows.
func TestPickIterations(t *testing.T) {
	for _, c := range []struct{ n, highest, limit, want int }{{1, 0, 12, 1}, {12, 5, 12, 12}, {13, 5, 12, 12},
		{100_000, 777, 12, 12}, {100_000, 777, 40, 40}, {5, 2, 1, 1}, {50, 7, 1 << 62, 50}} {
		tr := &report.Training{Iterations: make([]report.Iteration, c.n), Highest: c.highest}
		list := pickIterations(tr, c.limit)
		if len(list) != c.want {
			t.Errorf("%+v: %d rows: %v", c, len(list), list)
		}
		seen := make(map[int]bool)
		for _, i := range list {
			seen[i] = true
		}
		if !seen[c.highest] {
			t.Errorf("%+v: the highest is not there: %v", c, list)
		}
		if c.limit >= 12 && (!seen[0] || !seen[c.n-1] || !seen[min(2, c.n-1)] || !seen[max(c.n-3, 0)]) {
			t.Errorf("%+v: the ends are not there: %v", c, list)
		}
		if c.n == 100_000 && (!seen[9] || !seen[99] || !seen[999] || !seen[9999]) {
			t.Errorf("%+v: powers are not there: %v", c, list)
		}
	}
}
