package metrics

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// hostileTexts are values that programs may choose for what becomes a label.
var hostileTexts = []string{
	`plain`, `"`, `\`, `\n`, "\n", "a\nmemtrace_forged_bytes 1\n# EOF\n", `"} 1`, "\x00", "\x1b[2J", "\xff\xfe",
	"\u202etxt", "日本", "{a=\"b\"}", "\\\"", "tab\there", "\r\n", "others", " ",
	strings.Repeat("long/", 200) + "end.py:7", strings.Repeat("é", 500),
}

func hostileFamilies() []*Family {
	gauge := &Family{Name: "hostile_bytes", Unit: "bytes", Help: "A \"quoted\" \\ text\nof two lines."}
	counter := &Family{Name: "hostile_events", Type: Counter, Help: "Counted."}
	about := &Family{Name: "hostile", Type: Info, Help: "About it."}
	for i, text := range hostileTexts {
		gauge.Add(float64(i), Label{"owner", text}, Label{"pid", "1"})
		counter.Add(float64(i)+0.5, Label{"owner", text})
		about.Add(1, Label{"owner", text})
	}
	for i, v := range []float64{0, -1, 1 << 52, 1 << 62, 1e300, 5e-324, 1795504804.189, math.Inf(1), math.Inf(-1)} {
		gauge.Add(v, Label{"value", string(rune('a' + i))})
	}
	return []*Family{gauge, counter, about, {Name: "hostile_nothing", Help: "Without samples."}}
}

// parse reads a classic text with Prometheus's own parser.
func parse(t *testing.T, text []byte) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return families
}

func value(m *dto.Metric) float64 {
	if m.Counter != nil {
		return m.Counter.GetValue()
	}
	return m.Gauge.GetValue()
}

// What is written in the classic format is what Prometheus's parser reads: every name, label and value, and no more
// than that.
func TestClassicIsRead(t *testing.T) {
	var text bytes.Buffer
	families := hostileFamilies()
	if err := Write(&text, families, Classic); err != nil {
		t.Fatal(err)
	}
	read := parse(t, text.Bytes())
	if len(read) != 3 {
		t.Errorf("%d families were read:\n%s", len(read), text.Bytes())
	}
	kinds := map[Type]dto.MetricType{Gauge: dto.MetricType_GAUGE, Counter: dto.MetricType_COUNTER,
		Info: dto.MetricType_GAUGE}
	for _, f := range families[:3] {
		got := read[f.sampleName()]
		if got == nil || got.GetType() != kinds[f.Type] || got.GetHelp() != f.Help ||
			len(got.Metric) != len(f.Samples) {
			t.Fatalf("%s became %v", f.Name, got)
		}
		for i, s := range f.Samples {
			m := got.Metric[i]
			if value(m) != s.Value || len(m.Label) != len(s.Labels) {
				t.Errorf("%v became %v", s, m)
				continue
			}
			for j, l := range s.Labels {
				if m.Label[j].GetName() != l.Name || m.Label[j].GetValue() != l.Value {
					t.Errorf("%v became %v", l, m.Label[j])
				}
			}
		}
	}
}

func FuzzClassicIsRead(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text, 1.5)
	}
	f.Fuzz(func(t *testing.T, text string, v float64) {
		family := &Family{Name: "fuzzed", Help: text + "."}
		family.Add(v, Label{"owner", text})
		var out bytes.Buffer
		if err := Write(&out, []*Family{family}, Classic); err != nil {
			t.Fatal(err)
		}
		read := parse(t, out.Bytes())["fuzzed"]
		if len(read.GetMetric()) != 1 || value(read.Metric[0]) != v && !math.IsNaN(v) {
			t.Errorf("%q, %v became %v", text, v, read)
		}
	})
}

// The other format differs in names of families, units and its end.
func TestOpenMetrics(t *testing.T) {
	bytesFamily := &Family{Name: "x_bytes", Unit: "bytes", Help: `Say "x".`, Type: Counter}
	bytesFamily.Add(3, Label{"a", `q"\`})
	info := &Family{Name: "y", Help: "Y.", Type: Info}
	info.Add(1)
	var text strings.Builder
	if err := Write(&text, []*Family{bytesFamily, info}, OpenMetrics); err != nil {
		t.Fatal(err)
	}
	const want = `# HELP x_bytes Say \"x\".
# TYPE x_bytes counter
# UNIT x_bytes bytes
x_bytes_total{a="q\"\\"} 3
# HELP y Y.
# TYPE y info
y_info 1
# EOF
`
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
}

func TestClean(t *testing.T) {
	for _, text := range hostileTexts {
		got := Clean(text)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x00\x1b\t") ||
			utf8.RuneCountInString(got) > maxLabelRunes || Clean(got) != got {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := Clean(strings.Repeat("long/", 200) + "end.py:7"); !strings.HasPrefix(got, "long/") ||
		!strings.HasSuffix(got, "/end.py:7") {
		t.Errorf("ends were lost: %q", got)
	}
}

// Two series with the same labels would make a server refuse all of them.
func TestSameLabels(t *testing.T) {
	f := &Family{Name: "a", Help: "A."}
	f.Add(1, Label{"x", "1"}, Label{"y", ""})
	f.Add(2, Label{"x", "1"})
	f.Add(4, Label{"x", "1"}, Label{"y", "2"})
	if len(f.Samples) != 2 || f.Samples[0].Value != 3 || f.Samples[1].Value != 4 {
		t.Errorf("%v", f.Samples)
	}
}

func TestCheck(t *testing.T) {
	labelled := func(f Family, labels ...Label) Family { f.Add(-1, labels...); return f }
	for _, f := range []Family{
		{Name: "Upper", Help: "x"}, {Name: "a-b", Help: "x"}, {Name: "a_total", Help: "x", Type: Counter},
		{Name: "a_info", Help: "x"}, {Name: "a", Help: "x", Unit: "bytes"}, {Name: "a"},
		labelled(Family{Name: "a", Help: "x"}, Label{"a.b", "1"}), labelled(Family{Name: "a", Help: "x"},
			Label{"a", "1"}, Label{"a", "2"}), labelled(Family{Name: "a", Help: "x", Type: Counter}),
	} {
		if err := Write(&bytes.Buffer{}, []*Family{&f}, Classic); err == nil {
			t.Errorf("%+v was written", f)
		}
	}
	twice := []*Family{{Name: "a", Help: "x"}, {Name: "a", Help: "y"}}
	if Check(twice) == nil {
		t.Error("a name may stand there twice")
	}
}
