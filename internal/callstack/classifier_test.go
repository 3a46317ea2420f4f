package callstack

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

func TestUserFilesAndPlaces(t *testing.T) {
	for _, test := range []struct {
		file  string
		user  bool
		place string
	}{
		{"/home/ada/gpt/train.py", true, "train.py"},
		{"/home/ada/gpt/model/attention.py", true, "model/attention.py"},
		{"/home/ada/gpt2/train.py", true, "gpt2/train.py"},
		{"train.py", true, "train.py"},
		{"./lib/../train.py", true, "train.py"},
		{"../shared/blocks.py", true, "shared/blocks.py"},
		{"/data/shared/team/blocks.py", true, "team/blocks.py"},
		{"/blocks.py", true, "blocks.py"},
		{"/home/ada/gpt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", false,
			"torch/nn/modules/linear.py"},
		{"/usr/lib/python3/dist-packages/numpy/core/multiarray.py", false, "numpy/core/multiarray.py"},
		{"/usr/lib/python3.11/threading.py", false, "threading.py"},
		{"/opt/conda/lib/python3.13t/json/decoder.py", false, "json/decoder.py"},
		// installed in place: it is being worked on
		{"/home/ada/pytorch/torch/nn/functional.py", true, "nn/functional.py"},
		{"/home/ada/lib/python/tools.py", true, "python/tools.py"},
		{"<frozen importlib._bootstrap>", false, "<frozen importlib._bootstrap>"},
		{"<string>", false, "<string>"},
		{"<eval_with_key>.12", false, "<eval_with_key>.12"},
		{"<stdin>", true, "<stdin>"},
		{"<ipython-input-3-0123456789ab>", true, "<ipython-input-3-0123456789ab>"},
		{"/tmp/torchinductor_ada/ab/cabc.py", false, "ab/cabc.py"},
		{"/home/ada/kernels/ab/c234567abcdefghijklmnopqrstuvwxyz234567abcdefghijklm.py", false,
			"ab/c234567abcdefghijklmnopqrstuvwxyz234567abcdefghijklm.py"},
		{"/home/ada/tools/memtrace/_tag.py", false, "memtrace/_tag.py"},
		{"/home/ada/tools/memtrace/__init__.py", false, "memtrace/__init__.py"},
		{"/home/ada/tools/memtrace/_magic.py", false, "memtrace/_magic.py"},
		{"/venv/lib/python3.8/site-packages/memtrace/_bin/demo/train.py", true, "memtrace/_bin/demo/train.py"},
		{"/home/ada/tools/memtrace/__init__.py", false, "memtrace/__init__.py"},
		{"/home/ada/tools/memtrace/tag.py", true, "memtrace/tag.py"},
		{"", false, ""},
	} {
		j := NewClassifier(pythonInfo, nil)
		if got := j.User(symbol.Frame{Kind: symbol.Python, File: test.file}); got != test.user {
			t.Errorf("%s: user %v, want %v", test.file, got, test.user)
		}
		if got := j.Place(test.file); got != test.place {
			t.Errorf("%s: at %q, want %q", test.file, got, test.place)
		}
	}
	command := NewClassifier(trace.Info{"process.argv": "python3\x00-c\x00import torch"}, nil)
	if !command.userFile("<string>") {
		t.Error("the code behind -c is not the user's")
	}
	if got := command.Place("/a/b/c.py"); got != "b/c.py" {
		t.Errorf("without a working directory: %s", got)
	}
}

func TestSiteKeys(t *testing.T) {
	j := NewClassifier(trace.Info{"process.cwd": "/home/ada/sim"}, nil)
	for _, test := range []struct {
		f                    symbol.Frame
		site, function, line string
	}{
		{symbol.Frame{Kind: symbol.Python, Function: "Block.forward", File: "/home/ada/sim/train.py", Line: 41},
			"train.py:41 Block.forward", "Block.forward (train.py)", "train.py:41"},
		{symbol.Frame{Kind: symbol.Python, Function: "run", File: "x.py"}, "x.py run", "run (x.py)", "x.py"},
		{symbol.Frame{Function: "fill", File: "/home/ada/sim/src/fill.cu", Line: 9, Module: "/home/ada/sim/sim"},
			"src/fill.cu:9 fill", "fill (src/fill.cu)", "src/fill.cu:9"},
		{symbol.Frame{Function: "fill", Module: "/home/ada/sim/sim"}, "fill (sim)", "fill (sim)", ""},
		{symbol.Frame{Module: "/home/ada/sim/sim", Address: 0x1234, Start: 0x1200}, "sim+0x1200", "sim+0x1200", ""},
		{symbol.Frame{Kind: symbol.JIT, Address: 0x7f0000001234}, "[jit]", "[jit]", ""},
		{symbol.Frame{Function: "at::_ops::addmm::call", Module: "/x/libtorch_cpu.so"}, "aten::addmm", "aten::addmm",
			""},
	} {
		f := j.frame(test.f)
		if got := j.Site(f); got != test.site {
			t.Errorf("site %q, want %q", got, test.site)
		}
		if got := j.Function(f); got != test.function {
			t.Errorf("function %q, want %q", got, test.function)
		}
		if got := j.Line(f); got != test.line {
			t.Errorf("line %q, want %q", got, test.line)
		}
	}
	for key, want := range map[string]string{"train.py:41 Block.forward": "train.py Block.forward",
		"train.py:41": "train.py", "fill (sim)": "fill (sim)",
		"std::vector<x:1>::grow (sim)": "std::vector<x:1>::grow (sim)", report.NoStack: report.NoStack} {
		if got := WithoutLine(key); got != want {
			t.Errorf("%q without its line is %q, want %q", key, got, want)
		}
	}
}

// The user's patterns take precedence over folders; the last match decides.
func TestOwnPatterns(t *testing.T) {
	t.Parallel()
	j := NewClassifier(trace.Info{"python.version": "3.11"}, []string{"*/site-packages/ours/*", "!*/vendored/*",
		"*/vendored/but_this.py"})
	for file, want := range map[string]bool{
		"/v/site-packages/ours/a.py":   true,
		"/v/site-packages/theirs/a.py": false,
		"/app/a.py":                    true,
		"/app/vendored/a.py":           false,
		"/app/vendored/but_this.py":    true,
		"":                             false,
	} {
		if got := j.userFile(file); got != want {
			t.Errorf("%q: %v", file, got)
		}
	}
}
