package diff

import (
	"fmt"
	"testing"

	"memtrace/analyzer/report"
)

// TestDiffParameters compares parameters by name and category: new, gone, grown, shrunk, moved from gradient to state,
// and untouched ones.
func TestDiffParameters(t *testing.T) {
	parameter := func(name string, bytes, gradient, state uint64) report.Parameter {
		return report.Parameter{Name: name, Category: "parameter", Bytes: bytes, Gradient: gradient,
			States: []report.State{{Name: "exp_avg", Bytes: state / 2}, {Name: "exp_avg_sq", Bytes: state - state/2}}}
	}
	base := &report.Training{Parameters: []report.Parameter{parameter("same", 8, 8, 16), parameter("grew", 8, 8, 16),
		parameter("gone", 100, 0, 0), parameter("shrank", 64, 64, 128), parameter("moved", 8, 8, 0)}}
	changed := &report.Training{Parameters: []report.Parameter{parameter("new", 3, 0, 0), parameter("moved", 8, 0, 8),
		parameter("same", 8, 8, 16), parameter("shrank", 32, 32, 64), parameter("grew", 16, 16, 32),
		{Name: "same", Category: "buffer", Bytes: 1}}}
	var got []string
	for _, row := range diffParameters(base, changed) {
		got = append(got, fmt.Sprintf("%s %s %s %d %d %d", row.Category, row.Name, row.State, row.Bytes.Delta,
			row.Gradient.Delta, row.Optimizer.Delta))
	}
	want := []string{"parameter grew grew 8 8 16", "parameter new new 3 0 0", "buffer same new 1 0 0",
		"parameter moved shrank 0 -8 8", "parameter same same 0 0 0", "parameter gone gone -100 0 0",
		"parameter shrank shrank -32 -32 -64"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
	if rows := diffParameters(nil, changed); rows != nil {
		t.Errorf("without training on a side: %v", rows)
	}
	if rows := diffParameters(&report.Training{}, &report.Training{}); rows == nil || len(rows) != 0 {
		t.Errorf("without parameters: %v, want an empty list", rows)
	}
}
