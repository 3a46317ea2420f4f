package importer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/cuda"
	"memtrace/trace"
)

// run imports a file and reads the trace that it became.
func run(t testing.TB, format *Format, data []byte) ([]trace.Event, *trace.Reader, Result, error) {
	t.Helper()
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	result, err := format.Import(w, bytes.NewReader(data), int64(len(data)), Options{})
	if err != nil {
		return nil, nil, result, err
	}
	r, err := trace.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	events := readAll(t, r)
	if len(events) != result.Events {
		t.Fatalf("%d events written, %d read", result.Events, len(events))
	}
	if kind := r.Info()[KindKey]; kind == "" || kind != result.Kind ||
		r.Info()[LacksKey] != strings.Join(result.Lacks, " ") || r.Info()[BriefKey] == "" {
		t.Fatalf("info %v, result %+v", r.Info(), result)
	}
	return events, r, result, nil
}

func sample(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// samples are the files in testdata that are recognized, and as what.
var samples = map[string]string{"adam.pickle": "torch", "all.pickle": "torch", "memory_fft.txt": "nvidia-smi",
	"two-devices.csv": "nvidia-smi", "profile.csv": "mxnet-scopes", "tags.csv": "mxnet-csv",
	"train.log": "mxnet-log", "rmm.csv": "rmm", "jax.prof": "jax",
	"nsys.sqlite": "nsys"}

func TestFilesAreRecognized(t *testing.T) {
	for file, want := range samples {
		data := sample(t, file)
		f, err := Recognize(bytes.NewReader(data), int64(len(data)))
		if err != nil || f.Name != want {
			t.Errorf("%s: %v, %v; want %s", file, f, err, want)
		}
	}
	for name, text := range map[string]string{"text": "hello\nworld\n", "numbers": "1\n2\n",
		"a trace": "MEMTRACE\x00\x01", "words, words": "a,b\nc,d\n", "zeros": strings.Repeat("\x00", 100),
		"long": strings.Repeat("x", 3<<20)} {
		if f, err := Recognize(strings.NewReader(text), int64(len(text))); !errors.Is(err, ErrForeign) {
			t.Errorf("%s is taken for %v: %v", name, f, err)
		}
	}
	if _, err := Recognize(strings.NewReader(""), 0); err == nil || err.Error() != "the file is empty" {
		t.Errorf("nothing: %v", err)
	}
}

// tags sums allocations by tag.
func tags(r *trace.Reader, events []trace.Event, level cuda.Level) map[string]uint64 {
	sums := map[string]uint64{}
	for _, e := range events {
		if e.Kind == trace.EventAlloc && e.Level == level {
			sums[r.Tables().String(e.Tag)] += e.Size
		}
	}
	return sums
}

func wantTags(t *testing.T, got, want map[string]uint64) {
	t.Helper()
	for tag, bytes := range want {
		if got[tag] != bytes {
			t.Errorf("%q: %d bytes, want %d", tag, got[tag], bytes)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d tags, want %d: %v", len(got), len(want), got)
	}
}

func says(t *testing.T, result Result, words ...string) {
	t.Helper()
	all := strings.Join(result.Lacks, "\n")
	for _, word := range words {
		if !strings.Contains(all, word) {
			t.Errorf("%q is not said in:\n%s", word, all)
		}
	}
}

// The log has what real ones have in between: other lines, records after other words on one line, a tag with blanks and
// parentheses, which the original cut, and a record that was cut.
func TestLog(t *testing.T) {
	events, r, result, err := run(t, Find("mxnet-log"), sample(t, "train.log"))
	if err != nil {
		t.Fatal(err)
	}
	wantTags(t, tags(r, events, cuda.LevelDriver), map[string]uint64{"in_arg:source_target_embed_weight": 4128,
		"forward_features:decoder_rnn_l0_t3_out": 134217760,
		"workspace:dot-inl":                      33554464, "optimizer_weight_update_fc1 (init ...)": 1056,
		"arg_grad:fc1_weight": 2097184})
	says(t, result, "no times", "Releases name no block (1 of them)", "could not be read were left out: 1")
	used := []uint64{}
	for _, e := range events {
		if e.Kind == trace.EventSample {
			used = append(used, e.Size>>20)
		}
	}
	if len(used) != 2 || used[0] != 660 || used[1] != 788 || r.Tables().Devices()[0].TotalBytes != 16160<<20 {
		t.Errorf("samples of %v MiB in use, devices %+v", used, r.Tables().Devices())
	}
}

func TestTagSizes(t *testing.T) {
	events, r, result, err := run(t, Find("mxnet-csv"), sample(t, "tags.csv"))
	if err != nil {
		t.Fatal(err)
	}
	wantTags(t, tags(r, events, cuda.LevelDriver), map[string]uint64{"in_arg:fc1_weight": 1605632,
		"arg_grad:fc1_weight": 1605632, "data_entry:fc1_oedge0": 128 << 20,
		"workspace:src/operator/nn/dropout.cc:12:foo,a.cc:99:bar": 65 << 19, "unknown:_zeros": 256 << 10})
	says(t, result, "no frees", "The last line is cut")
}

func TestScopes(t *testing.T) {
	events, r, result, err := run(t, Find("mxnet-scopes"), sample(t, "profile.csv"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{"encoder:arg_grad:A": 8388608, "encoder:in_arg:A": 8388608, `<unk>:dot "out"`: 16777216,
		"<unk>:in_arg:B": 33554432}
	wantTags(t, tags(r, events, cuda.LevelDriver), want)
	wantTags(t, tags(r, events, cuda.LevelFramework), want)
	says(t, result, "no addresses", "had handed out before: 1")
	for _, e := range events {
		switch {
		case e.Kind == trace.EventSample && (e.Device != 0 || e.Size != 33554432+536870912 || e.Allocated != e.Size):
			t.Errorf("sample %+v", e)
		case e.Level == cuda.LevelFramework &&
			e.Rest-1 != map[string]uint64{"encoder:in_arg:A": 8}[r.Tables().String(e.Tag)]:
			t.Errorf("rest of %+v", e)
		}
	}
}

func TestNvidiaSMI(t *testing.T) {
	events, _, result, err := run(t, Find("nvidia-smi"), sample(t, "memory_fft.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var live, most uint64
	var when int64
	for _, e := range events {
		if e.Kind == trace.EventFree {
			live -= e.Size
		} else if live += e.Size; live > most {
			most, when = live, e.Time
		}
	}
	if live != 3<<20 || most != 1200<<20 || when != 80e6 {
		t.Errorf("%d bytes at the end, %d at the most, after %d ns", live, most, when)
	}
	says(t, result, "whole devices", "10ms apart", "which device", "The last line is cut")
	events, r, result, err := run(t, Find("nvidia-smi"), sample(t, "two-devices.csv"))
	if err != nil {
		t.Fatal(err)
	}
	peak := map[int16]uint64{}
	held := map[int16]uint64{}
	for _, e := range events {
		if held[e.Device] += e.Size; e.Kind == trace.EventFree {
			held[e.Device] -= 2 * e.Size
		}
		peak[e.Device] = max(peak[e.Device], held[e.Device])
	}
	if peak[0] != 900<<20 || peak[1] != 70<<20 || events[len(events)-1].Time != 250e6 ||
		len(r.Tables().Devices()) != 2 {
		t.Errorf("peaks %v, last %+v, devices %+v", peak, events[len(events)-1], r.Tables().Devices())
	}
	says(t, result, "without a value were left out: 1")
}

func TestBadFilesAreRefusedInOneSentence(t *testing.T) {
	heading := "\"Attribute Name\",\"Requested Size\",\"Device\",\"Actual Size\",\"Reuse?\"\n"
	for _, c := range []struct{ format, text, want string }{
		{"mxnet-log", "hello\n", "no line says '[mem] Allocate N bytes"},
		{"mxnet-log", "[mem] Allocate 99999999999999999999 bytes GPU memory (x).\n", "line 1: \"[mem] Allocate 9"},
		{"mxnet-csv", "in_arg:a,1.5\nno size\nb,1\n", "line 2: \"no size\": a line is a tag, a comma and a size"},
		{"mxnet-csv", "a,-1\nb,1\n", "line 1: \"a,-1\": the size is negative"},
		{"mxnet-csv", "a,nan\nb,1\n", "not a number"},
		{"mxnet-csv", "a,1e300\nb,1\n", "more than any device has"},
		{"mxnet-csv", "\n\n", "no line has a tag"},
		{"mxnet-csv", strings.Repeat("x", 2<<20) + "\n", "line 1: \"more than a megabyte\""},
		{"mxnet-scopes", "a,b\n", "line 1: \"a,b\": the heading"},
		{"mxnet-scopes", heading, "holds no block"},
		{"mxnet-scopes", heading + "\"a\",\"1\"\n", "line 2: \"\\\"a\\\",\\\"1\\\"\": a row has 5 fields in quotes"},
		{"mxnet-scopes", heading + "\"a\",\"1\",\"gpu\",\"1\",\"0\"\n", "is not a number from 0 to 255"},
		{"mxnet-scopes", heading + "\"a\",\"x\",\"0\",\"1\",\"0\"\n", "numbers of bytes"},
		{"mxnet-scopes", heading + "\"nvml_amend\",\"-5\",\"0\",\"-5\",\"0\"\n", "not a number of bytes"},
		{"nvidia-smi", "memory.used [MiB]\n", "no line has a number of MiB"},
		{"nvidia-smi", "memory.used [MiB]\nmany MiB\n3 MiB\n",
			"line 2: \"many MiB\": the memory in use is not a number"},
		{"nvidia-smi", "timestamp, memory.used [MiB]\n3 MiB\n4 MiB\n", "fewer fields"},
		{"nvidia-smi", "timestamp, memory.used [MiB]\nnoon, 3 MiB\n\n", "the timestamp is not like"},
		{"torch", "cos\nsystem\n", "holds more than data"},
	} {
		_, _, _, err := run(t, Find(c.format), []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s of %q: %v; want %q", c.format, c.text[:min(len(c.text), 80)], err, c.want)
		}
	}
}

// Sizes that are possible one by one must not add up to addresses that are not.
func TestSizesAreBounded(t *testing.T) {
	_, _, _, err := run(t, Find("mxnet-csv"), []byte(strings.Repeat("a,1073741824\n", 5000)))
	if err == nil || !strings.Contains(err.Error(), "add up to more than there are addresses") {
		t.Errorf("5000 blocks of 1 PiB: %v", err)
	}
}

// fuzz tries a format on any file: it returns a trace that can be read, or an error of one sentence.
func fuzz(f *testing.F, format string) {
	f.Add([]byte("\x80\x02cos\nsystem\n(S'id'\ntR."))
	f.Add([]byte("\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces]]au."))
	for file, name := range samples {
		if name == format {
			f.Add(sample(f, file))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, _, err := run(t, Find(format), data)
		if err != nil && strings.ContainsAny(err.Error(), "\n\r") {
			t.Fatalf("%q is not one sentence", err)
		}
		if found, err := Recognize(bytes.NewReader(data), int64(len(data))); err == nil && found == nil {
			t.Fatal("neither a format nor an error")
		}
	})
}

func FuzzTorch(f *testing.F)     { fuzz(f, "torch") }
func FuzzNvidiaSMI(f *testing.F) { fuzz(f, "nvidia-smi") }
func FuzzJAX(f *testing.F)       { fuzz(f, "jax") }
func FuzzNsys(f *testing.F)      { fuzz(f, "nsys") }
func FuzzRMM(f *testing.F)       { fuzz(f, "rmm") }
func FuzzScopes(f *testing.F)    { fuzz(f, "mxnet-scopes") }
func FuzzTagSizes(f *testing.F)  { fuzz(f, "mxnet-csv") }
func FuzzMXNetLog(f *testing.F)  { fuzz(f, "mxnet-log") }
