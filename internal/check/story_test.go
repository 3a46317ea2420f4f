package check

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/internal/rules/rulefile"
	"memtrace/internal/textform"
	"memtrace/trace"
)

const mib = 1 << 20

// story is a recorded run of a server under PyTorch: kv MiB under the tag kv_cache, 60 MiB of weights, NCCL and pinned
// memory beside the allocator, three steps, and a sleep in which the cache is freed.
type story struct {
	kv      int
	rank    int    // -1: none
	program string // train.py by default
	device  string
	status  int
	tag     string // kv_cache by default
	plain   bool   // without the framework's blocks
	cut     bool   // without its end
	silent  bool   // PyTorch took part and reported nothing
	grows   int    // steps that each keep one MiB more
	still   int    // steps that keep nothing
	unasked int    // MiB of one more block, of which PyTorch did not report the request
	early   int    // MiB under the tag early that are freed before anything else is allocated
	reserve int    // MiB that PyTorch's allocator holds; 0: 1024
	second  int    // kv of another rank, which traces adds; 0: none
	world   int    // ranks that the launcher started; 0: it did not say
	job     string // of Slurm
	started int    // seconds since 1970; 0: not recorded
	path    string // t.bin by default
	nullGPU bool
	pins    bool   // 8 MiB of host memory after the third step
	at      string // the moment that the summary is about
	from    string // where it begins
}

func or(text, standard string) string {
	if text == "" {
		return standard
	}
	return text
}

func (s story) held() int {
	if s.reserve == 0 {
		return 1024
	}
	return s.reserve
}

func (s story) text() string {
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	add(`trace version=1`)
	add(`info key="process.pid" value="4711"`)
	add(`info key="process.command" value="python %[1]s"`, or(s.program, "train.py"))
	add(`info key="process.argv" value="python\x00%[1]s"`, or(s.program, "train.py"))
	add(`info key="process.exit_status" value="%d"`, s.status)
	if s.nullGPU {
		add(`info key="nullgpu" value="1"`)
	}
	if s.rank >= 0 {
		add(`info key="env.RANK" value="%d"`, s.rank)
	}
	if s.world > 0 {
		add(`info key="env.WORLD_SIZE" value="%d"`, s.world)
	}
	if s.job != "" {
		add(`info key="env.SLURM_JOB_ID" value="%s"`, s.job)
	}
	if s.started > 0 {
		add(`info key="process.start_unix_ns" value="%d000000000"`, s.started)
	}
	if !s.plain {
		add(`info key="framework.torch" value="2.7.1"`)
	}
	add(`string id=1 value="%s"`, or(s.tag, "kv_cache"))
	add(`string id=2 value="weights"`)
	add(`string id=3 value="model.layers.0.mlp.weight"`)
	add(`string id=4 value="sleep"`)
	add(`string id=5 value="wake"`)
	add(`string id=6 value="early"`)
	add(`module id=1 start=0x7f1000000000 end=0x7f1000100000 base=0x7f1000000000 path="/venv/torch/lib/libc10_cuda.so"`)
	add(`module id=2 start=0x7f3000000000 end=0x7f3000100000 base=0x7f3000000000 path="/usr/lib/libnccl.so.2"`)
	add(`module id=3 start=0x7f2000000000 end=0x7f2000100000 base=0x7f2000000000 path="/venv/torch/lib/libtorch_cuda.so"`)
	add(`symbol module=3 address=0x7f2000006000 function="at::_ops::mm::call"`)
	add(`stack id=3 frames=0x7f1000001234,0x7f2000006000`)
	add(`stack id=1 frames=0x7f1000001234`)
	add(`stack id=2 frames=0x7f3000001234`)
	add(`code id=10 name="serve" qualname="serve" file="/home/me/train.py" line=10`)
	add(`code id=12 name="load" qualname="load" file="/home/me/train.py" line=50`)
	add(`pystack id=11 frames=10+0`)
	add(`pystack id=13 frames=12+0`)
	add(`thread id=1 tid=4711 name="python"`)
	add(`device index=0 name="%s" uuid="GPU-0" total=85899345920`, or(s.device, "NVIDIA H100"))
	s.events(add)
	return b.String()
}

// events are what the program does, a millisecond each.
func (s story) events(add func(format string, args ...any)) {
	seq, allocated := 0, 0
	event := func(format string, args ...any) {
		seq++
		kind, rest, _ := strings.Cut(fmt.Sprintf(format, args...), " ")
		add("%s seq=%d time=%d thread=1 %s", kind, seq, seq*1000000, rest)
	}
	driver := func(address, size, stack, python int) {
		event("alloc level=driver api=cuMemAlloc_v2 mem=device addr=%#x size=%d stack=%d pystack=%d", address, size*mib,
			stack, python)
	}
	rest := 1
	block := func(address, size int, more string) {
		if s.plain || s.silent {
			driver(address, size, 1, 11)
			return
		}
		allocated += size * mib
		event("alloc level=framework api=reportMemoryUsageToProfiler mem=device addr=%#x size=%d %s allocated=%d reserved=%d rest=%d",
			address, size*mib, more, allocated, s.held()*mib, rest)
	}
	if !s.plain && !s.silent {
		driver(0x100000000, s.held(), 1, 13)
	}
	if s.early > 0 {
		block(0x100000000, s.early, "tag=6 pystack=13 stack=1")
		allocated -= s.early * mib
		event("free level=framework api=reportMemoryUsageToProfiler mem=device addr=0x100000000 size=%d allocated=%d reserved=%d",
			s.early*mib, allocated, s.held()*mib)
	}
	block(0x100000000, 60, "tag=2 pystack=13 stack=1")
	if !s.plain && !s.silent {
		event("name addr=0x100000000 size=%d category=2 name=3", 60*mib)
	}
	if s.unasked > 0 {
		rest = 0
		block(0x130000000, s.unasked, "tag=2 pystack=13 stack=1")
		rest = 1
	}
	block(0x110000000, s.kv, "tag=1 pystack=11 stack=3")
	event("alloc level=driver api=cuMemAllocManaged mem=managed addr=0xb00000000 size=%d stack=2", 4*mib)
	driver(0x800000000, 32, 2, 11)
	event("alloc level=driver api=cuMemHostAlloc mem=host device=-1 addr=0xa00000000 size=%d stack=1", 16*mib)
	event("step count=1")
	event("step count=2")
	driver(0x810000000, 8, 2, 11)
	event("step count=3")
	if s.pins {
		event("alloc level=driver api=cuMemHostAlloc mem=host device=-1 addr=0xa10000000 size=%d stack=1", 8*mib)
	}
	for i := range s.grows {
		event("step count=%d", i+4)
		block(0x120000000+i*mib, 1, "tag=1 pystack=11 stack=1")
	}
	for i := range s.still {
		event("step count=%d", i+4)
		block(0x120000000, 1, "tag=1 pystack=11 stack=1")
		allocated -= mib
		event("free level=framework api=reportMemoryUsageToProfiler mem=device addr=0x120000000 size=%d allocated=%d reserved=%d",
			mib, allocated, s.held()*mib)
	}
	event("mark name=4")
	if !s.plain && !s.silent {
		allocated -= s.kv * mib
		event("free level=framework api=reportMemoryUsageToProfiler mem=device addr=0x110000000 size=%d allocated=%d reserved=%d",
			s.kv*mib, allocated, s.held()*mib)
	}
	event("mark name=5")
	add("flush watermark=%d", seq+1)
	if !s.cut {
		add(`end reason="exit" events=%d time=%d`, seq, (seq+1)*1000000)
	}
}

// bytesRead is what was read of all traces so far.
var bytesRead int64

// counted counts that.
type counted struct{ r io.Reader }

func (c counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	bytesRead += int64(n)
	return n, err
}

// read summarizes a trace in its text form, with more options.
func read(t testing.TB, path, text string, more func(o *analyzer.Options)) *Trace {
	t.Helper()
	var file bytes.Buffer
	if err := textform.Encode(&file, strings.NewReader(text)); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, text)
	}
	set, err := rulefile.Preset(rulefile.Default)
	if err != nil {
		t.Fatal(err)
	}
	again := func(asks ...func(o *analyzer.Options)) ([]*report.Summary, error) {
		var questions []analyzer.Options
		for _, ask := range asks {
			o := analyzer.Options{Question: analyzer.Question{Groupings: Groupings(), Sites: true, Entries: -1},
				Training: true, RuleSets: []profile.RuleGrouping{{Name: CategoryGrouping, Rules: set}}}
			more(&o)
			ask(&o)
			questions = append(questions, o)
		}
		var readers [2]*trace.Reader
		for i := range readers {
			source := counted{bytes.NewReader(file.Bytes())}
			if readers[i], err = trace.NewReader(source, int64(file.Len())); err != nil {
				return nil, err
			}
		}
		questions[0].Ahead = readers[1]
		return analyzer.SummarizeEach(readers[0], questions)
	}
	s, err := Again(again).one(func(*analyzer.Options) {})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return NewTrace(path, s, again)
}

func (s story) trace(t testing.TB) *Trace {
	t.Helper()
	return read(t, or(s.path, "t.bin"), s.text(), func(o *analyzer.Options) {
		for _, m := range []struct {
			to   *moment.At
			text string
		}{{&o.At, s.at}, {&o.From, s.from}} {
			at, err := moment.Parse(m.text)
			if err != nil {
				t.Fatal(err)
			}
			*m.to = at
		}
	})
}

// traces are the one, or those of two ranks.
func (s story) traces(t testing.TB) []*Trace {
	list := []*Trace{s.trace(t)}
	if s.second > 0 {
		other := s
		other.rank, other.kv = s.rank+1, s.second
		list = append(list, other.trace(t))
	}
	return list
}

// server is the story that most tests begin with.
var server = story{kv: 100, rank: -1}

// gate reads a gate of any kind: KIND GATE.
func gate(t testing.TB, text string) (Gate, error) {
	t.Helper()
	kind, rest, _ := strings.Cut(text, " ")
	switch kind {
	case KindMax:
		return ParseMax(rest)
	case KindAssert:
		return ParseAssert(rest)
	case KindCompare:
		return ParseCompare(rest, Amount{2, Percent})
	}
	t.Fatalf("no kind of gate: %s", text)
	return Gate{}, nil
}
