package render

import (
	"testing"

	"memtrace/analyzer/report"
)

// An operator is named first only where it tells more than the purpose of the memory does.
func TestOperatorBelowALargerCategory(t *testing.T) {
	operator := &report.VerdictShare{By: "operator", Name: "aten::_to_copy", Bytes: 30 << 20, Share: 0.3}
	for _, c := range []struct {
		category, module *report.VerdictShare
		want             string
	}{
		{nil, nil, "30% came from operator aten::_to_copy (30.0 MiB)"},
		{&report.VerdictShare{Name: "Feature maps", Share: 0.2}, nil,
			"30% came from operator aten::_to_copy (30.0 MiB)"},
		{&report.VerdictShare{Name: "Gradients", Share: 0.45}, nil, ""},
		{&report.VerdictShare{Name: "Gradients", Share: 0.45},
			&report.VerdictShare{Name: "layers", Share: 0.5, Bytes: 50 << 20}, "50% was in module layers (50.0 MiB)"},
	} {
		v := &report.Verdict{Operator: operator, Category: c.category, Module: c.module}
		if got := partWords(v); got != c.want {
			t.Errorf("%+v, %+v: %q, want %q", c.category, c.module, got, c.want)
		}
	}
}
