//go:build e2e

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/guest"
)

// Where a trainer runs the loop, one line of the program has nearly all memory. The report's first sentences name the
// library's line, the operator and the modules instead; the library is recognized by the metadata beside it, as it is
// not in a folder called site-packages.
func TestTrainerLinesAreSkipped(t *testing.T) {
	t.Parallel()
	extended(t)
	r := program{framework: torch27, args: []string{"finetune.py", "--memory-stats", "STATS"}}.
		withPackages(t, filepath.Join(guest.Root(), "python")).record(t)
	compareTorch(t, r)
	v := jsonReport(t, r.trace).Verdict
	if v.Category == nil || v.Owner == nil || v.Operator == nil || v.Module == nil {
		t.Fatalf("%q", v.Sentences)
	}
	if v.Category.Name != "Feature maps" || v.Owner.By != "inner" ||
		!strings.HasSuffix(v.Owner.Name, " eager_attention_forward") ||
		!strings.Contains(v.Owner.Name, "/modeling_llama.py:") ||
		v.Operator.Name != "aten::_softmax" || v.Module.Name != "model.model.layers.{0..7}.self_attn" {
		t.Errorf("%+v %+v %+v %+v", *v.Category, *v.Owner, *v.Operator, *v.Module)
	}
	text := memtrace(t, "report", r.trace)
	for _, words := range []string{"modeling_llama.py:", "model.model.layers.{0..7}.self_attn  8 × ",
		"By innermost line outside of PyTorch"} {
		if !strings.Contains(text, words) {
			t.Errorf("the first screen has no %q:\n%s", words, text)
		}
	}
	if lines := strings.Count(text, "\n"); lines > 40 {
		t.Errorf("the first screen has %d lines", lines)
	}
	// The trace itself knows the packages, so that it can be read where they are not.
	if dump := memtrace(t, "dump", r.trace); !strings.Contains(dump, "info key=\"python.libraries\"") ||
		!strings.Contains(dump, "/transformers") {
		t.Error("the trace does not tell which packages are a library's")
	}
	// Told that the library is ours, its lines are the program's.
	own := memtrace(t, "report", "--by", "site", "--own", "*/transformers/*", r.trace)
	if !strings.Contains(own, "eager_attention_forward") {
		t.Errorf("--own:\n%s", own)
	}
}
