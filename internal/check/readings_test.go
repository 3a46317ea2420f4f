package check

import (
	"testing"
)

// TestOwnersAreReadTogether: each gate on an owner read the trace twice more, so that a budget of twenty owners of a
// trace of hours took hours. All of them are one reading, however many there are, with the figures that each has alone.
func TestOwnersAreReadTogether(t *testing.T) {
	var gates []Gate
	for _, text := range []string{"max tag:kv_cache=1GiB", "max tag:early=1GiB", "max category:param=1GiB",
		"max module:model=1GiB", "max site:*serve=1GiB", "max operator:aten::mm=1GiB", "max library:libnccl=1GiB",
		"max tag:kv_cache=2GiB", "compare tag:weights", "max peak=1GiB", "assert no-finding=alarm"} {
		g, err := gate(t, text)
		if err != nil {
			t.Fatal(err)
		}
		gates = append(gates, g)
	}
	early := story{kv: 100, rank: -1, early: 80}
	base, err := NewBaseline("base.json", []*Trace{early.trace(t)}, gates)
	if err != nil {
		t.Fatal(err)
	}
	measured := func(gates ...Gate) (*Outcome, int64) {
		trace := early.trace(t)
		before := bytesRead
		o := (&Plan{Gates: gates, Baseline: base}).Check([]*Trace{trace})
		return o, bytesRead - before
	}
	together, read := measured(gates...)
	if together.Status != Passed || len(together.Results) != len(gates) {
		t.Fatalf("%+v", together)
	}
	for i, g := range gates {
		alone, readAlone := measured(g)
		if owner := g.Subject.Name != ""; owner && (readAlone == 0 || readAlone != read) || !owner && readAlone != 0 {
			t.Errorf("%s: %d bytes are read for it alone, %d for all", g.Text, readAlone, read)
		}
		if value := func(r Result) Amount {
			if r.Value == nil {
				return Amount{}
			}
			return r.Value.Amount
		}; value(alone.Results[0]) != value(together.Results[i]) {
			t.Errorf("%s: %s alone, %s with the others", g.Text, value(alone.Results[0]), value(together.Results[i]))
		}
	}
}
