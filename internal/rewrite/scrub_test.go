package rewrite

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"memtrace/internal/textform"
	"memtrace/trace"
)

// recorded is a trace of a user whose every name has "acme" in it, wherever a trace can hold a name; %s is replaced by
// an OOM report.
const recorded = `trace version=1
info key="clock.source" value="tsc"
info key="drain" value="off: cannot write /home/acme/out/acme.bin: no space left"
info key="env.ACME_TOKEN" value="acme-env"
info key="framework.torch" value="2.7.1"
info key="later.fact" value="acme-later"
info key="nvml" value="on"
info key="nvml.share" value="the device does not say who uses what"
info key="nvtx" value="taken by libacmenvtx.so"
info key="process.argv" value="/home/acme/bin/python3.11\x00/home/acme/acme_train.py\x00--acme-secret\x00-c"
info key="process.command" value="/home/acme/bin/python3.11 /home/acme/acme_train.py --acme-secret -c"
info key="process.cwd" value="/home/acme"
info key="process.exe" value="/home/acme/bin/python3.11"
info key="process.host" value="acme-host"
info key="process.pid" value="4711"
info key="python.eval" value="7f00-7fff"
info key="python.selftest" value="passed: 6 frames"
info key="python.stacks" value="on"
string id=1 value="acme_model.encoder.acme_layer.3.attn"
string id=2 value="acme loaded"
string id=3 value="period"
module id=4 start=0x1000 end=0x2000 base=0x1000 path="/home/acme/bin/python3.11" buildid="ab01" size=11 mtime=101
module id=5 start=0x2000 end=0x3000 base=0x2000 path="/home/acme/venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so" buildid="ab02" size=12 mtime=102
module id=6 start=0x3000 end=0x4000 base=0x3000 path="/home/acme/build/libacmekernels.so.2" buildid="acbe03" size=13 mtime=103
module id=7 start=0x4000 end=0x5000 base=0x4000 path="/usr/lib/x86_64-linux-gnu/libc.so.6" buildid="ab04"
module id=8 start=0x5000 end=0x6000 base=0x5000 path="/usr/local/lib/libacmesite.so" buildid="acbe05"
module id=9 start=0x6000 end=0x7000 base=0x6000 path="[vdso]" buildid=""
stack id=10 frames=0x1234,0x3456 end=interpreter
stack id=11 frames=0x5678
code id=12 name="acme_step" qualname="AcmeTrainer.acme_step.<locals>.<lambda>" file="/home/acme/proj/acme_pkg/acme_train.py" line=10 table=locations lines=80007a modulecall=1
code id=13 name="_call_impl" qualname="Module._call_impl" file="/home/acme/venv/lib/python3.11/site-packages/torch/nn/modules/module.py" line=1700 table=locations lines=8000
code id=14 name="__init__" qualname="" file="<string>" line=1 table=lnotab lines=0001
code id=15 name="run" qualname="Thread.run" file="/usr/lib/python3.11/threading.py" line=900 table=locations lines=8000
code id=16 name="acme_cell" qualname="acme_cell" file="<ipython-input-3-acacac>" line=1 table=none
code id=17 name="acme_call" qualname="acme_call" file="/tmp/torchinductor_acme/ab/acmecode.py" line=1 table=none
code id=18 name="acme_attrs" qualname="acme_attrs" file="<attrs generated init acme.Thing>" line=1 table=none
code id=22 name="acme_own" qualname="acme_own" file="/home/acme/lib/python/acme_own.py" line=1 table=none
pystack id=19 frames=12+34*,13+8@0x7f1000,14+2,15+4 end=depth
symbol module=5 address=0x2345 function="at::native::add(at::Tensor const&)" file="/home/acme/pytorch/aten/src/ATen/native/Add.cpp" line=5 start=0x2300
symbol module=0 address=0x9999 function="py::acme_step:/home/acme/acme_train.py" file=""
symbol module=6 address=0x3456 function="acme::inner()" file="/home/acme/src/acme.cu" line=7
symbol module=6 address=0x3456 outer=1 function="acme::kernel<int>()" file="/home/acme/src/acme_kernel.cu" line=70 start=0x3400
thread id=20 tid=4711 name="acme_main"
thread id=21 tid=4712 name="acme_main"
device index=0 name="NVIDIA H100" uuid="GPU-acme-1" total=85899345920
alloc seq=1 time=1200 thread=20 level=framework api=cuMemAlloc_v2 mem=device addr=0x7f5a40000000 size=512 stack=10 pystack=19 tag=1
mark seq=2 time=1300 thread=20 name=2
flush watermark=3
sample seq=3 time=1400 thread=20 size=1000 allocated=500 name=3
free seq=4 time=1500 thread=21 level=framework api=cuMemFree_v2 mem=device addr=0x7f5a40000000 stack=11
flush watermark=5
oomreport json=%q
end reason="cannot write /home/acme/acme.bin" lost_records=1 lost_rings=2 lost_dict=3 events=4 time=2000
`

const oomReport = `{"process":{"pid":4711,"command":"/home/acme/python3 acme.py","args":["/home/acme/python3","acme.py"],"exe":"/home/acme/python3","host":"acme-host"},` +
	`"versions":{"torch":"2.7.1"},"null_gpu":false,"devices":[{"index":0,"name":"NVIDIA H100","uuid":"GPU-acme-1","total_bytes":85899345920}],` +
	`"event":{"seq":1,"time_ns":1200,"outcome":"failed","level":"framework","memory":"device","requested_bytes":18446744073709551615,"tag":"acme_model.encoder","thread":"acme_main (4711)",` +
	`"call":"cuMemAlloc_v2","library":"libacmekernels.so.2","caller":"libacmekernels.so.2+0x456","ledgers":[` +
	`{"by":"tag","rows":[{"owner":"blocks","key":"acme_model.encoder","bytes":7},{"owner":"blocks","key":"(untagged)","bytes":1},{"owner":"blocks","key":"(12 more)","bytes":2},{"owner":"slack","key":"PyTorch","bytes":3},{"owner":"outside","key":"libacmekernels.so.2","bytes":4}]},` +
	`{"by":"library","rows":[{"owner":"blocks","key":"libtorch_cpu.so","bytes":8},{"owner":"outside","key":"libacmekernels.so.2","label":"acme label","bytes":9}]},` +
	`{"by":"api","rows":[{"owner":"blocks","key":"cuMemAlloc_v2","bytes":10},{"owner":"blocks","key":"acmeAlloc","bytes":11}]},` +
	`{"by":"site","rows":[{"owner":"blocks","key":"acme_step at acme_train.py:12","bytes":12}]}],` +
	`"since":{"what":"mark acme loaded","bytes":13,"rows":[]},"advice":[{"rule":"fragmentation","frees_bytes":14,"text":"try acme in /home/acme"}],` +
	`"later":"acme","sidecar_file":"memtrace.acme.4711.bin.oom.1.txt"}}`

func record(t *testing.T, text string) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := textform.Encode(&file, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func recordedFile(t *testing.T) []byte { return record(t, fmt.Sprintf(recorded, oomReport)) }

// edited returns what an edit makes of a trace.
func edited(t *testing.T, file []byte, edit trace.Editor) []byte {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := trace.NewWriter(&out, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Copy(w, r, edit); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func text(t *testing.T, file []byte) string {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := textform.Write(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// expanded returns all bytes of a file, of compressed sections what they hold.
func expanded(t *testing.T, file []byte) []byte {
	t.Helper()
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	all := bytes.Clone(file[:16])
	for at := 16; at < len(file); {
		length, raw := int(binary.LittleEndian.Uint32(file[at+4:])), binary.LittleEndian.Uint32(file[at+12:])
		payload := file[at+16 : at+16+length]
		if raw != 0 {
			if payload, err = dec.DecodeAll(payload, nil); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, payload...)
		at += 16 + length
	}
	return all
}

func anonymizer(t *testing.T, strip Strip, key string) *Anonymizer {
	t.Helper()
	a, err := NewAnonymizer(strip, []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

const key = "a secret of enough bytes"

// Nothing that is the user's is left, in no section, whatever is kept.
func TestNoNameIsLeft(t *testing.T) {
	file := recordedFile(t)
	if n := bytes.Count(bytes.ToLower(expanded(t, file)), []byte("acme")); n < 60 {
		t.Fatalf("the trace to be edited has the name only %d times", n)
	}
	for _, strip := range []Strip{{}, {KeepSymbols: true, KeepLines: true}} {
		got := edited(t, file, anonymizer(t, strip, key))
		all := bytes.ToLower(expanded(t, got))
		for _, secret := range []string{"acme", "acbe", "acacac", "/home"} {
			if at := bytes.Index(all, []byte(secret)); at >= 0 {
				t.Errorf("with %+v, %q is left: %q", strip, secret, all[max(0, at-40):min(len(all), at+40)])
			}
		}
		for _, public := range []string{"python3.11", "site-packages/torch/lib/libtorch_cpu.so", "/usr/lib/libc.so.6",
			"[vdso]", "ab02", "Module._call_impl",
			"site-packages/torch/nn/modules/module.py", "lib/python3.11/threading.py", "Thread.run", "period",
			"NVIDIA H100", "2.7.1", "nvml", "__init__", "<string>", "passed: 6 frames"} {
			if !bytes.Contains(expanded(t, got), []byte(public)) {
				t.Errorf("%q is gone", public)
			}
		}
		if strip.KeepSymbols && !bytes.Contains(expanded(t, got), []byte("py::x")) {
			t.Error("nothing says any more that compiled code stands for a Python function")
		}
	}
}

// Strip keeps names and takes away where they came from.
func TestStrip(t *testing.T) {
	edit := &Strip{}
	got := text(t, edited(t, recordedFile(t), edit))
	for _, gone := range []string{"/home", "ACME_TOKEN", "acme-env", "acme-later", "--acme-secret", "process.cwd",
		"acme-host", "x86_64-linux-gnu", "lines=", "symbol ", "/tmp", "torchinductor_acme"} {
		if strings.Contains(got, gone) {
			t.Errorf("%q is left in\n%s", gone, got)
		}
	}
	for _, line := range []string{
		`info key="drain" value="off: cannot write acme.bin: no space left"`,
		`info key="process.argv" value="python3.11\x00-c"`,
		`info key="process.command" value="python3.11 -c"`,
		`info key="process.exe" value="python3.11"`,
		`string id=1 value="acme_model.encoder.acme_layer.3.attn"`,
		`module id=6 start=0x3000 end=0x4000 base=0x3000 path="libacmekernels.so.2" buildid="acbe03" size=13 mtime=103`,
		`module id=5 start=0x2000 end=0x3000 base=0x2000 path="site-packages/torch/lib/libtorch_cpu.so" buildid="ab02" size=12 mtime=102`,
		`module id=7 start=0x4000 end=0x5000 base=0x4000 path="/usr/lib/libc.so.6" buildid="ab04"`,
		`code id=12 name="acme_step" qualname="AcmeTrainer.acme_step.<locals>.<lambda>" file="acme_pkg/acme_train.py" line=10 table=none modulecall=1`,
		`code id=13 name="_call_impl" qualname="Module._call_impl" file="site-packages/torch/nn/modules/module.py" line=1700 table=none`,
		`code id=17 name="acme_call" qualname="acme_call" file="torchinductor_/ab/acmecode.py" line=1 table=none`,
		`thread id=20 tid=4711 name="acme_main"`,
		`end reason="cannot write acme.bin" lost_records=1 lost_rings=2 lost_dict=3 events=4 time=2000`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("want the line\n%s\nin\n%s", line, got)
		}
	}
	for what, want := range map[string]int{CountSymbols: 3, CountLines: 4, CountReports: 1} {
		if edit.Counts[what] != want {
			t.Errorf("%s: %d, want %d", what, edit.Counts[what], want)
		}
	}
}

// numbersOf returns a text without anything quoted and without the parts that are to be left out.
func numbersOf(text string) (lines []string) {
	quoted := regexp.MustCompile(`"(\\.|[^"\\])*"`)
	size := regexp.MustCompile(` (size|mtime)=[0-9]+$| (size|mtime)=[0-9]+ mtime=[0-9]+$`)
	for line := range strings.Lines(text) {
		switch word, _, _ := strings.Cut(line, " "); word {
		case "info", "oomreport":
			continue
		case "module":
			line = size.ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
		}
		lines = append(lines, strings.TrimSuffix(quoted.ReplaceAllString(line, `""`), "\n"))
	}
	return lines
}

// Events, stacks, watermarks and all numbers are those of the original.
func TestNumbersStay(t *testing.T) {
	file := recordedFile(t)
	want := numbersOf(text(t, file))
	for name, edit := range map[string]trace.Editor{
		"strip":     &Strip{KeepSymbols: true, KeepLines: true},
		"anonymize": anonymizer(t, Strip{KeepSymbols: true, KeepLines: true}, key),
	} {
		got := numbersOf(text(t, edited(t, file, edit)))
		if !slices.Equal(got, want) {
			t.Errorf("%s gives\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// With a key, a name has one pseudonym in all files and places; without one, no two files have anything in common.
func TestPseudonymsAreStable(t *testing.T) {
	file := recordedFile(t)
	first, again := edited(t, file, anonymizer(t, Strip{}, key)), edited(t, file, anonymizer(t, Strip{}, key))
	if !bytes.Equal(first, again) {
		t.Error("the same key gives another file")
	}
	other := text(t, edited(t, file, anonymizer(t, Strip{}, key+"!")))
	var random [2]string
	for i := range random {
		a, err := NewAnonymizer(Strip{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		random[i] = text(t, edited(t, file, a))
	}
	name := regexp.MustCompile(`thread id=20 tid=4711 name="(x[a-z2-7]{10})"`)
	seen := make(map[string]bool)
	for _, dump := range []string{text(t, first), other, random[0], random[1]} {
		m := name.FindStringSubmatch(dump)
		if m == nil || seen[m[1]] {
			t.Fatalf("thread's name %q, seen before: %v", m, seen)
		}
		seen[m[1]] = true
		if !strings.Contains(dump, `thread id=21 tid=4712 name="`+m[1]+`"`) || !strings.Contains(dump, m[1]+` (4711)`) {
			t.Errorf("%s is not the same everywhere in\n%s", m[1], dump)
		}
	}
	if _, err := NewAnonymizer(Strip{}, []byte("short")); err == nil {
		t.Error("a key of five bytes is taken")
	}
}

// Names that differ keep differing, those that belong together keep that, and the shapes that reports go by stay.
func TestShapesOfPseudonyms(t *testing.T) {
	got := text(t, edited(t, recordedFile(t), anonymizer(t, Strip{KeepLines: true}, key)))
	const p = `x[a-z2-7]{10}`
	for _, pattern := range []string{
		`string id=1 value="` + p + `\.` + p + `\.` + p + `\.3\.` + p + `"`,
		`string id=2 value="` + p + `"`,
		`module id=6 start=0x3000 end=0x4000 base=0x3000 path="` + p + `\.so\.2" buildid=""\n`,
		`module id=8 start=0x5000 end=0x6000 base=0x5000 path="/usr/local/lib/` + p + `\.so" buildid=""\n`,
		`code id=12 name="(` + p + `)" qualname="` + p + `\.` + p + `\.<locals>\.<lambda>" file="` + p + `/` + p +
			`\.py" line=10 table=locations lines=80007a modulecall=1`,
		`code id=16 name="` + p + `" qualname="` + p + `" file="<ipython-input-3>"`,
		`code id=17 name="` + p + `" qualname="` + p + `" file="torchinductor_/` + p + `/` + p + `\.py"`,
		`code id=18 name="` + p + `" qualname="` + p + `" file="<` + p + `>"`,
		`device index=0 name="NVIDIA H100" uuid="GPU-` + p + `"`,
		`info key="drain" value="off: \(removed\)"`,
		`info key="process.argv" value="python3.11\\x00-c"`,
	} {
		if !regexp.MustCompile(pattern).MatchString(got) {
			t.Errorf("nothing matches %s in\n%s", pattern, got)
		}
	}
	if strings.Contains(got, "end reason=\"cannot") {
		t.Error("the reason of the end is left")
	}
}

// The report of running out of memory keeps its numbers and the words that programs go by.
func TestReportOfOOM(t *testing.T) {
	a := anonymizer(t, Strip{}, key)
	a.Module(trace.Module{ID: 1, Path: "/usr/lib/libtorch_cpu.so"})
	got, keep := a.OOM(oomReport)
	if !keep {
		t.Fatal("the report is left out")
	}
	const p = `x[a-z2-7]{10}`
	for _, pattern := range []string{`"requested_bytes":18446744073709551615`, `"call":"cuMemAlloc_v2"`,
		`"outcome":"failed"`, `"bytes":7,"key":"` + p + `\.` + p + `"`, `"key":"\(untagged\)"`,
		`"key":"\(12 more\)"`, `"key":"libtorch_cpu\.so"`, `"key":"PyTorch"`, `"bytes":4,"key":"` + p + `\.so\.2"`,
		`"key":"` + p + `\.so\.2"`, `"caller":"` + p + `\.so\.2\+0x456"`, `"thread":"` + p + ` \(4711\)"`,
		`"bytes":10,"key":"cuMemAlloc_v2"`, `"bytes":11,"key":"` + p + `"`, `"bytes":12,"key":"` + p + `"`,
		`"what":"mark ` + p + `"`, `"text":"\(removed\)"`, `"frees_bytes":14`,
		`"args":\["python3"\]`, `"command":"python3"`, `"host":""`, `"torch":"2\.7\.1"`, `"later":"` + p + `"`} {
		if !regexp.MustCompile(pattern).MatchString(got) {
			t.Errorf("nothing matches %s in %s", pattern, got)
		}
	}
	if strings.Contains(got, "sidecar") || strings.Contains(got, "label") {
		t.Errorf("a file's name or a label is left in %s", got)
	}
	for _, wrong := range []string{"", "{", `{"a":1}{"b":2}`, "acme"} {
		if text, keep := a.OOM(wrong); keep {
			t.Errorf("%q becomes %q", wrong, text)
		}
	}
}

// A cut trace gives what precedes the cut, without an end of its own.
func TestCutTrace(t *testing.T) {
	file := recordedFile(t)
	got := text(t, edited(t, file[:len(file)-5], &Strip{}))
	if !strings.Contains(got, "free seq=4 ") || strings.Contains(got, "\nend ") {
		t.Errorf("the copy of a cut trace is\n%s", got)
	}
}

// Two names never share a pseudonym, even where their first bits agree.
func TestPseudonymsDiffer(t *testing.T) {
	p, err := newPseudonyms([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	a := p.of("a")
	delete(p.names, "a")
	if again := p.of("a"); again == a || !strings.HasPrefix(again, a) {
		t.Errorf("%q is taken, and still comes out as %q", a, again)
	}
	for i := range 100000 {
		p.of(fmt.Sprint(i))
	}
	if len(slices.Compact(slices.Sorted(maps.Values(p.names)))) != len(p.names) {
		t.Error("names share pseudonyms")
	}
	if p.of("") != "" {
		t.Error("nothing has a pseudonym")
	}
}
