package check

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"memtrace/internal/render"
	"memtrace/internal/render/layout"
)

// evil is what a tag may be called.
const evil = "\x1b]0;pwned\x07|`x`|\\|</failure>]]>&amp;\u202e\r\nforged: line\n```\n# title\n@everyone [a](http://b) ::error::%0A<script>\xff"

// evilOutcome has it in every text.
func evilOutcome() *Outcome {
	owner := &Owner{By: evil, Name: evil}
	figure := &Figure{Amount{1, Bytes}}
	o := newOutcome([]Result{
		{Trace: evil, Kind: KindMax, Gate: evil, Status: Failed, Text: evil, Owner: owner, Module: evil, Site: evil,
			File: "/src/" + evil, Line: 7, Limit: figure, Value: figure, Unit: Bytes},
		{Trace: evil, Kind: KindAssert, Gate: evil, Status: Broken, Text: evil},
		{Trace: "other", Kind: KindAssert, Gate: evil, Status: Passed, Base: figure}})
	o.Budget, o.Run = evil, evil
	return o
}

func written(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHostileNames: no name of a trace controls a terminal, makes a line of its own, or leaves its place in a table, an
// element or an annotation.
func TestHostileNames(t *testing.T) {
	o := evilOutcome()
	texts := map[string]string{
		"text":     written(t, func(w io.Writer) error { return Text(w, o, layout.Options{}) }),
		"markdown": written(t, func(w io.Writer) error { return Markdown(w, o) }),
		"github":   written(t, func(w io.Writer) error { return Annotations(w, o, "/src") }),
		"junit":    written(t, func(w io.Writer) error { return JUnit(w, o) }),
		"sarif":    written(t, func(w io.Writer) error { return SARIF(w, o, "/src") }),
	}
	for name, text := range texts {
		i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) && r != '\ufe0f' })
		if i >= 0 {
			t.Errorf("%s: %q", name, text[max(0, i-20):i+10])
		}
		if regexp.MustCompile(`(?m)^(forged|# title|@everyone)`).MatchString(text) {
			t.Errorf("%s: a line of the trace's own:\n%s", name, text)
		}
	}
	for line := range strings.Lines(texts["markdown"]) {
		if strings.HasPrefix(line, "|") && strings.Count(line, "|") != 7 {
			t.Errorf("a cell leaves its row: %s", line)
		}
		if strings.HasPrefix(line, "```") && !strings.HasPrefix(line, "````") {
			t.Errorf("a fence of the trace's own: %s", line)
		}
	}
	lines := strings.Split(strings.TrimSpace(texts["github"]), "\n")
	if len(lines) != 2 || strings.Count(lines[0], "::") < 2 {
		t.Errorf("annotations: %q", lines)
	}
	for _, line := range lines {
		if !regexp.MustCompile(`^::error (file=[^:,]*,line=7,)?title=[^:,]*::`).MatchString(line) {
			t.Errorf("an annotation's properties: %s", line)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(texts["junit"])); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("junit: %v", err)
		}
		if start, ok := token.(xml.StartElement); ok && !strings.Contains("testsuites testsuite testcase failure error",
			start.Name.Local) {
			t.Errorf("an element of the trace's own: %s", start.Name.Local)
		}
	}
	asJSON := written(t, func(w io.Writer) error { return render.WriteJSON(w, o) })
	if !json.Valid([]byte(texts["sarif"])) || !json.Valid([]byte(asJSON)) {
		t.Error("not JSON")
	}
}

// TestFailuresHaveTheirPlace: whatever a gate is about, a failure that comes from a line of the program has its module,
// its place and the file of that. A gate on that very place had none.
func TestFailuresHaveTheirPlace(t *testing.T) {
	load, serve := "me/train.py:50 load", "me/train.py:10 serve"
	for gate, want := range map[string][2]string{
		"max peak=1MiB":                      {"model.layers.0.mlp", serve},
		"max requested=1MiB":                 {"model.layers.0.mlp", serve},
		"max tag:weights=1MiB":               {"model.layers.0.mlp", load},
		"max category:param=1MiB":            {"model.layers.0.mlp", load},
		"max module:model.layers.0.mlp=1MiB": {"model.layers.0.mlp", load},
		"max module:model*=1MiB":             {"model.layers.0.mlp", load},
		"max site:me/train.py:50=1MiB":       {"model.layers.0.mlp", load},
		"max operator:aten::mm=1MiB":         {"", serve},
	} {
		line := map[string]int{load: 50, serve: 10}[want[1]]
		for _, at := range []string{"", "peak"} {
			r := checked(t, gate, story{kv: 100, rank: -1, at: at}.trace(t))
			if r.Module != want[0] || r.Site != want[1] || r.File != "/home/me/train.py" || r.Line != line {
				t.Errorf("%s at %q: %q, %q, %s:%d: %s", gate, at, r.Module, r.Site, r.File, r.Line, r.Text)
			}
		}
	}
}

// TestPartsOfOthers: a baseline does not say what an owner had in a module, so that the growth of the module is that of
// all that it has, and is called so: the sentence attributed all of it to the owner.
func TestPartsOfOthers(t *testing.T) {
	g, err := ParseMax("tag:kv_cache=1MiB")
	if err != nil {
		t.Fatal(err)
	}
	held := func(bytes, all uint64) string {
		trace := server.trace(t)
		owner := trace.largestPart("site", []part{{"me/train.py:10 serve", bytes, all}},
			must(NewBaseline("b", []*Trace{story{kv: 90, rank: -1}.trace(t)}, []Gate{g})).Runs[0].summary("train.py"))
		return trace.fill(&Result{Base: &Figure{}}, []Owner{owner})
	}
	if got, want := held(100*mib, 100*mib), ": by site me/train.py:10 serve (+10.0 MiB)."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := held(60*mib, 100*mib), ": by site me/train.py:10 serve (+10.0 MiB in all)."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOwnersThatTheBaselineLacks: of an owner that no gate named when the baseline was written, it is not known what it
// held; the sentence is that without a baseline. It had all that the place holds, as if it
// were the owner's.
func TestOwnersThatTheBaselineLacks(t *testing.T) {
	b := must(NewBaseline("b", []*Trace{server.trace(t)}, nil))
	g := must(ParseMax("category:param=1MiB"))
	now := story{kv: 100, rank: -1, unasked: 8}
	with := (&Plan{Gates: []Gate{g}, Baseline: b}).Check([]*Trace{now.trace(t)}).Results[0]
	without := (&Plan{Gates: []Gate{g}}).Check([]*Trace{now.trace(t)}).Results[0]
	if !reflect.DeepEqual(with, without) || !strings.Contains(with.Text, "by site me/train.py:50 load (60.0 MiB)") {
		t.Errorf("with a baseline %+v\nwithout %+v", with, without)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// TestSARIFHasLocations: GitHub refuses a file of which one result has no location, with all others. A failure of no
// line of the sources is at the budget, or else at the trace.
func TestSARIFHasLocations(t *testing.T) {
	results := []Result{{Trace: "t.bin", Kind: KindMax, Gate: "peak", Status: Failed, File: "/src/a.py", Line: 7},
		{Trace: "t.bin", Kind: KindMax, Gate: "pinned", Status: Failed},
		{Trace: "t.bin", Kind: KindMax, Gate: "peak", Status: Failed, File: "/usr/lib/x.py", Line: 3},
		{Kind: KindMax, Gate: "rank-spread", Status: Broken}}
	for budget, want := range map[string]string{"/src/ci/b.toml": "a.py:7 ci/b.toml:1 ci/b.toml:1 ci/b.toml:1",
		"": "a.py:7 t.bin:1 t.bin:1 memtrace.toml:1"} {
		o := newOutcome(results)
		o.Budget = budget
		var file struct {
			Runs []struct {
				Results []struct {
					Locations []struct {
						PhysicalLocation struct {
							ArtifactLocation struct{ URI string }
							Region           struct{ StartLine int }
						}
					}
				}
			}
		}
		text := written(t, func(w io.Writer) error { return SARIF(w, o, "/src") })
		if err := json.Unmarshal([]byte(text), &file); err != nil {
			t.Fatal(err)
		}
		var places []string
		for _, r := range file.Runs[0].Results {
			for _, l := range r.Locations {
				p := l.PhysicalLocation
				places = append(places, fmt.Sprintf("%s:%d", p.ArtifactLocation.URI, p.Region.StartLine))
			}
		}
		if got := strings.Join(places, " "); got != want {
			t.Errorf("budget %q: %s, want %s", budget, got, want)
		}
	}
}

// TestSourceFiles: annotations name files of the sources only, from their folder.
func TestSourceFiles(t *testing.T) {
	for path, want := range map[string]string{"/src/a/b.py": "a/b.py", "/usr/lib/x.py": "", "b.py": "b.py", "": "",
		"/src/../etc/passwd": "", "/srcs/a.py": ""} {
		if got := sourceFile(path, "/src"); got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
}

// TestNoise: runs that differ by more than a gate allows show it, with what would hold.
func TestNoise(t *testing.T) {
	traces := []*Trace{server.trace(t), story{kv: 104, rank: -1}.trace(t)} // peaks of 160 and 164 MiB: 2.5%
	read := func(list ...string) (gates []Gate) {
		for _, text := range list {
			g, err := gate(t, text)
			if err != nil {
				t.Fatal(err)
			}
			gates = append(gates, g)
		}
		return gates
	}
	n, err := Learn(read("max peak=164MiB", "max peak=168MiB", "compare peak", "compare pinned",
		"assert no-finding=alarm"), traces, false)
	if err != nil {
		t.Fatal(err)
	}
	var tight []bool
	for _, g := range n.Gates {
		tight = append(tight, g.Tight)
	}
	if want := []bool{true, false, true, false}; !reflect.DeepEqual(tight, want) {
		t.Errorf("%v, want %v: %+v", tight, want, n.Gates)
	}
	if text := n.Gates[2].Text; text != "peak +2% is too tight to hold: runs that do the same differ by 2.5%; at least 2.5% is needed" {
		t.Error(text)
	}
	text := written(t, func(w io.Writer) error { return NoiseText(w, n, layout.Options{}) })
	if !strings.Contains(text, "2 gates are too tight to hold.") {
		t.Error(text)
	}
	for _, wrong := range []struct {
		traces []*Trace
		gates  []Gate
		says   string
	}{
		{traces[:1], read("max peak=1GiB"), "several runs"},
		{append(traces[:1:1], story{kv: 1, rank: -1, program: "x.py"}.trace(t)), read("max peak=1GiB"),
			"another program"},
		{append(traces[:1:1], story{kv: 1, rank: -1, cut: true}.trace(t)), read("max peak=1GiB"), "not complete"},
		{traces, read("max tag:x=1GiB"), "no such tag"},
		{traces, read("assert no-finding=alarm"), "no gate has a limit"},
	} {
		if _, err := Learn(wrong.gates, wrong.traces, false); err == nil || !strings.Contains(err.Error(), wrong.says) {
			t.Errorf("%v, want %s", err, wrong.says)
		}
	}
}

// TestNoiseSaysWhatHolds: the limit that is needed was rounded down, so that it did not hold as it was said.
func TestNoiseSaysWhatHolds(t *testing.T) {
	for bytes, says := range map[float64]string{1536: "1.50 KiB", 1537: "1.51 KiB", 5165*mib + 1: "5.05 GiB",
		1<<20 + 1: "1.01 MiB", 1023.9 * 1024: "1023.9 KiB", 1023.92 * 1024: "1.00 MiB", 513: "513 B", 0: "0 B"} {
		for _, unit := range []string{Bytes, BytesPerStep, BytesPerSec} {
			text := Amount{bytes, unit}.roundedUp()
			if limit, err := parseRate(text); err != nil || limit.Value < bytes || !strings.HasPrefix(text, says) {
				t.Errorf("of %v %s at least %s is needed: %v; want %s", bytes, unit, text, err, says)
			}
		}
	}
	run := server.trace(t)
	run.Summary.Framework.PeakBytes = 5165*mib + 1
	g, err := ParseMax("peak=1GiB")
	if err != nil {
		t.Fatal(err)
	}
	n, err := Learn([]Gate{g}, []*Trace{run, run}, false)
	if err != nil || !strings.HasSuffix(n.Gates[0].Text, "differ by 0 B; at least 5.05 GiB is needed") {
		t.Errorf("%+v, %v", n, err)
	}
}

// TestNoiseOfReserved: in ten runs that do the same, the allocator holds up to a tenth more. What is allocated does not
// differ, so that gates on it hold without any tolerance; a gate on what is held is refused with that reason.
func TestNoiseOfReserved(t *testing.T) {
	var traces []*Trace
	for run := range 10 {
		traces = append(traces, story{kv: 100, rank: -1, reserve: 1000 + 100*run/9}.trace(t))
	}
	var gates []Gate
	for _, text := range []string{"peak=160MiB", "requested=160MiB", "tag:kv_cache=100MiB", "category:param=60MiB",
		"library:libnccl=40MiB", "pinned=16MiB"} {
		g, err := ParseMax(text)
		if err != nil {
			t.Fatal(err)
		}
		compared, err := ParseCompare(g.Text, Amount{0, Percent})
		if err != nil {
			t.Fatal(err)
		}
		gates = append(gates, g, compared)
	}
	n, err := Learn(gates, traces, false)
	if err != nil {
		t.Fatal(err)
	}
	if n.TooTight() > 0 || len(n.Gates) != len(gates) || n.Runs != 10 {
		t.Errorf("%+v", n)
	}
	if n.ReservedPercent == nil || n.ReservedPercent.Value != 10 {
		t.Errorf("reserved differs by %v", n.ReservedPercent)
	}
	text := written(t, func(w io.Writer) error { return NoiseText(w, n, layout.Options{}) })
	if !strings.Contains(text, "differs by 10%; no gate compares it") {
		t.Error(text)
	}
	for _, refused := range []string{"reserved=2GiB", "library:libc10_cuda=2GiB", "driver=2GiB"} {
		reason := ""
		if g, err := ParseMax(refused); err != nil {
			reason = err.Error()
		} else if _, err := Learn([]Gate{g}, traces, false); err != nil {
			reason = err.Error()
		}
		if !strings.Contains(reason, "may differ by a tenth between runs that do the same; use peak") {
			t.Errorf("%s: %q", refused, reason)
		}
	}
}

// TestReport: a JSON report answers what it has, and refuses the rest.
func TestReport(t *testing.T) {
	traced := server.trace(t)
	text, err := json.Marshal(document{"memtrace.report/1", traced.Findings, traced.Summary})
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseReport("r.json", text)
	if err != nil {
		t.Fatal(err)
	}
	for gate, want := range map[string]string{"max peak=160MiB": Passed, "max category:param=1MiB": Broken,
		"assert no-driver-alloc-after=step:3": Broken, "assert no-finding=alarm": Passed} {
		if got := checked(t, gate, r); got.Status != want {
			t.Errorf("%s: %+v", gate, got)
		}
	}
	at := story{kv: 100, rank: -1, at: "peak"}.trace(t)
	if text, err = json.Marshal(document{"memtrace.report/1", at.Findings, at.Summary}); err != nil {
		t.Fatal(err)
	}
	if r, err = ParseReport("r.json", text); err != nil {
		t.Fatal(err)
	}
	if got := checked(t, "max tag:kv_cache=99MiB", r); got.Status != Failed {
		t.Errorf("%+v", got)
	}
	for _, wrong := range []string{"[]", "{", `{"schema":"memtrace.brief/1"}`, "null"} {
		if _, err := ParseReport("r.json", []byte(wrong)); err == nil {
			t.Errorf("%q is a report", wrong)
		}
	}
}

// TestFieldsAreDocumented: docs/ci.md has every field of the JSON output, every gate and every condition.
func TestFieldsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	wanted := []string{Schema, BaselineSchema, NoiseSchema}
	for _, of := range []reflect.Type{reflect.TypeFor[Outcome](), reflect.TypeFor[Result](), reflect.TypeFor[Owner](),
		reflect.TypeFor[Noise](), reflect.TypeFor[NoiseGate]()} {
		for field := range of.Fields() {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
				wanted = append(wanted, name)
			}
		}
	}
	for _, k := range subjectKinds {
		wanted = append(wanted, k.name)
	}
	for _, name := range AssertNames() {
		wanted = append(wanted, strings.TrimSuffix(name, "="))
	}
	for _, name := range wanted {
		if !regexp.MustCompile("`" + regexp.QuoteMeta(name) + "[`=:]").Match(text) {
			t.Errorf("docs/ci.md has no %q", name)
		}
	}
}
