package check

import (
	"slices"
	"strings"
	"testing"
)

// TestGates: each kind of gate passes, fails and is refused, and says in a sentence why.
func TestGates(t *testing.T) {
	plain := story{kv: 100, rank: -1, plain: true}
	early, ranks := story{kv: 100, rank: -1, early: 80}, story{kv: 100, rank: 0, second: 116}
	at := func(moment string) story { return story{kv: 100, rank: -1, early: 80, at: moment} }
	growing, still := story{kv: 100, rank: -1, grows: 200}, story{kv: 100, rank: -1, still: 200}
	seen := map[string][]string{} // what became of each kind of gate
	for _, test := range []struct {
		gate   string
		story  story
		status string
		says   string // a part of the text
	}{
		{"max peak=160MiB", server, Passed, ""},
		{"max peak=0.2G", server, Passed, ""},
		{"max peak=159MiB", server, Failed, "PyTorch peak is 160.0 MiB, 1.00 MiB over the limit of 159.0 MiB: by tag kv_cache (100.0 MiB)"},
		{"max peak=100MiB", plain, Failed, "Driver peak is 200.0 MiB"},
		{"max peak=5%", server, Broken, `peak: "5%" is not a size`},
		{"max peak=1XB", server, Broken, `"1XB" is not a size`},
		{"max peak=-1", server, Broken, "is not a size"},
		{"max peak", server, Broken, "has no limit"},
		{"max paek=1GiB", server, Broken, `unknown gate "paek"; did you mean peak?`},
		{"max reserved=1GiB", server, Broken, "reserved memory is not compared"},
		{"max peak=1GiB", story{kv: 100, rank: -1, silent: true}, Broken, "no events of the framework's allocator"},
		{"max requested=160MiB", server, Passed, ""},
		{"max requested=1MiB", server, Failed, "requested memory is 160.0 MiB, 159.0 MiB over the limit of 1.00 MiB: by tag kv_cache (100.0 MiB)"},
		{"max requested=159MiB", at("peak"), Failed, "requested memory is 160.0 MiB, 1.00 MiB over the limit of 159.0 MiB: by tag kv_cache (100.0 MiB)"},
		{"max requested=59MiB", at("mark:wake"), Failed, "requested memory is 60.0 MiB, 1.00 MiB over the limit of 59.0 MiB: by tag weights (60.0 MiB)"},
		{"max requested=1MiB", plain, Failed, "200.0 MiB"},
		{"max requested:x=1MiB", server, Broken, "takes no name"},
		{"max tag:kv_cache=100MiB", server, Passed, ""},
		{"max tag:kv*=99MiB", server, Failed, "tag kv* is 100.0 MiB at its highest, 1.00 MiB over the limit of 99.0 MiB: by site me/train.py:10 serve (100.0 MiB)."},
		{"max tag:kv_cahce=1GiB", server, Broken, "no such tag; the trace has kv_cache"},
		{"max tag:zzzzzzzz=1GiB", server, Broken, "the trace has kv_cache, weights"},
		{"max tag=1GiB", server, Broken, "tag needs a name, such as tag:kv_cache"},
		{"max tag:x=1GiB", story{kv: 1, rank: -1, tag: "\\x1b[2J"}, Broken, "no such tag"},
		{"max tag:early=80MiB", early, Passed, ""},
		{"max tag:early=79MiB", early, Failed, "tag early is 80.0 MiB at its highest, 1.00 MiB over the limit of 79.0 MiB: by site me/train.py:50 load (80.0 MiB)."},
		{"max tag:early=0", at("peak"), Passed, ""},
		{"max tag:early=0", story{kv: 100, rank: -1, early: 80, from: "step:1"}, Broken, "no such tag"},
		{"max tag:kv_cache=99MiB", at("peak"), Failed, "tag kv_cache is 100.0 MiB at peak, 1.00 MiB over the limit of 99.0 MiB: by site"},
		{"max tag:kv_cache=0", at("mark:wake"), Passed, ""},
		{"max peak=60MiB", at("mark:wake"), Passed, ""},
		{"max peak=59MiB", at("mark:wake"), Failed, "PyTorch memory at mark:wake is 60.0 MiB, 1.00 MiB over the limit of 59.0 MiB: by tag weights (60.0 MiB)"},
		{"max pinned=1GiB", at("mark:wake"), Broken, "host memory is known at its peak only; leave out --at"},
		{"max peak=99MiB", story{kv: 100, rank: -1, from: "mark:wake"}, Passed, ""},
		{"assert released-after=mark:sleep>=60%", at("mark:wake"), Passed, ""},
		{"max category:param=60MiB", server, Passed, ""},
		{"max category:Parameters=59MiB", server, Failed, "category Parameters is 60.0 MiB at its highest, 1.00 MiB over the limit of 59.0 MiB: by module model.layers.0.mlp (60.0 MiB); by site me/train.py:50 load (60.0 MiB)."},
		{"max category:optimizer=1B", server, Passed, ""}, // it holds nothing, and exists
		{"max category:paramters=1GiB", server, Broken, "no such category; the trace has Parameters"},
		{"max category:parameters=1step", server, Broken, "is not a size"},
		{"max module:model.layers.*=60MiB", server, Passed, ""},
		{"max module:model=1MiB", server, Failed, "module model is 60.0 MiB at its highest, 59.0 MiB over the limit of 1.00 MiB: by module model.layers.0.mlp (60.0 MiB); by site me/train.py:50 load (60.0 MiB)."},
		{"max module:model.layers.0.mlp=1MiB", server, Failed,
			"over the limit of 1.00 MiB: by site me/train.py:50 load (60.0 MiB)."},
		{"max module:modl.layers.0.mlp=1GiB", server, Broken, "no such module; the trace has model.layers.0.mlp"},
		{"max module:a=1GiB", plain, Broken, "no such module; the trace has no modules at all"},
		{"max site:me/train.py:10=100MiB", server, Passed, ""},
		{"max site:*serve=1MiB", server, Failed, "site *serve is 100.0 MiB at its highest, 99.0 MiB over the limit of 1.00 MiB: by site me/train.py:10 serve (100.0 MiB)."},
		{"max site:me/train.py:11=1GiB", server, Broken, "no such site; the trace has me/train.py:10 serve"},
		{"max operator:aten::mm=100MiB", server, Passed, ""},
		{"max operator:aten::mm=99MiB", server, Failed, "operator aten::mm is 100.0 MiB at its highest, 1.00 MiB over the limit of 99.0 MiB: by site me/train.py:10 serve"},
		{"max operator:aten::m=1GiB", server, Broken, "no such operator; the trace has aten::mm"},
		{"max operator:aten::mm=1GiB", plain, Broken, "no such operator; the trace has no operators at all"},
		{"max library:libnccl=40MiB", server, Passed, ""},
		{"max library:libnccl.so.2=39MiB", server, Failed, "library libnccl.so.2 is 40.0 MiB"},
		{"max library:libnvcl=1GiB", server, Broken, "no such library; the trace has libnccl.so.2"},
		{"max library:libc10_cuda=9GiB", server, Broken, "reserved memory is not compared"},
		{"max driver=200MiB", plain, Passed, ""},
		{"max driver=1MiB", plain, Failed, "Driver peak is 200.0 MiB"},
		{"max driver=9GiB", server, Broken, "reserved memory is not compared"},
		{"max pinned=16MiB", server, Passed, ""},
		{"max pinned=15MiB", server, Failed, "pinned memory is 16.0 MiB, 1.00 MiB over the limit of 15.0 MiB"},
		{"max pinned=many", server, Broken, "is not a size"},
		{"max managed=4MiB", server, Passed, ""},
		{"max managed=0", server, Failed, "managed memory is 4.00 MiB, 4.00 MiB over the limit of 0 B."},
		{"max managed=x", server, Broken, "is not a size"},
		{"max growth=0/step", still, Passed, ""},
		{"max growth=2MiB/step", growing, Passed, ""},
		{"max growth=10KiB/step", growing, Failed, "train.py:10"},
		{"max growth=1MiB", growing, Failed, "train.py:10"},
		{"max growth=1KiB/s", growing, Failed, "train.py:10"},
		{"max growth=1KiB/s", story{kv: 100, rank: -1, grows: 200, nullGPU: true}, Broken, "on the null GPU"},
		{"max growth=10KiB/step", story{kv: 100, rank: -1, grows: 200, nullGPU: true}, Failed, "train.py:10"},
		{"max growth=1KiB/epoch", growing, Broken, "per step or per second"},
		{"max growth=1MiB/step", server, Broken, "growth cannot be judged"},
		{"max rank-spread=10%", ranks, Passed, ""},
		{"max rank-spread=9%", ranks, Failed, "t.bin has most, t.bin least. Compared with that: PyTorch peak +16.0 MiB (+10.0%), 160.0 MiB to 176.0 MiB: by tag kv_cache (+16.0 MiB)"},
		{"max rank-spread=5%", server, Broken, "needs the traces of several ranks"},
		{"max rank-spread=5GiB", server, Broken, "is not a percentage"},
		{"assert no-driver-alloc-after=step:3", server, Passed, ""},
		{"assert no-driver-alloc-after=step:2", server, Failed, "after step:2 the driver granted 1 request (8.00 MiB): by library libnccl.so.2 (8.00 MiB); by site me/train.py:10 serve (8.00 MiB)."},
		{"assert no-driver-alloc-after=step:3", story{kv: 100, rank: -1, pins: true}, Failed,
			"after step:3 the driver granted 1 request of pinned host memory (8.00 MiB)."},
		{"assert no-driver-alloc-after=4500us", server, Failed,
			"granted 2 requests (40.0 MiB), 1 request of managed memory (4.00 MiB), 1 request of pinned host memory (16.0 MiB): by library libnccl.so.2 (40.0 MiB)"},
		{"assert no-driver-alloc-after=step:9", server, Broken, "no step 9"},
		{"assert no-driver-alloc-after=peak", server, Broken, "no part of a run begins at peak"},
		{"assert no-driver-alloc-after=stop:1", server, Broken, "no moment"},
		{"assert no-driver-allocs-after=step:1", server, Broken, "did you mean no-driver-alloc-after="},
		{"assert released-after=mark:sleep>=60%", server, Passed, ""},
		{"assert released-after=mark:sleep..mark:wake>=60%", server, Passed, ""},
		{"assert released-after=mark:sleep>=90%", server, Failed, "62.5% was released of 160.0 MiB that were live at mark:sleep, and 60.0 MiB stayed until mark:wake: by tag weights (60.0 MiB); by category Parameters (60.0 MiB); by module model.layers.0.mlp (60.0 MiB); by site me/train.py:50 load (60.0 MiB)."},
		{"assert released-after=mark:slep>=90%", server, Broken, `no mark "slep"; it has "sleep", "wake"`},
		{"assert released-after=mark:sleep", server, Broken, "says not how much"},
		{"assert released-after=mark:sleep>=900%", server, Broken, "at most 100%"},
		{"assert only-library=libc10_cuda,libnccl", server, Passed, ""},
		{"assert only-library=libc10_cuda", server, Failed,
			"libnccl.so.2 allocated 40.0 MiB in 2 calls: by site me/train.py:10 serve"},
		{"assert only-library=libc11_cuda", server, Broken, "no such library; the trace has libc10_cuda.so"},
		{"assert only-library=", server, Broken, "needs a value"},
		{"assert no-finding=out-of-memory,retries", server, Passed, ""},
		{"assert no-finding=alarm", growing, Failed, "the first growth (alarm)"},
		{"assert no-finding=growth", growing, Failed, "train.py:10"},
		{"assert no-finding=grwth", server, Broken, `no finding or severity "grwth"; did you mean growth?`},
	} {
		r := checked(t, test.gate, test.story.traces(t)...)
		_, name, _ := strings.Cut(test.gate, " ")
		name = name[:len(name)-len(strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz-"))]
		seen[name] = append(seen[name], test.status)
		if r.Status != test.status || !strings.Contains(r.Text, test.says) || test.says == "" && r.Text != "" {
			t.Errorf("%s: %s, %q; want %s, %q", test.gate, r.Status, r.Text, test.status, test.says)
		}
		if strings.ContainsAny(r.Text, "\n") {
			t.Errorf("%s: more than a sentence: %q", test.gate, r.Text)
		}
	}
	for _, name := range slices.Concat(SubjectNames(), AssertNames()) {
		for _, status := range []string{Passed, Failed, Broken} {
			if !slices.Contains(seen[strings.TrimRight(name, ":=")], status) {
				t.Errorf("no test of %s ends with %s", name, status)
			}
		}
	}
}

// TestComparisons: each kind of figure that a baseline has passes where it is the same, fails where the baseline had
// half, and names that the trace does not have are refused.
func TestComparisons(t *testing.T) {
	names := map[string]string{"tag": "kv_cache", "category": "Parameters", "module": "model.layers.*",
		"site": "me/train.py:10", "operator": "aten::mm", "library": "libnccl"}
	for _, kind := range subjectKinds {
		s, gate := server, kind.name
		if kind.owner {
			gate += ":" + names[kind.name]
		}
		s.plain = kind.name == "driver"
		g, err := ParseCompare(gate, Amount{2, Percent})
		if kind.name == "growth" || kind.name == "rank-spread" {
			if err == nil || !strings.Contains(err.Error(), "not compared with a baseline") {
				t.Errorf("%s: %v", gate, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		wrong := kind.name + ":x"
		if kind.owner {
			wrong = kind.name
		}
		if _, err := ParseCompare(wrong, Amount{2, Percent}); err == nil {
			t.Errorf("%s is read", wrong)
		}
		held := func(smaller uint64) Result {
			trace := s.trace(t)
			b, err := NewBaseline("base.json", []*Trace{trace}, []Gate{g})
			if err != nil {
				t.Fatal(err)
			}
			run := &b.Runs[0]
			run.PeakBytes /= smaller
			if run.RequestedBytes != nil {
				*run.RequestedBytes /= smaller
			}
			for _, figures := range []map[string]uint64{run.OtherBytes, run.Owners} {
				for key := range figures {
					figures[key] /= smaller
				}
			}
			return (&Plan{Gates: []Gate{g}, Baseline: b}).Check([]*Trace{trace}).Results[0]
		}
		if kind.owner {
			absent := g
			absent.Subject.Name = "nowhere"
			b, err := NewBaseline("base.json", []*Trace{s.trace(t)}, []Gate{absent})
			if err != nil {
				t.Fatal(err)
			}
			r := (&Plan{Gates: []Gate{absent}, Baseline: b}).Check([]*Trace{s.trace(t)}).Results[0]
			if r.Status != Broken || !strings.Contains(r.Text, "no such "+kind.name) {
				t.Errorf("%s: %+v", absent.Subject, r)
			}
		}
		if r := held(1); r.Status != Passed || r.Base == nil || r.Base.Value == 0 {
			t.Errorf("%s, the same: %+v", gate, r)
		}
		if r := held(2); r.Status != Failed || r.Base.Value*2 != r.Value.Value {
			t.Errorf("%s, half of it before: %+v", gate, r)
		}
	}
}

// TestGrowthAllowed: of memtrace diff --fail-on the last sign divides the figure and what it may grow by. A place in a
// lambda could not be named.
func TestGrowthAllowed(t *testing.T) {
	for text, want := range map[string]string{"peak>1%": "peak +1%", "peak>=1%": "peak +1%",
		"peak > 1 MiB": "peak +1.00 MiB", "peak>=1MiB": "peak +1.00 MiB",
		"site:train.py:9 <lambda>>2%": "site:train.py:9 <lambda> +2%"} {
		if g, err := ParseFailOn(text); err != nil || g.name() != want {
			t.Errorf("%s: %q, %v; want %q", text, g.name(), err, want)
		}
	}
	for text, says := range map[string]string{"peak": "by how much", "peak>": "is not a size",
		"peak>x%": "is not a percentage", ">1%": "unknown gate", "reserved>1%": "reserved memory"} {
		if _, err := ParseFailOn(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want %q", text, err, says)
		}
	}
	g, err := ParseAssert("released-after=mark:load>=half>=90%")
	if err != nil || g.From.String() != "mark:load>=half" || g.Limit.Value != 90 {
		t.Errorf("%+v, %v", g, err)
	}
}

// checked holds one gate against traces; a gate that cannot be read is an error.
func checked(t *testing.T, text string, traces ...*Trace) Result {
	t.Helper()
	g, err := gate(t, text)
	if err != nil {
		return Result{Status: Broken, Text: err.Error()}
	}
	o := (&Plan{Gates: []Gate{g}}).Check(traces)
	if len(o.Results) != 1 || o.Status != o.Results[0].Status {
		t.Fatalf("%s: %+v", text, o)
	}
	return o.Results[0]
}

// TestIncomplete: a trace that may lack something passes no gate and is no baseline, unless that is accepted. memtrace
// diff --fail-on passed a program that had failed before it allocated.
func TestIncomplete(t *testing.T) {
	for what, s := range map[string]story{"no end": {kv: 1, rank: -1, cut: true},
		"status 3": {kv: 1, rank: -1, status: 3}} {
		g, _ := ParseMax("peak=1GiB")
		if o := (&Plan{Gates: []Gate{g}}).Check([]*Trace{s.trace(t)}); o.Status != Broken {
			t.Errorf("%s: %+v", what, o)
		}
		if o := (&Plan{Gates: []Gate{g}, Incomplete: true}).Check([]*Trace{s.trace(t)}); o.Status != Passed {
			t.Errorf("%s, accepted: %+v", what, o)
		}
		compared, err := ParseFailOn("peak>1%")
		if err != nil {
			t.Fatal(err)
		}
		whole, part := story{kv: 1, rank: -1}.trace(t), s.trace(t)
		for _, pair := range [][2]*Trace{{whole, part}, {part, whole}} {
			o := Compare([]Gate{compared}, pair[0].Path, pair[1].Path, pair[0].Summary, pair[1].Summary)
			if o.Status != Broken || !strings.Contains(o.Results[0].Text, "is not complete") {
				t.Errorf("%s, the difference: %+v", what, o)
			}
		}
		b, err := NewBaseline("t.bin", []*Trace{part}, nil)
		if err != nil {
			t.Fatal(err)
		}
		plan := &Plan{Gates: []Gate{compared}, Baseline: b}
		o := plan.Check([]*Trace{whole})
		if o.Status != Broken || !strings.Contains(o.Results[0].Text, "it is no baseline") {
			t.Errorf("%s, as a baseline: %+v", what, o)
		}
		plan.Incomplete = true
		if o := plan.Check([]*Trace{whole}); o.Status != Passed {
			t.Errorf("%s, accepted as a baseline: %+v", what, o)
		}
	}
}

// TestBaseline: what grew is named, and a baseline of something else is refused.
func TestBaseline(t *testing.T) {
	named := []Gate{}
	for _, text := range []string{"tag:kv_cache", "tag:new", "library:libnccl"} {
		g, err := ParseCompare(text, Amount{2, Percent})
		if err != nil {
			t.Fatal(err)
		}
		named = append(named, g)
	}
	base, err := NewBaseline("base.json", []*Trace{server.trace(t)}, named)
	if err != nil {
		t.Fatal(err)
	}
	text, err := base.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		gate, status, says string
		story              story
	}{
		{"compare peak", Passed, "", server},
		{"compare peak", Passed, "", story{kv: 103, rank: -1}},
		{"compare peak", Failed, "PyTorch peak +10.0 MiB (+6.2%), 160.0 MiB to 170.0 MiB: by tag kv_cache (+10.0 MiB); by site me/train.py:10 serve (+10.0 MiB).", story{kv: 110, rank: -1}},
		{"max peak=165MiB", Failed,
			"5.00 MiB over the limit of 165.0 MiB. PyTorch peak +10.0 MiB", story{kv: 110, rank: -1}},
		{"compare tag:kv_cache", Failed, "it was 100.0 MiB: by site me/train.py:10 serve (+10.0 MiB).",
			story{kv: 110, rank: -1}},
		{"compare tag:new", Failed, "it was 0 B", story{kv: 100, rank: -1, tag: "new"}},
		{"compare library:libnccl", Passed, "", server},
		{"compare tag:weights", Broken, "it does not have the highest of tag:weights; --update writes", server},
		{"compare pinned", Passed, "", server},
		{"compare requested", Passed, "", server},
		{"compare requested", Failed, "requested memory is 170.0 MiB, 6.80 MiB over the limit of 163.2 MiB; it was 160.0 MiB. PyTorch peak +10.0 MiB (+6.2%), 160.0 MiB to 170.0 MiB: by tag kv_cache (+10.0 MiB)", story{kv: 110, rank: -1}},
		{"compare peak", Broken, "is of another program, train.py; this is serve.py",
			story{kv: 1, rank: -1, program: "serve.py"}},
		{"compare peak", Broken, "was made on another device, NVIDIA H100, 80.0 GiB",
			story{kv: 1, rank: -1, device: "NVIDIA A100"}},
		{"compare peak", Broken, "level", story{kv: 1, rank: -1, plain: true}},
		{"compare growth", Broken, "not compared with a baseline", server},
		{"compare reserved", Broken, "reserved memory is not compared", server},
	} {
		r := Result{Status: Broken}
		if g, err := gate(t, test.gate); err != nil {
			r.Text = err.Error()
		} else {
			b, err := ParseBaseline("base.json", text)
			if err != nil {
				t.Fatal(err)
			}
			r = (&Plan{Gates: []Gate{g}, Baseline: b}).Check([]*Trace{test.story.trace(t)}).Results[0]
		}
		if r.Status != test.status || !strings.Contains(r.Text, test.says) || test.says == "" && r.Text != "" {
			t.Errorf("%s: %s, %q; want %s, %q", test.gate, r.Status, r.Text, test.status, test.says)
		}
	}
	for _, wrong := range []string{"", "[]", "{}", `{"schema":"x"}`, `{"schema":"memtrace.report/1"}`} {
		_, err := ParseBaseline("base.json", []byte(wrong))
		if err == nil || !strings.Contains(err.Error(), "base.json") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
