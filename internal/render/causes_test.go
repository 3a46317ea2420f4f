package render

import (
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// What passes that lost their backward pass kept is put down to an exception only where a traceback leads to it.
func TestAbandonedPasses(t *testing.T) {
	const mib = 1 << 20
	kept := func(types string, bytes uint64) report.Kept {
		return report.Kept{Holder: trace.Holder{Path: "__main__.held[*]", Types: types, Tensors: 1}, FreesBytes: bytes}
	}
	byException := kept("module, list, ValueError, traceback, frame, Tensor", 60*mib)
	byList := kept("module, list, Tensor", 60*mib)
	small := kept("module, ValueError, traceback, frame, Tensor", 10*mib)
	u := &report.Undifferentiated{Site: "train.py:7", Passes: 3, Bytes: 64 * mib}
	for _, c := range []struct {
		name string
		k    *report.KeptBy
		told bool
		want string
	}{
		{"by an exception", &report.KeptBy{Holders: []report.Kept{byException}}, true, "keep str(e) instead."},
		{"by a list", &report.KeptBy{Holders: []report.Kept{byList, small}}, true, "unlike others of that line."},
		{"not told", &report.KeptBy{Holders: []report.Kept{byException}}, false, "or an exception with its traceback."},
		{"unknown", nil, false, "or an exception with its traceback."},
	} {
		got := abandonedSentence(u, c.k, c.told)
		const begins = "At the peak, 3 forward passes of train.py:7 kept 64.0 MiB for a backward pass that never came"
		if !strings.HasPrefix(got, begins) || !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}
