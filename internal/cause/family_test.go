package cause

import (
	"fmt"
	"testing"

	"memtrace/analyzer/report"
)

// served is a program whose iterations end at 1, 2, ... and that loads adapters at times.
func served(load map[string][]int64) *report.Summary {
	t := &report.Training{IterationsBy: report.IterationsByPeriod, Categories: []string{"Parameters"}}
	held := uint64(0)
	for name, times := range load {
		for i, at := range times {
			for _, part := range []string{"a", "b"} {
				full := fmt.Sprintf("adapters.%s%d.%s.weight", name, i, part)
				t.Parameters = append(t.Parameters, report.Parameter{Name: full, Category: "parameter", Bytes: 100,
					FromNS: at})
				held += 100
			}
		}
	}
	for i := range int64(20) {
		t.Iterations = append(t.Iterations, report.Iteration{Ended: true, EndNS: i,
			Peak: report.IterationMoment{Held: []uint64{held}}})
	}
	return &report.Summary{Training: t}
}

// Versions of one adapter are named where they came one after another and others like them are few.
func TestFamilyOf(t *testing.T) {
	one, all := []int64{1}, []int64{1, 3, 5, 7, 9}
	for _, c := range []struct {
		name string
		load map[string][]int64
		with func(s *report.Summary)
		want string
	}{
		{"versions", map[string][]int64{"acme-v": all, "beta-v": one, "c": one}, nil,
			"acme-v [0 1 2 3 4] 200 [beta-v c] 1"},
		{"two of others", map[string][]int64{"acme-v": {1, 3, 5, 7, 9, 11}, "beta-v": {1, 2}, "c": one}, nil,
			"acme-v [0 1 2 3 4 5] 200 [beta-v c] 2"},
		{"experts, which are made at once", map[string][]int64{"expert_": {1, 1, 1, 1, 1}, "shared_": one,
			"router_": one}, nil, ""},
		{"a model that is made before the first iteration", map[string][]int64{"block": {-9, -8, -7, -6, -5}, "in": one,
			"out": one}, nil, ""},
		{"no others", map[string][]int64{"acme-v": all}, nil, ""},
		{"all have as many", map[string][]int64{"acme-v": all, "beta-v": all, "c": all}, nil, ""},
		{"some were dropped", map[string][]int64{"acme-v": all, "beta-v": one, "c": one},
			func(s *report.Summary) { s.Training.Iterations[0].Peak.Held[0] -= 200 }, ""},
		{"other shapes", map[string][]int64{"acme-v": all, "beta-v": one, "c": one}, func(s *report.Summary) {
			for i := range s.Training.Parameters {
				s.Training.Parameters[i].Bytes -= uint64(i)
			}
		}, ""},
		{"no iterations", map[string][]int64{"acme-v": all, "beta-v": one, "c": one},
			func(s *report.Summary) { s.Training.IterationsBy = report.IterationsByNothing }, ""},
	} {
		s := served(c.load)
		if c.with != nil {
			c.with(s)
		}
		got := ""
		if f := FamilyOf(s); f != nil {
			got = fmt.Sprint(f.Name, " ", f.Numbers, " ", f.Each, " ", f.Others, " ", f.OthersMost)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if FamilyOf(&report.Summary{}) != nil {
		t.Error("a family without training")
	}
}
