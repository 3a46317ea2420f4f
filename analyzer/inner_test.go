package analyzer

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// A trainer runs the program's loop: the line that allocates is found in the library, the program's own line stays the
// site, and the operator is known.
func TestInnerLine(t *testing.T) {
	t.Parallel()
	const site = "/venv/lib/python3.11/site-packages/"
	var tables trace.Tables
	frames := []trace.PyFrame{}
	for i, f := range []struct{ name, file string }{
		{"softmax", site + "torch/nn/functional.py"},
		{"wrapper", "/usr/lib/python3.11/contextlib.py"},
		{"attend", site + "transformers/models/llama/modeling_llama.py"},
		{"train", site + "transformers/trainer.py"},
		{"main", "/home/ada/finetune.py"},
	} {
		id := trace.CodeID(i + 1)
		tables.AddCode(trace.Code{ID: id, Name: f.name, QualName: f.name, File: f.file, FirstLine: int32(10 * (i + 1))})
		frames = append(frames, trace.PyFrame{Code: id})
	}
	tables.AddPyStack(trace.PyStack{ID: 1, Frames: frames})
	tables.AddPyStack(trace.PyStack{ID: 2, Frames: frames[:2]})
	r := profile.Resolver{Tables: &tables, Stacks: callstack.NewStacks(&tables, &callstack.LinkedStacks{})}
	for _, c := range []struct {
		stack                  trace.StackID
		inner, site, label, op string
	}{
		{1, "transformers/models/llama/modeling_llama.py:30 attend", "ada/finetune.py:50 main",
			"transformers/…/modeling_llama.py:30 attend", report.NoOperator},
		{2, "torch/nn/functional.py:10 softmax", "torch/nn/functional.py:10 softmax", "", report.NoOperator},
		{9, report.NoStack, report.NoStack, "", report.NoOperator},
	} {
		id := callstack.Pair{Native: 0, Python: c.stack}.ID()
		if inner, site, label, op := profile.InnerKey(&r, id), profile.SiteKey(&r, id), profile.InnerLabel(&r, id),
			profile.OperatorText(&r, id); inner != c.inner || site != c.site || label != c.label || op != c.op {
			t.Errorf("stack %d: inner %q, site %q, label %q, operator %q, want %+v", c.stack, inner, site, label, op, c)
		}
	}
}

func TestShortPlace(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"a.py:1 f":                   "a.py:1 f",
		"p/q/a.py:1 f":               "p/q/a.py:1 f",
		"p/q/r/a.py:1 f":             "p/…/a.py:1 f",
		"backward of p/q/r/a.py:1 f": "backward of p/…/a.py:1 f",
		"backward near x":            "backward near x",
		"":                           "",
	} {
		if got := profile.ShortPlace(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}
