//go:build e2e

package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

// iterationRow mirrors testdata/oracle/iterations.py.
type iterationRow struct {
	Peak         uint64 `json:"peak"`
	End          uint64 `json:"end"`
	ReservedPeak uint64 `json:"reserved_peak"`
	ReservedEnd  uint64 `json:"reserved_end"`
	Requested    uint64 `json:"requested"` // 0: this version does not count it
	Allocs       uint64 `json:"allocs"`
	Frees        uint64 `json:"frees"`
	Parameters   uint64 `json:"parameters"`
	Gradients    uint64 `json:"gradients"`
	States       uint64 `json:"states"`
}

// model is a training script and what is special about it.
type model struct {
	name     string
	args     []string
	packages bool // of Hugging Face
}

var models = []model{
	{"neumf", []string{"neumf.py", "--steps", "6"}, false},
	{"gpt2", []string{"gpt2.py", "--steps", "3"}, false},
	{"resnet50", []string{"resnet50.py", "--steps", "3"}, false},
	{"lstm", []string{"lstm.py", "--steps", "4"}, false},
	{"llama", []string{"transformer_hf.py"}, true},
	{"llama-checkpointing", []string{"transformer_hf.py", "--checkpointing"}, true},
	{"llama-lora", []string{"transformer_hf.py", "--lora"}, true},
	{"bert", []string{"transformer_hf.py", "--model", "bert"}, true},
	{"accelerate", []string{"accelerated.py"}, true}, // an optimizer in a wrapper, two batches a step, half precision
}

// program returns the model as a run under a framework. It cannot import memtrace's package, so that only the framework
// itself marks where an iteration ends.
func (m model) program(t *testing.T, framework string) program {
	t.Helper()
	p := program{framework: framework, args: m.args, env: []string{"PYTHONPATH="}}
	if m.packages {
		p = p.withPackages(t)
	}
	return p
}

// modelsOn lists the models to train on a version of PyTorch: those that are named, or with MODELS=all, for nightly
// runs, all.
func modelsOn(names ...string) []model {
	var list []model
	for _, m := range models {
		if os.Getenv("MODELS") == "all" || slices.Contains(names, m.name) {
			list = append(list, m)
		}
	}
	return list
}

func modelNamed(name string) model {
	return models[slices.IndexFunc(models, func(m model) bool { return m.name == name })]
}

// TestIterations: iteration by iteration a trace agrees with PyTorch's own counters, to the byte, and the categories
// add up to it. An optimizer's tensors have names.
func TestIterations(t *testing.T) {
	t.Parallel()
	for framework, list := range map[string][]model{
		torch27: modelsOn("neumf", "gpt2", "resnet50", "lstm", "llama", "llama-checkpointing", "llama-lora", "bert",
			"accelerate"),
		torch215: modelsOn("gpt2", "llama-checkpointing", "accelerate"),
		torch113: {modelNamed("neumf"), modelNamed("gpt2"), modelNamed("lstm")},
	} {
		for _, m := range list {
			t.Run(framework+"/"+m.name, func(t *testing.T) {
				t.Parallel()
				// llama is as with checkpointing, but for less
				rarely(t, m.name == "llama" || m.name == "bert" || framework == torch215 &&
					m.name == "llama-checkpointing")
				if m.name != "gpt2" {
					extended(t)
				}
				r := m.program(t, framework).watchedBy("iterations.py").record(t)
				rows := oracleJSON[[]iterationRow](t, r)
				tr := trainingOf(t, r.trace)
				if tr.IterationsBy != "optimizer" || tr.Level != "framework" {
					t.Fatalf("iterations by %q at level %q", tr.IterationsBy, tr.Level)
				}
				compareIterations(t, tr, rows)
				compareSizes(t, tr, rows[len(rows)-2])
			})
		}
	}
}

// compareIterations compares every iteration with the oracle's.
func compareIterations(t *testing.T, tr *report.Training, rows []iterationRow) {
	t.Helper()
	if len(tr.Iterations) != len(rows) {
		t.Fatalf("%d iterations, the program made %d", len(tr.Iterations), len(rows))
	}
	others := column(t, tr, "Others")
	before := iterationRow{}
	for i, got := range tr.Iterations {
		want := rows[i]
		equal(t, "peak", got.Peak.Bytes, want.Peak)
		equal(t, "sum over the categories at the peak", addUp(got.Peak.Held), want.Peak)
		equal(t, "reserved", got.ReservedPeakBytes, want.ReservedPeak)
		equal(t, "allocations", got.AllocCount, want.Allocs-before.Allocs)
		if i < len(rows)-1 { // what is freed while the interpreter ends the oracle does not see
			equal(t, "bytes at the end", addUp(got.End), want.End)
			equal(t, "reserved at the end", got.ReservedEndBytes, want.ReservedEnd)
			compareRequested(t, &got, want)
			equal(t, "frees", got.FreeCount, want.Frees-before.Frees)
		}
		if got.Peak.Held[others]*100 > got.Peak.Bytes {
			t.Errorf("iteration %d: %d of %d bytes are under Others", got.Number, got.Peak.Held[others], got.Peak.Bytes)
		}
		if got.Ended != (i < len(rows)-1) {
			t.Errorf("iteration %d ended: %t", got.Number, got.Ended)
		}
		checkPhases(t, &got, others)
		before = want
	}
}

// compareRequested: what was requested of the blocks that live when an iteration ends is what PyTorch counts, and with
// the rest makes their bytes.
func compareRequested(t *testing.T, it *report.Iteration, want iterationRow) {
	t.Helper()
	if want.Requested == 0 {
		// of the smallest blocks it is known everywhere
		if it.RequestedEnd != nil && it.RequestedEnd.UnknownBytes == 0 {
			t.Errorf("iteration %d: all requests are told of a version that does not tell them: %+v", it.Number,
				it.RequestedEnd)
		}
		return
	}
	if it.RequestedEnd == nil {
		t.Errorf("iteration %d: what was requested is not known", it.Number)
		return
	}
	equal(t, "requested at the end", it.RequestedEnd.Bytes, want.Requested)
	equal(t, "requested and rest", it.RequestedEnd.Bytes+it.RequestedEnd.RestBytes, want.End)
	equal(t, "of unknown request", it.RequestedEnd.UnknownBytes, 0)
}

// checkPhases: the moments of the phases add up, are no higher than the peak, and one of them is the peak if its phase
// is the peak's.
func checkPhases(t *testing.T, it *report.Iteration, others int) {
	t.Helper()
	phases := map[string]*report.IterationMoment{"forward": it.Forward, "backward": it.Backward,
		"optimizer": it.Optimizer}
	for phase, m := range phases {
		if m == nil {
			if it.Ended {
				t.Errorf("iteration %d has no %s", it.Number, phase)
			}
			continue
		}
		if m.Bytes != addUp(m.Held) || m.Bytes > it.Peak.Bytes {
			t.Errorf("iteration %d, %s: %d bytes, %d in the categories; the peak is %d", it.Number, phase, m.Bytes,
				addUp(m.Held), it.Peak.Bytes)
		}
		if m.Held[others]*100 > m.Bytes {
			t.Errorf("iteration %d, %s: %d of %d bytes are under Others", it.Number, phase, m.Held[others], m.Bytes)
		}
	}
	if m := phases[it.Peak.Phase]; m != nil {
		equal(t, "the highest moment of the phase of the peak", m.Bytes, it.Peak.Bytes)
	}
}

// compareSizes: the bytes of the named parameters, gradients and states are all that there are.
func compareSizes(t *testing.T, tr *report.Training, want iterationRow) {
	t.Helper()
	var parameters, gradients, states uint64
	for _, p := range tr.Parameters {
		if p.Category == "parameter" {
			parameters += p.Bytes
		}
		gradients += p.Gradient
		for _, s := range p.States {
			states += s.Bytes
		}
		if p.BlockBytes < p.Bytes || p.GradBlock < p.Gradient {
			t.Errorf("%s: %d bytes in a block of %d, gradient %d in %d", p.Name, p.Bytes, p.BlockBytes, p.Gradient,
				p.GradBlock)
		}
		if strings.Contains(p.Name, "(no module)") {
			t.Errorf("%s: nothing is known of it", p.Name)
		}
	}
	equal(t, "parameters", parameters, want.Parameters)
	equal(t, "gradients", gradients, want.Gradients)
	equal(t, "states", states, want.States)
}

// TestNamesOnOldPyTorch: without a hook for all optimizers names are the same. The scripts of other tests need more
// than 1.13 has.
func TestNamesOnOldPyTorch(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"names_optimizers.py"}, {"names_modules.py"}, {"names_inference.py", "end"},
		{"names_inference.py", "oom"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			r, marks := runNames(t, program{framework: torch113, args: args})
			compareNames(t, r, marks)
			if notes := memtrace(t, "report", "--details", r.trace); !strings.Contains(notes,
				"is not tied to its forward pass") {
				t.Errorf("no note says that backward is not tied to forward, which it cannot be:\n%s", notes)
			}
		})
	}
}

// neumfWeights are the bytes of every weight of the model, its bias included.
var neumfWeights = map[string]uint64{
	"mf_user": 35_454_208, "mf_item": 6_846_464, "mlp_user": 70_908_416, "mlp_item": 13_692_928,
	"mlp.0": 263_168, "mlp.1": 131_584, "mlp.2": 33_024, "predict": 516,
}

const neumfTotal = 127_330_308

// TestNeuMF: a script that knows nothing of memtrace, and the table that one had to patch a framework for: every
// weight, its gradient, and what Adam keeps for it. What forward saves for backward, and what backward passes on, is
// the same in every iteration.
func TestNeuMF(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, framework := range []string{torch27, torch215, torch113} {
		for _, optimizer := range []string{"foreach", "fused"} {
			t.Run(framework+"/"+optimizer, func(t *testing.T) {
				t.Parallel()
				rarely(t, framework != torch27 && optimizer == "fused")
				args := []string{"neumf.py", "--steps", "12"}
				if optimizer == "fused" {
					args = append(args, "--fused")
				}
				r := program{framework: framework, args: args}.record(t)
				tr := trainingOf(t, r.trace)
				checkNeuMF(t, tr, optimizer == "fused")
				checkSteady(t, tr, 12)
			})
		}
	}
}

// checkNeuMF compares the table of parameters with the model's shapes.
func checkNeuMF(t *testing.T, tr *report.Training, fused bool) {
	t.Helper()
	weights, gradients, states := map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
	count := 0
	for _, p := range tr.Parameters {
		if p.Category != "parameter" {
			continue
		}
		count++
		_, path, _ := strings.Cut(p.Name, ".")
		layer := strings.TrimSuffix(strings.TrimSuffix(path, ".weight"), ".bias")
		weights[layer] += p.Bytes
		gradients[layer] += p.Gradient
		for _, s := range p.States {
			states[s.Name] += s.Bytes
		}
	}
	var total uint64
	for layer, want := range neumfWeights {
		equal(t, layer, weights[layer], want)
		equal(t, "gradient of "+layer, gradients[layer], want)
		total += weights[layer]
	}
	equal(t, "weights", total, neumfTotal)
	if len(weights) != len(neumfWeights) {
		t.Errorf("the layers are %v", weights)
	}
	equal(t, "exp_avg", states["exp_avg"], neumfTotal)
	equal(t, "exp_avg_sq", states["exp_avg_sq"], neumfTotal)
	var counters uint64 // one number for each parameter, on the device only where the update itself counts
	if fused {
		counters = 4 * uint64(count)
	}
	equal(t, "step", states["step"], counters)
}

// checkSteady: from the second iteration on, each one needs what the one before it needed.
func checkSteady(t *testing.T, tr *report.Training, steps int) {
	t.Helper()
	if len(tr.Iterations) != steps+1 {
		t.Fatalf("%d iterations of %d steps", len(tr.Iterations), steps)
	}
	for _, category := range []string{"Feature maps", "Intermediate gradients"} {
		at := column(t, tr, category)
		second := tr.Iterations[1].Highest[at]
		if second == 0 {
			t.Errorf("no bytes under %s", category)
		}
		for _, it := range tr.Iterations[2:steps] {
			if it.Highest[at] != second {
				t.Errorf("%s: %d bytes in iteration %d, %d in the second", category, it.Highest[at], it.Number, second)
			}
		}
	}
}

// TestCountersUnchanged: PyTorch counts the same with the library and without it, step by step. An adapter that keeps
// what it read, a frame's variables for one, would keep tensors.
func TestCountersUnchanged(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, framework := range []string{torch27, torch215} {
		for _, m := range models {
			if m.name != "neumf" && m.name != "lstm" && m.name != "llama-lora" {
				continue
			}
			t.Run(framework+"/"+m.name, func(t *testing.T) {
				t.Parallel()
				rarely(t, framework != torch27 && m.name != "neumf" || m.name == "lstm")
				traced := m.program(t, framework).watchedBy("iterations.py")
				plain := traced
				plain.plain = true
				got := oracleJSON[[]iterationRow](t, traced.record(t))
				want := oracleJSON[[]iterationRow](t, plain.record(t))
				if !slices.Equal(got, want) {
					t.Errorf("with the library PyTorch counts\n%+v\nwithout it\n%+v", got, want)
				}
			})
		}
	}
}
