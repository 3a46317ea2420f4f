//go:build e2e

package e2e

import (
	"regexp"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

// verdictCase is a program and what a user finds in all views of its trace: the modules of one kind that hold most, as
// a pattern of their paths, and an operator, "" if none dominates.
type verdictCase struct {
	name     string
	program  program
	moment   []string // flags for the views
	title    string   // as the report writes the modules
	modules  string   // pattern
	others   []string // patterns of its siblings, which hold less
	operator string
}

func verdictCases() []verdictCase {
	torch := func(script string, env ...string) program {
		return program{framework: torch27, args: []string{script}, env: env}
	}
	lora := torch("lora.py", "NULLCUDA_MEM=3G")
	naive := program{framework: mxnet, args: []string{"mxnet_bert.py", "--layers", "6",
		"--width", "256"}, env: []string{"MXNET_ENGINE_TYPE=NaiveEngine"}}
	return []verdictCase{
		{"trainer", torch("finetune.py"), nil, "model.model.layers.{0..7}.self_attn",
			`model\.model\.layers\.\d+\.self_attn`,
			[]string{`model\.model\.layers\.\d+\.mlp`, `model\.model\.layers\.\d+\.input_layernorm`, `model\.lm_head`,
				`model\.model\.embed_tokens`}, "aten::_softmax"},
		{"lora", lora, []string{"--at", "oom"}, "model.base_model.model.model.layers.{0..7}.self_attn",
			`.*\.layers\.\d+\.self_attn`,
			[]string{`.*\.layers\.\d+\.mlp`, `.*\.layers\.\d+\.input_layernorm`, `.*\.lm_head`}, "aten::_to_copy"},
		{"accelerate", torch("accelerated.py"), nil, "model.h.{0..3}.mlp", `model\.h\.\d+\.mlp`,
			[]string{`model\.h\.\d+\.attn`, `model\.head`, `model\.wte`}, ""},
		{"loop", gpt2Training, nil, "model.h.{0..11}", `model\.h\.\d+`, []string{`model\.head`, `model\.wte`}, ""},
		{"mxnet", naive, nil, "bert.encoder.{0..5}", `bert\.encoder\.\d+`, []string{`bert\.decoder`, `bert\.words`,
			`softmaxcrossentropyloss0`}, ""},
	}
}

// below adds up the rows of a grouping whose keys match the pattern, or are below a match.
func below(list []report.Ledger, by, pattern string) (sum uint64) {
	matches := regexp.MustCompile(`^(?:` + pattern + `)(?:\.|$)`)
	for _, l := range list {
		for _, r := range l.Rows {
			if l.By == by && r.Owner == "blocks" && matches.MatchString(r.Key) {
				sum += r.Bytes
			}
		}
	}
	return sum
}

// TestVerdictNamesWhatViewsShow: the first sentence of a report names the modules and the operator that hold most when
// every row of the views is added up.
func TestVerdictNamesWhatViewsShow(t *testing.T) {
	t.Parallel()
	for _, c := range verdictCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.program.framework == torch27 && c.name != "loop" {
				extended(t)
				c.program = c.program.withPackages(t)
			}
			r := c.program.record(t)
			v := jsonReport(t, r.trace).Verdict
			all := jsonReport(t, r.trace, append(c.moment, "--by", "module,operator")...).Ledgers
			bytes := below(all, "module", c.modules)
			if value(v.Module).Name != c.title {
				t.Fatalf("the verdict names module %q: %q", value(v.Module).Name, v.Sentences)
			}
			if len(c.moment) == 0 { // at the moment memory ran out, views name no parameters
				equal(t, c.title, value(v.Module).Bytes, bytes)
			}
			for _, other := range c.others {
				if held := below(all, "module", other); held >= bytes {
					t.Errorf("%s holds %d, %s only %d", other, held, c.modules, bytes)
				}
			}
			if !strings.Contains(v.Sentences[0], "in module "+c.title+" and its submodules") {
				t.Errorf("the first sentence is %q", v.Sentences[0])
			}
			operator := regexp.MustCompile(`operator (\S+[^.,\s])`).FindStringSubmatch(v.Sentences[0])
			switch {
			case c.operator == "" && operator != nil, c.operator != "" &&
				(operator == nil || operator[1] != c.operator):
				t.Errorf("operator %q, want %q: %q", operator, c.operator, v.Sentences[0])
			case c.operator != "":
				equal(t, c.operator, value(v.Operator).Bytes, below(all, "operator", regexp.QuoteMeta(c.operator)))
			}
		})
	}
}

// With MXNet's default engine blocks have no module and no line; the report shows how to see them.
func TestVerdictOfMXNetEngine(t *testing.T) {
	t.Parallel()
	r := program{framework: mxnet, args: []string{"mxnet_bert.py"}}.record(t)
	if text := strings.Join(strings.Fields(memtrace(t, "report", r.trace)), " "); !strings.Contains(text,
		"a run with MXNET_ENGINE_TYPE=NaiveEngine shows lines and modules") {
		t.Errorf("%s", text)
	}
}
