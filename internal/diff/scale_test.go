package diff

import (
	"testing"

	"memtrace/analyzer/report"
)

// trained is a process with the given bytes of parameters, and of activations in two modules.
func trained(parameters, first, second uint64) *report.Summary {
	module := func(path string, maps uint64) report.Module {
		return report.Module{Path: path, Moments: []report.ModuleBytes{{Moment: "peak", Own: []uint64{0, maps}}}}
	}
	return &report.Summary{Training: &report.Training{Categories: []string{"Parameters", "Feature maps"},
		Iterations: []report.Iteration{{Highest: []uint64{parameters, first + second}}},
		Modules:    &report.Module{Children: []report.Module{module("a", first), module("b", second)}}}}
}

func TestScale(t *testing.T) {
	// where the optimizer makes the peak, activations are those of the forward pass
	late := trained(100, 40, 400)
	for i := range late.Training.Modules.Children {
		m := &late.Training.Modules.Children[i]
		m.Moments[0].Moment = "forward"
		m.Moments = append(m.Moments, report.ModuleBytes{Moment: "peak", Own: []uint64{0, 0}})
	}
	for _, test := range []struct {
		name          string
		base, changed *report.Summary
		want          *Scale
	}{
		{"a larger batch", trained(100, 40, 400), trained(100, 70, 700), &Scale{1.75, true}},
		{"a smaller batch", trained(100, 40, 400), trained(100, 20, 200), &Scale{0.5, true}},
		{"longer sequences", trained(100, 400, 400), trained(100, 800, 1600), &Scale{3, false}},
		{"a peak of the optimizer", late, trained(100, 70, 700), &Scale{1.75, true}},
		{"as much", trained(100, 40, 400), trained(100, 41, 400), nil},
		{"another model", trained(100, 40, 400), trained(150, 70, 700), nil},
		{"no training", &report.Summary{}, trained(100, 70, 700), nil},
		{"no activations", trained(100, 0, 0), trained(100, 70, 700), nil},
	} {
		got := scaleOf(test.base, test.changed)
		if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}
