package render

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	moments "memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/internal/render/layout"
	"memtrace/internal/rules"
	"memtrace/internal/rules/rulefile"
	"memtrace/internal/textform"
	"memtrace/trace"
)

var update = flag.Bool("update", false, "rewrite the reports in testdata")

// golden is a case in testdata: traces in text form, options, and the reports that they must give.
type golden struct {
	path    string
	archive *txtar.Archive
	count   analyzer.Options
	style   layout.Options
	cut     int      // bytes to cut off the end of the trace
	fields  []string // of the JSON that the case is about; all if there are none
}

func readGolden(t *testing.T, path string) *golden {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g := &golden{path: path, archive: archive, style: layout.Options{Path: "memtrace.python3.4711.bin"}}
	for line := range strings.Lines(g.part("options")) {
		if err := g.option(strings.TrimSpace(line)); err != nil {
			t.Fatalf("option %q: %v", line, err)
		}
	}
	return g
}

func (g *golden) option(line string) (err error) {
	name, value, _ := strings.Cut(line, " ")
	switch name {
	case "at":
		g.count.At, err = moments.Parse(value)
	case "device":
		var n int64
		n, err = strconv.ParseInt(value, 10, 16)
		g.count.Devices = append(g.count.Devices, int16(n))
	case "by":
		g.count.Groupings = strings.Split(value, ",")
	case "group": // a name and a part of the archive that holds its rules
		name, part, _ := strings.Cut(value, " ")
		var set *rules.Set
		set, err = rulefile.Parse(part, []byte(g.part(part)))
		g.count.Groupings = append(g.count.Groupings, name)
		g.count.RuleSets = append(g.count.RuleSets, profile.RuleGrouping{Name: name, Rules: set})
	case "entries":
		g.count.Entries, err = strconv.Atoi(value)
	case "expected":
		g.count.Expected, err = rules.ParseSize(value)
	case "tag":
		g.count.Tag = value
	case "width":
		g.style.Width, err = strconv.Atoi(value)
	case "rows":
		g.style.Rows, err = strconv.Atoi(value)
	case "sites":
		g.count.Sites = true
		g.count.Symbols.NoFiles = true
	case "full-stacks":
		g.count.FullStacks, g.style.FullStacks = true, true
	case "focus":
		g.count.Focus, err = regexp.Compile(value)
	case "ascii":
		g.style.ASCII = true
	case "color":
		g.style.Color = true
	case "cut":
		g.cut, err = strconv.Atoi(value)
	case "json":
		g.fields = append(g.fields, strings.Fields(value)...)
	default:
		err = errors.New("no such option")
	}
	return err
}

func (g *golden) part(name string) string {
	for _, f := range g.archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// check compares a report with its part of the archive, or updates it there. Escape sequences are written as \e.
func (g *golden) check(t *testing.T, name, got string) {
	t.Helper()
	got = strings.ReplaceAll(got, "\x1b", `\e`)
	if !*update {
		if want := g.part(name); got != want {
			t.Errorf("%s differs (go test -update rewrites it):\n%s", name, firstDifference(got, want))
		}
		return
	}
	for i := range g.archive.Files {
		if g.archive.Files[i].Name == name {
			g.archive.Files[i].Data = []byte(got)
			return
		}
	}
	g.archive.Files = append(g.archive.Files, txtar.File{Name: name, Data: []byte(got)})
}

func (g *golden) save(t *testing.T) {
	if !*update {
		return
	}
	if err := os.WriteFile(g.path, txtar.Format(g.archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d\n got: %s\nwant: %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// summary encodes a trace from its text form and summarises it.
func (g *golden) summary(t *testing.T, part string) *report.Summary {
	t.Helper()
	var file bytes.Buffer
	if err := textform.Encode(&file, strings.NewReader(g.part(part))); err != nil {
		t.Fatalf("%s: %v", part, err)
	}
	raw := file.Bytes()[:file.Len()-g.cut]
	r, err := trace.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := analyzer.Summarize(r, g.count)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func written(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func goldenPaths(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden reports: %v", err)
	}
	return paths
}

// TestGoldenReports renders every case in testdata.
func TestGoldenReports(t *testing.T) {
	for _, path := range goldenPaths(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			g := readGolden(t, path)
			if g.part("base") != "" {
				d := diff.New(g.summary(t, "base"), g.summary(t, "new"))
				g.check(t, "text", written(t, func(w io.Writer) error { return DiffText(w, d, g.style) }))
				g.checkJSON(t, written(t, func(w io.Writer) error { return DiffJSON(w, d) }))
			} else {
				s := g.summary(t, "trace")
				text := written(t, func(w io.Writer) error { return Text(w, s, g.style) })
				g.check(t, "text", text)
				style := g.style
				style.Details = true
				if details := written(t, func(w io.Writer) error { return Text(w, s, style) }); details != text {
					g.check(t, "details", details)
				}
				g.checkJSON(t, written(t, func(w io.Writer) error { return JSON(w, s) }))
			}
			g.save(t)
		})
	}
}
