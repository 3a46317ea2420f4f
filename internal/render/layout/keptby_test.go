package layout

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// The sentence names what somebody may want to drop, not that an optimizer has parameters.
func TestKeptByLeavesOutModels(t *testing.T) {
	const gib = 1 << 30
	kept := func(path, types string) report.Kept {
		return report.Kept{Holder: trace.Holder{Path: path, Types: types, Tensors: 2, Bytes: gib}, FreesBytes: gib}
	}
	k := &report.KeptBy{Holders: []report.Kept{
		kept("__main__.optimizer.param_groups[*]['params'][*]", "module, Adam, list, dict, list, Parameter"),
		kept("__main__.optimizer.state[*]['exp_avg']", "module, Adam, defaultdict, dict, Tensor"),
		kept("__main__.model._modules['0']._parameters['weight']", "module, Sequential, dict, Linear, dict, Parameter"),
		kept("__main__.history[*]", "module, list, Tensor")}}
	text, bytes := KeptBy(k, 4*gib)
	if want := "Kept by __main__.history[*]: 1.00 GiB (2 tensors)."; text != want || bytes != gib {
		t.Errorf("%q, %d bytes; want %q", text, bytes, want)
	}
}
