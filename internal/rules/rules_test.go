package rules

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func mustSet(t *testing.T, mode Mode, list ...Rule) *Set {
	t.Helper()
	set, err := New("test", "", mode, list)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func when(category string, conditions ...Condition) Rule {
	return Rule{Category: category, Conditions: conditions}
}

func contains(f Field, texts ...string) Condition {
	c := Condition{Field: f}
	for _, text := range texts {
		c.Patterns = append(c.Patterns, Pattern{Text: text})
	}
	return c
}

// TestOrder: the first rule decides, and in multi-match mode every rule does, each category once.
func TestOrder(t *testing.T) {
	list := []Rule{when("RNN", contains(Tag, "rnn")), when("Embedding", contains(Tag, "embed")),
		when("RNN", contains(Tag, "cell"))}
	subject := &Subject{Tag: "rnn_embed_cell"}
	if got := mustSet(t, FirstMatch, list...).Matcher().Match(subject); !slices.Equal(got, []string{"RNN"}) {
		t.Errorf("first match: %q", got)
	}
	if got := mustSet(t, MultiMatch, list...).Matcher().Match(subject); !slices.Equal(got,
		[]string{"RNN", "Embedding"}) {
		t.Errorf("multi match: %q", got)
	}
	if got := mustSet(t, FirstMatch, list...).Matcher().Match(&Subject{Tag: "RNN"}); got != nil {
		t.Errorf("case does not matter: %q", got)
	}
}

// TestConditions tests every field with one subject that matches and one that does not.
func TestConditions(t *testing.T) {
	frame := &Frame{Functions: []string{"Block.forward"}, File: "/home/ada/train.py", Library: "libtorch_cpu.so"}
	bound := func(text string) Condition {
		b, err := ParseBound(text)
		if err != nil {
			t.Fatal(err)
		}
		return Condition{Field: Size, Bounds: []Bound{b}}
	}
	frames := []*Frame{frame}
	for _, test := range []struct {
		c        Condition
		yes, not Subject
	}{
		{contains(Tag, "conv"), Subject{Tag: "a.conv1"}, Subject{Name: "conv1"}},
		{contains(Name, "conv"), Subject{Name: "conv1"}, Subject{Tag: "conv1"}},
		{contains(Label, "conv"), Subject{Name: "conv1"}, Subject{API: "conv1"}},
		{contains(Label, "conv"), Subject{Tag: "conv1"}, Subject{Library: "conv1"}},
		{contains(API, "Async"), Subject{API: "cudaMallocAsync"}, Subject{API: "cudaMalloc"}},
		{contains(Function, "forward"), Subject{Frames: frames}, Subject{Frames: []*Frame{{File: "forward"}}}},
		{contains(File, "train.py"), Subject{Frames: frames}, Subject{Frames: []*Frame{{Library: "train.py"}}}},
		{contains(SiteFunction, "Block"), Subject{Site: frame}, Subject{Frames: frames}},
		{contains(SiteFile, "ada"), Subject{Site: frame}, Subject{Frames: frames}},
		{contains(Library, "libtorch"), Subject{Frames: frames}, Subject{Tag: "libtorch"}},
		{contains(Library, "libtorch"), Subject{Library: "libtorch_cuda.so"}, Subject{Library: "libc10.so"}},
		{Condition{Field: Kind, Words: []string{"async", "vmm"}}, Subject{Kind: "vmm"}, Subject{Kind: "device"}},
		{Condition{Field: Level, Words: []string{"driver"}}, Subject{Level: "driver"}, Subject{Level: "framework"}},
		{Condition{Field: Phase, Words: []string{"forward"}}, Subject{Frames: frames}, Subject{}},
		{Condition{Field: Phase, Words: []string{"other"}}, Subject{}, Subject{Frames: frames}},
		{bound(">= 2KiB"), Subject{Size: 2048}, Subject{Size: 2047}},
		{bound("> 2KiB"), Subject{Size: 2049}, Subject{Size: 2048}},
		{bound("<= 2KiB"), Subject{Size: 2048}, Subject{Size: 2049}},
		{bound("< 2KiB"), Subject{Size: 2047}, Subject{Size: 2048}},
		{bound("= 2kB"), Subject{Size: 2000}, Subject{Size: 2001}},
		{Condition{Field: Tag, Patterns: []Pattern{{Text: "^h[.][0-9]+$", Regex: true}}}, Subject{Tag: "h.11"},
			Subject{Tag: "h.x"}},
		{Condition{Field: Tag, Patterns: []Pattern{{Text: "A.B", IgnoreCase: true}}}, Subject{Tag: "xa.by"},
			Subject{Tag: "axb"}},
		{contains(Any, "needle", "conv"), Subject{Name: "conv"}, Subject{Kind: "conv", Level: "conv", Thread: "conv"}},
	} {
		set := mustSet(t, FirstMatch, when("yes", test.c))
		if set.Matcher().Match(&test.yes) == nil {
			t.Errorf("%v does not match %+v", test.c, test.yes)
		}
		if set.Matcher().Match(&test.not) != nil {
			t.Errorf("%v matches %+v", test.c, test.not)
		}
	}
	for _, f := range []Subject{{Tag: "conv"}, {Name: "conv"}, {Library: "conv"}, {API: "conv"},
		{Frames: []*Frame{{Functions: []string{"a", "conv"}}}},
		{Frames: []*Frame{{File: "conv"}}}, {Frames: []*Frame{{Library: "conv"}}}} {
		if mustSet(t, FirstMatch, when("yes", contains(Any, "conv"))).Matcher().Match(&f) == nil {
			t.Errorf("any does not find %+v", f)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	set := mustSet(t, FirstMatch,
		when("{library}, {function} {tag}", Condition{Field: Level, Words: []string{"driver"}}))
	site := &Frame{Functions: []string{"main"}}
	if got := set.Matcher().Match(&Subject{Level: "driver", Library: "train", Site: site}); !slices.Equal(got,
		[]string{"train, main (unknown)"}) {
		t.Errorf("%q", got)
	}
	for f := range fieldCount {
		want := slices.Contains([]Field{Level, Library, SiteFunction, Tag}, f)
		if set.Uses(f) != want {
			t.Errorf("uses %s: %v", f, !want)
		}
	}
}

func TestWrongRules(t *testing.T) {
	condition := contains(Tag, "x")
	many := make([]Pattern, MaxPatterns+1)
	for _, test := range []struct {
		rule Rule
		want string
	}{
		{when("", condition), "needs a category"},
		{when("Others", condition), "is kept for what no rule matches"},
		{when(strings.Repeat("x", MaxText+1), condition), "1000 are allowed"},
		{when("a"), "needs a condition"},
		{when("{size}", condition), "braces stand only in {library}"},
		{when("a", Condition{Field: Tag}), "tag: says nothing"},
		{when("a", Condition{Field: Size}), "size: says nothing"},
		{when("a", Condition{Field: Kind}), "kind: says nothing"},
		{when("a", Condition{Field: Kind, Words: []string{"gpu"}}), `there is no kind "gpu"; choose from device`},
		{when("a", contains(Tag, "")), "empty text"},
		{when("a", contains(Tag, strings.Repeat("x", MaxText+1))), "1000 are allowed"},
		{when("a", Condition{Field: Tag, Patterns: many}), "200 are allowed"},
		{when("a", Condition{Field: Tag, Patterns: []Pattern{{Text: "(", Regex: true}}}), "missing closing )"},
	} {
		if _, err := New("x", "", FirstMatch, []Rule{test.rule}); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %q", test.rule, err, test.want)
		}
	}
	if _, err := New("x", "", FirstMatch, nil); err == nil {
		t.Error("a set without rules passes")
	}
	if _, err := New("x", "", FirstMatch, make([]Rule, MaxRules+1)); err == nil ||
		!strings.Contains(err.Error(), "2000 are allowed") {
		t.Errorf("too many rules: %v", err)
	}
	if _, err := ParseMode("all"); err == nil || !strings.Contains(err.Error(), "multi-match") {
		t.Errorf("mode: %v", err)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]uint64{"12": 12, "11.2GiB": 12025908429, "1 MB": 1e6, "1_000kB": 1e6, "0": 0,
		"3B": 3, "0.5 KiB": 512} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1 gib", "1e9", "99999999999999999999", "5000000TiB"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
	for _, text := range []string{"", "2MiB", "=> 1", ">= x", "!= 1", ">= 1XB"} {
		if got, err := ParseBound(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// TestPhases: stacks as PyTorch and MXNet leave them, innermost frame first.
func TestPhases(t *testing.T) {
	const module, adam = "/v/site-packages/torch/nn/modules/module.py", "/v/site-packages/torch/optim/adam.py"
	f := func(function, file string) *Frame { return &Frame{Functions: []string{function}, File: file} }
	for _, test := range []struct {
		want, thread string
		frames       []*Frame
	}{
		{"other", "", nil},
		{"other", "", []*Frame{f("aten::empty", ""), f("main", "train.py")}},
		{"forward", "", []*Frame{f("aten::linear", ""), f("Linear.forward", "torch/nn/modules/linear.py"),
			f("Module._call_impl", module), f("main", "train.py")}},
		{"forward", "", []*Frame{f("_call_impl", module)}},
		{"forward", "", []*Frame{f("cross_entropy", "torch/nn/functional.py")}},
		{"backward", "", []*Frame{f("aten::mm", ""), f("torch::autograd::Engine::evaluate_function", "")}},
		{"backward", "", []*Frame{f("aten::mm", ""), f("torch::autograd::generated::MmBackward0::apply", "")}},
		{"backward", "pt_autograd_0", []*Frame{f("aten::mm", "")}},
		{"backward", "", []*Frame{f("Tensor.backward", "torch/_tensor.py")}},
		{"forward", "pt_autograd_0", []*Frame{f("Block.forward", "train.py"),
			f("torch::autograd::Engine::evaluate_function", "")}},
		{"optimizer", "", []*Frame{f("Adam._init_group", adam), f("Adam.step", adam), f("main", "train.py")}},
		{"forward", "", []*Frame{f("Net.forward", "train.py"), f("closure", "train.py"),
			f("LBFGS.step", "torch/optim/lbfgs.py")}},
		{"init", "", []*Frame{f("torch::autograd::dispatch_to", ""), f("Module.to.<locals>.convert", module),
			f("Module._apply", module), f("Module.cuda", module)}},
		{"init", "", []*Frame{f("Linear.__init__", "torch/nn/modules/linear.py")}},
		{"data", "", []*Frame{f("torch::autograd::dispatch_to", ""), f("main", "train.py")}},
		{"forward", "", []*Frame{f("torch::autograd::dispatch_to", ""), f("Net.forward", "train.py")}},
		{"data", "", []*Frame{f("torch::autograd::THPVariable_cuda", ""), f("main", "train.py")}},
		{"data", "", []*Frame{f("torch::autograd::THPVariable_pin_memory", ""), f("main", "train.py")}},
		{"data", "", []*Frame{f("_pin_memory_loop", "torch/utils/data/_utils/pin_memory.py")}},
		{"optimizer", "", []*Frame{f("Trainer._update", "mxnet/gluon/trainer.py")}},
		{"optimizer", "", []*Frame{f("KVStore.pushpull", "mxnet/kvstore/kvstore.py"),
			f("Module.update", "mxnet/module/module.py")}},
		{"init", "", []*Frame{f("Symbol.simple_bind", "mxnet/symbol/symbol.py"),
			f("Module.bind", "mxnet/module/module.py")}},
		{"backward", "", []*Frame{f("mxnet::op::CuDNNConvolutionOp<float>::Backward", ""),
			f("mxnet::engine::ThreadedEngine::ExecuteOprBlock", "")}},
		{"backward", "", []*Frame{f("mxnet::op::ConvolutionGradCompute<mshadow::gpu>", "")}},
		{"forward", "", []*Frame{f("mxnet::op::CuDNNConvolutionOp<float>::Forward", ""),
			f("mxnet::op::ConvolutionCompute<mshadow::gpu>", "")}},
		{"optimizer", "", []*Frame{f("mxnet::op::SGDMomUpdateDnsRspImpl<mshadow::gpu>", "")}},
		{"other", "", []*Frame{f("mxnet::op::FillCompute<mshadow::gpu, 0>", ""),
			f("mxnet::engine::ThreadedEngine::ExecuteOprBlock", "")}},
		{"other", "", []*Frame{f("lib::Backward", "")}},
		{"data", "", []*Frame{f("mxnet::NDArray::CheckAndAlloc", ""),
			f("mxnet::CopyFromToDnsImpl<mshadow::cpu, mshadow::gpu>", "")}},
		{"init", "", []*Frame{f("mxnet::CopyFromToDnsImpl<mshadow::cpu, mshadow::gpu>", ""),
			f("Parameter._init_impl", "mxnet/gluon/parameter.py")}},
	} {
		if got := PhaseOf(test.frames, test.thread); got != test.want {
			t.Errorf("%v in thread %q: %s, want %s", test.frames[0], test.thread, got, test.want)
		}
	}
}

// slowMatch is the meaning of rules without any shortcut.
func slowMatch(set *Set, s *Subject) (list []string) {
	find := func(p Pattern, texts ...string) bool {
		return slices.ContainsFunc(texts, func(text string) bool {
			switch {
			case text == "":
				return false
			case p.Regex && p.IgnoreCase:
				return regexp.MustCompile("(?i)" + p.Text).MatchString(text)
			case p.Regex:
				return regexp.MustCompile(p.Text).MatchString(text)
			case p.IgnoreCase:
				return strings.Contains(strings.ToLower(text), strings.ToLower(p.Text))
			}
			return strings.Contains(text, p.Text)
		})
	}
	for _, r := range set.Rules {
		all := true
		for _, c := range r.Conditions {
			var functions, files, libraries []string
			for _, f := range s.Frames {
				functions, files, libraries = append(functions, f.Functions...), append(files, f.File),
					append(libraries, f.Library)
			}
			libraries = append(libraries, s.Library)
			texts := map[Field][]string{Tag: {s.Tag}, Name: {s.Name}, Label: {s.Tag, s.Name}, Function: functions,
				File: files, Library: libraries, API: {s.API}}
			texts[Any] = slices.Concat(texts[Label], functions, files, libraries, texts[API])
			if s.Site != nil {
				texts[SiteFunction], texts[SiteFile] = s.Site.Functions, []string{s.Site.File}
			}
			texts[Kind], texts[Level], texts[Phase] = []string{s.Kind}, []string{s.Level},
				[]string{PhaseOf(s.Frames, s.Thread)}
			holds := slices.ContainsFunc(c.Patterns, func(p Pattern) bool { return find(p, texts[c.Field]...) }) ||
				slices.ContainsFunc(c.Words, func(w string) bool { return slices.Contains(texts[c.Field], w) })
			if c.Field == Size {
				holds = true
				for _, b := range c.Bounds {
					holds = holds && map[string]bool{">=": s.Size >= b.Bytes, ">": s.Size > b.Bytes, "<=": s.Size <=
						b.Bytes, "<": s.Size < b.Bytes, "=": s.Size == b.Bytes}[b.Op]
				}
			}
			all = all && holds
		}
		if all && !slices.Contains(list, r.Category) {
			list = append(list, r.Category)
		}
		if all && set.Mode == FirstMatch {
			break
		}
	}
	return list
}

// TestOracle compares the matcher with slowMatch on random rules and subjects over few letters, so that most questions
// are close ones.
func TestOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	text := func(longest int) string {
		var b strings.Builder
		for range rng.IntN(longest + 1) {
			b.WriteByte("abAB."[rng.IntN(5)])
		}
		return b.String()
	}
	pick := func(list []string) string { return list[rng.IntN(len(list))] }
	frames := make([]*Frame, 30)
	for i := range frames {
		frames[i] = &Frame{Functions: []string{text(4), pick([]string{"forward", "x", "torch::autograd::Engine::y"})},
			File: text(4), Library: text(3)}
	}
	condition := func() Condition {
		c := Condition{Field: Field(rng.IntN(int(fieldCount)))}
		for range 1 + rng.IntN(2) {
			switch words := Words(c.Field); {
			case words != nil:
				c.Words = append(c.Words, pick(words))
			case c.Field == Size:
				c.Bounds = append(c.Bounds, Bound{pick([]string{">=", ">", "<=", "<", "="}), rng.Uint64N(4)})
			default:
				c.Patterns = append(c.Patterns, Pattern{Text: "a" + text(1), Regex: rng.IntN(2) == 0,
					IgnoreCase: rng.IntN(2) == 0})
			}
		}
		return c
	}
	matched := 0
	for round := range 100 {
		var list []Rule
		for range 1 + rng.IntN(90) { // more than 64 frame tests
			r := Rule{Category: fmt.Sprint("c", rng.IntN(20))}
			for range 1 + rng.IntN(2) {
				r.Conditions = append(r.Conditions, condition())
			}
			list = append(list, r)
		}
		set := mustSet(t, Mode(round%2), list...)
		m := set.Matcher()
		edges := set.Boundaries()
		for range 30 {
			s := &Subject{Tag: text(3), Name: text(3), Library: text(2), API: text(2), Kind: pick(Words(Kind)),
				Level: pick(Words(Level)), Size: rng.Uint64N(6),
				Thread: pick([]string{"", "pt_autograd_1"})}
			for range rng.IntN(4) {
				s.Frames = append(s.Frames, frames[rng.IntN(len(frames))])
			}
			if len(s.Frames) > 0 && rng.IntN(2) == 0 {
				s.Site = s.Frames[0]
			}
			got, want := m.Match(s), slowMatch(set, s)
			if !slices.Equal(got, want) {
				t.Fatalf("round %d: %q, want %q\nrules %+v\nsubject %+v", round, got, want, list, s)
			}
			matched += min(len(got), 1)
			// The smallest size between two boundaries represents all of them.
			like := *s
			n, found := slices.BinarySearch(edges, s.Size)
			if found {
				n++
			}
			if like.Size = 0; n > 0 {
				like.Size = edges[n-1]
			}
			if got := m.Match(&like); !slices.Equal(got, want) {
				t.Fatalf("size %d is not like %d: %q, want %q", like.Size, s.Size, got, want)
			}
		}
	}
	if matched < 333 || matched > 2966 {
		t.Errorf("%d of 3000 subjects matched: the test asks no close questions", matched)
	}
}
