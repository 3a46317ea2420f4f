package report

import (
	"testing"

	"memtrace/trace"
)

// A loss of 4 bytes, the graph of which the backward pass had freed, came before 32 KiB: holders are in the order of
// what is freed with them, and graphs have saved no more than there is.
func TestKeptOf(t *testing.T) {
	holders := []trace.Holder{{Path: "spent", Bytes: 4, GraphNodes: 10, GraphOutputs: 768 << 10},
		{Path: "small", Bytes: 32 << 10}, {Path: "said", Bytes: 4, GraphNodes: 3, GraphBytes: 40 << 10}}
	for _, c := range []struct {
		saved uint64
		want  []string
		frees uint64 // the first
	}{
		{0, []string{"said", "small", "spent"}, 40<<10 + 4},
		{1 << 20, []string{"spent", "said", "small"}, 768<<10 + 4},
		{36 << 10, []string{"said", "spent", "small"}, 40<<10 + 4},
	} {
		for i, k := range KeptOf(holders, c.saved) {
			about := k.Path == "spent" && c.saved > 0
			if k.Path != c.want[i] || i == 0 && k.FreesBytes != c.frees || k.FreesAbout != about {
				t.Errorf("%d saved: number %d is %s with %d, want %s", c.saved, i, k.Path, k.FreesBytes, c.want[i])
			}
		}
	}
}
