package report

import "testing"

// Two files are of one process if all that both know of it is the same: ranks in containers may share number and time.
func TestSameProcess(t *testing.T) {
	one := Process{PID: 7, Started: "2026-11-27T10:00:00.5Z", Host: "a", Job: "3", Container: "c1", Rank: new(4)}
	for name, c := range map[string]struct {
		change func(*Process)
		same   bool
	}{
		"a copy":                {func(*Process) {}, true},
		"a copy to be shared":   {func(p *Process) { p.Host, p.Job, p.Container = "", "", "" }, true},
		"without a rank":        {func(p *Process) { p.Rank = nil }, true},
		"another rank":          {func(p *Process) { p.Rank = new(5) }, false},
		"another container":     {func(p *Process) { p.Container = "c2" }, false},
		"another host":          {func(p *Process) { p.Host = "b" }, false},
		"another time":          {func(p *Process) { p.Started = "2026-11-27T10:00:01.5Z" }, false},
		"another number":        {func(p *Process) { p.PID = 8 }, false},
		"a snapshot, not a run": {func(p *Process) { p.Snapshot = true }, false},
	} {
		other := one
		c.change(&other)
		if one.SameAs(&other) != c.same || other.SameAs(&one) != c.same {
			t.Errorf("%s: want %t", name, c.same)
		}
	}
	if nothing := (Process{}); nothing.SameAs(&nothing) {
		t.Error("processes of which nothing is known count as one")
	}
}
