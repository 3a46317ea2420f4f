//go:build e2e

package e2e

import "testing"

// MXNet has no reports of its own; the driver's account is the oracle, change by change.
func TestMXNet(t *testing.T) {
	t.Parallel()
	p := program{framework: mxnet, args: []string{"mxnet_gluon.py"}}
	r := p.record(t)
	compareAccounts(t, r)
	rep := jsonReport(t, r.trace, "--by", "library")
	if rep.Driver.AllocCount == 0 || rep.Process.Ended != "clean" {
		t.Errorf("the report says: %s", excerpt(rep))
	}
	for _, g := range rep.Groups {
		if g.By == "library" && g.Rows[0].Key != "libmxnet.so" {
			t.Errorf("first owner is %s", g.Rows[0].Key)
		}
	}
}
