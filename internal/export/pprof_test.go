package export

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"

	"memtrace/analyzer"
	"memtrace/internal/symbol"
)

func writePprof(t *testing.T, set *analyzer.StackSet, o Options) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Pprof(&out, set, o); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func readPprof(t *testing.T, data []byte) *profile.Profile {
	t.Helper()
	p, err := profile.ParseData(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPprofSums(t *testing.T) {
	set := trainingSet()
	p := readPprof(t, writePprof(t, set, trainingOptions(Peak)))
	if p.DefaultSampleType != "peak_space" || p.TimeNanos == 0 || p.DurationNanos != 8e9 {
		t.Errorf("default %s, time %d, duration %d", p.DefaultSampleType, p.TimeNanos, p.DurationNanos)
	}
	for _, want := range []struct {
		name string
		sum  uint64
	}{{"peak_space", Peak.Sum(set)}, {"inuse_space", Live.Sum(set)}, {"alloc_space", Allocated.Sum(set)},
		{"alloc_objects", Count.Sum(set)}} {
		i, err := p.SampleIndexByName(want.name)
		if err != nil {
			t.Fatal(err)
		}
		var sum int64
		for _, s := range p.Sample {
			sum += s.Value[i]
		}
		if uint64(sum) != want.sum {
			t.Errorf("%s: %d, want %d", want.name, sum, want.sum)
		}
	}
	if p.Mapping[0].File != python || p.Mapping[1].BuildID != "c0ffee" {
		t.Errorf("mappings %v %v", p.Mapping[0], p.Mapping[1])
	}
}

// TestPprofNamesTheProgram: pprof uses the first mapping as the program, even if it is in no stack.
func TestPprofNamesTheProgram(t *testing.T) {
	set := trainingSet()
	for _, exe := range []string{python, "/opt/tool"} {
		set.Process.Exe = exe
		path := filepath.Join(t.TempDir(), "profile.pb.gz")
		if err := os.WriteFile(path, writePprof(t, set, trainingOptions(Peak)), 0o600); err != nil {
			t.Fatal(err)
		}
		if top := runPprof(t, path, "-top", "-sample_index=peak_space"); !strings.HasPrefix(top, "File: "+
			filepath.Base(exe)+"\n") {
			t.Errorf("%s: %s", exe, top)
		}
	}
}

// TestPprofLocations: what was inlined shares a location with what it was inlined into, and equal frames share
// everything.
func TestPprofLocations(t *testing.T) {
	inner, outer := native("inner", 0x10), native("outer", 0x10)
	inner.Inlined, inner.Line, outer.Line = true, 5, 9
	frames := []symbol.Frame{inner, outer, native("caller", 0x20), py("main", script, 3)}
	other := []symbol.Frame{inner, outer, native("caller", 0x20), py("main", script, 4)}
	set := &analyzer.StackSet{Rows: []analyzer.StackRow{{Frames: frames, PeakBytes: 1}, {Frames: other, PeakBytes: 2},
		{Frames: other, FreeCount: 3}}}
	p := readPprof(t, writePprof(t, set, trainingOptions(Peak)))
	if len(p.Location) != 4 || len(p.Function) != 4 || len(p.Sample) != 2 {
		t.Fatalf("%d locations, %d functions, %d samples", len(p.Location), len(p.Function), len(p.Sample))
	}
	leaf := p.Sample[0].Location[0]
	if len(leaf.Line) != 2 || leaf.Line[0].Function.Name != "inner" || leaf.Line[0].Line != 5 ||
		leaf.Line[1].Function.Name != "outer" {
		t.Errorf("leaf %+v", leaf)
	}
	if leaf.Mapping == nil || leaf.Address != leaf.Mapping.Start+0x10 {
		t.Errorf("leaf at %#x of %+v", leaf.Address, leaf.Mapping)
	}
	if main := p.Sample[0].Location[2]; main.Mapping != nil || main.Line[0].Function.Filename != script ||
		main.Line[0].Line != 3 {
		t.Errorf("outermost %+v", main)
	}
}

func TestPprofOfNothing(t *testing.T) {
	if p := readPprof(t, writePprof(t, &analyzer.StackSet{}, Options{})); len(p.Sample) != 0 ||
		len(p.SampleType) != len(pprofTypes) {
		t.Errorf("%v", p)
	}
}

func TestPprofOfManyStacks(t *testing.T) {
	data := writePprof(t, manyStacks(), Options{})
	if p := readPprof(t, data); len(p.Sample) != manyRows {
		t.Errorf("%d samples", len(p.Sample))
	}
	if len(data) > 320*manyRows {
		t.Errorf("%d bytes", len(data))
	}
}

// pprofFlags is a command line for pprof's own driver.
type pprofFlags struct {
	*flag.FlagSet
	args []string
}

func (f *pprofFlags) StringList(name, def, usage string) *[]*string {
	return &[]*string{f.FlagSet.String(name, def, usage)}
}
func (f *pprofFlags) ExtraUsage() string   { return "" }
func (f *pprofFlags) AddExtraUsage(string) {}
func (f *pprofFlags) Parse(func()) []string {
	if err := f.FlagSet.Parse(f.args); err != nil {
		panic(err)
	}
	return f.Args()
}

// pprofUI collects pprof's messages.
type pprofUI struct{ output strings.Builder }

func (u *pprofUI) ReadLine(string) (string, error)     { return "", io.EOF }
func (u *pprofUI) Print(args ...any)                   { fmt.Fprint(&u.output, args...) }
func (u *pprofUI) PrintErr(args ...any)                { fmt.Fprint(&u.output, args...) }
func (u *pprofUI) IsTerminal() bool                    { return false }
func (u *pprofUI) WantBrowser() bool                   { return false }
func (u *pprofUI) SetAutoComplete(func(string) string) {}

// runPprof gives a file to the real pprof.
func runPprof(t *testing.T, path string, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	flags := &pprofFlags{flag.NewFlagSet("pprof", flag.ContinueOnError), append(args, "-output", out, path)}
	ui := &pprofUI{}
	if err := driver.PProf(&driver.Options{Flagset: flags, UI: ui}); err != nil {
		t.Fatalf("pprof %v: %v\n%s", args, err, &ui.output)
	}
	if output := ui.output.String(); strings.Contains(strings.ToLower(output), "warning") ||
		strings.Contains(output, "symboliz") {
		t.Errorf("pprof %v: %s", args, output)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPprofReadsIt runs pprof itself.
func TestPprofReadsIt(t *testing.T) {
	set := trainingSet()
	path := filepath.Join(t.TempDir(), "profile.pb.gz")
	if err := os.WriteFile(path, writePprof(t, set, trainingOptions(Peak)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PPROF_TMPDIR", t.TempDir())
	top := runPprof(t, path, "-top", "-unit=B")
	if want := fmt.Sprintf("of %dB total", Peak.Sum(set)); !strings.Contains(top, want) ||
		!strings.Contains(top, "Type: peak_space") {
		t.Errorf("no %q in\n%s", want, top)
	}
	main := regexp.MustCompile(`(?m)^ +0 +0% +\S+ (\d+)B +[0-9.]+% +main$`)
	var below uint64
	for _, r := range set.Rows {
		for _, f := range r.Frames {
			if f.Function == "main" {
				below += r.PeakBytes
			}
		}
	}
	if found := main.FindStringSubmatch(top); found == nil || found[1] != fmt.Sprint(below) {
		t.Errorf("main should have %d:\n%s", below, top)
	}
	if raw := runPprof(t, path, "-raw"); !strings.Contains(raw,
		"alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes peak_space/bytes") ||
		!strings.Contains(raw, script+":41") {
		t.Errorf("%s", raw)
	}
	if peek := runPprof(t, path, "-peek", "GPT2.forward"); !strings.Contains(peek, "train_step") ||
		!strings.Contains(peek, "Block.forward") {
		t.Errorf("%s", peek)
	}
	if !strings.Contains(top, "<module>") || !strings.Contains(top, "gelu_out<float>") {
		t.Errorf("pprof changes names:\n%s", top)
	}
	if lines := runPprof(t, path, "-lines", "-top"); !strings.Contains(lines, "train_step "+script+":75") {
		t.Errorf("%s", lines)
	}
	// The last one: pprof keeps the sample index from one call to the next.
	if inuse := runPprof(t, path, "-top", "-unit=B", "-sample_index=inuse_space"); !strings.Contains(inuse,
		fmt.Sprintf("of %dB total", Live.Sum(set))) {
		t.Errorf("%s", inuse)
	}
}

// TestPprofLabels: rows of one stack are separated by their labels, and unknown values have none.
func TestPprofLabels(t *testing.T) {
	set := trainingSet()
	set.Labels = []string{"category", "module", "tag"}
	first := set.Rows[0]
	first.Labels = []string{"Parameters", "model.h.0", "(untagged)"}
	second := first
	second.Labels = []string{"Feature maps", "(no module)", "step \"1\""}
	set.Rows = []analyzer.StackRow{first, second, set.Rows[1]}
	var got []string
	for _, s := range readPprof(t, writePprof(t, set, Options{})).Sample {
		got = append(got, fmt.Sprint(s.Label, s.Value[4] > 0))
	}
	want := []string{"map[category:[Parameters] module:[model.h.0]] true",
		"map[category:[Feature maps] tag:[step \"1\"]] true", "map[] true"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
