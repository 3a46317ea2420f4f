package cause

import (
	"fmt"
	"slices"
	"testing"

	"memtrace/analyzer/report"
)

// parameters makes three of a model's: with gradients, states of an optimizer, both or neither.
func parameters(model, with string) (list []report.Parameter) {
	for i, name := range []string{"0.weight", "0.bias", "2.weight", "2.bias"} {
		p := report.Parameter{Name: model + "." + name, Category: "parameter", Bytes: uint64(100 * (i + 1))}
		if with == "gradients" || with == "both" {
			p.GradBlock = p.Bytes
		}
		if with == "states" || with == "both" {
			p.States = []report.State{{Name: "exp_avg", BlockBytes: p.Bytes}}
		}
		list = append(list, p)
	}
	return list
}

func TestCopies(t *testing.T) {
	other := report.Parameter{Name: "ema.3.weight", Category: "parameter", Bytes: 7}
	for _, test := range []struct {
		name string
		list []report.Parameter
		want []string
	}{
		{"a moving average", slices.Concat(parameters("model", "both"), parameters("ema", "")),
			[]string{"ema of model 4 1000"}},
		{"inside of one module", slices.Concat(parameters("lit.student", "both"), parameters("lit.teacher", "")),
			[]string{"lit.teacher of lit.student 4 1000"}},
		{"two", slices.Concat(parameters("model", "gradients"), parameters("a", ""), parameters("b", "")),
			[]string{"a of model 4 1000", "b of model 4 1000"}},
		{"both are trained", slices.Concat(parameters("a", "both"), parameters("b", "both")), nil},
		{"none is trained", slices.Concat(parameters("a", ""), parameters("b", "")), nil},
		{"another shape", slices.Concat(parameters("model", "both"), append(parameters("ema", ""), other)), nil},
		{"frozen layers", slices.Concat(parameters("m.h.0", ""), parameters("m.h.1", "both")), nil},
		{"nothing", nil, nil},
	} {
		var got []string
		copies, _ := Find(&report.Training{Parameters: test.list})
		for _, c := range copies {
			got = append(got, fmt.Sprintf("%s of %s %d %d", c.Module, c.Of, c.Count, c.Bytes))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	if copies, idle := Find(nil); copies != nil || idle != nil {
		t.Error("causes without training")
	}
}

// holding is a module that holds this much of feature maps and of intermediate gradients at the peak, itself.
func holding(name string, maps, intermediate uint64, children ...report.Module) report.Module {
	sum := []uint64{maps, intermediate}
	for i := range children {
		children[i].Path = name + "." + children[i].Path
		for c, bytes := range children[i].Moment("peak") {
			sum[c] += bytes
		}
	}
	return report.Module{Path: name, Children: children,
		Moments: []report.ModuleBytes{{Moment: "peak", Own: []uint64{maps, intermediate}, Subtree: sum}}}
}

func TestUntrained(t *testing.T) {
	passes := holding("teacher", 0, 0, holding("0", 10, 0), holding("1", 20, 0), holding("2", 30, 0))
	result := holding("teacher", 0, 0, holding("0", 0, 0), holding("1", 0, 0), holding("2", 30, 0))
	through := holding("teacher", 0, 0, holding("0", 10, 0), holding("1", 20, 5), holding("2", 30, 0))
	through.Backward = true
	for _, test := range []struct {
		name       string
		with       string // the teacher's parameters
		student    string
		optimizers uint64
		teacher    report.Module
		want       []string
	}{
		{"no no_grad", "gradients", "both", 1, passes, []string{"teacher 60 1000"}},
		{"its result is detached", "", "both", 1, passes, []string{"teacher 60 0"}},
		{"with no_grad", "", "both", 1, result, nil},
		{"a frozen network in a loss", "", "both", 1, through, nil},
		{"a network in a loss that is not frozen", "gradients", "both", 1, through, []string{"teacher 60 1000"}},
		{"another optimizer may have it", "gradients", "both", 2, passes, nil},
		{"nobody knows what an optimizer without states has", "gradients", "gradients", 1, passes, nil},
		{"both are trained", "both", "both", 2, passes, nil},
		{"no optimizer", "gradients", "both", 0, passes, nil},
	} {
		tr := &report.Training{Categories: []string{"Feature maps", "Intermediate gradients"},
			OptimizerCount: test.optimizers, Modules: &report.Module{Children: []report.Module{test.teacher}},
			Parameters: slices.Concat(parameters("student", test.student), parameters("teacher", test.with))}
		var got []string
		_, idle := Find(tr)
		for _, i := range idle {
			got = append(got, fmt.Sprintf("%s %d %d", i.Module, i.Activations, i.Gradients))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
