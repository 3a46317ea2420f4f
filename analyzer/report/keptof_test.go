package report

import (
	"testing"

	"memtrace/trace"
)

// Holders are in the order of what is freed with them alone. Where PyTorch does not say what graphs have saved, it is
// as much as they computed if they are all graphs that have anything, and otherwise the most that it can be; a loss of
// 4 bytes whose graph the backward pass had freed was said to hold 768 KiB.
func TestKeptOf(t *testing.T) {
	const kib = 1 << 10
	sure := func(path string, bytes, ends, outputs, ended uint64) trace.Holder {
		return trace.Holder{Path: path, Bytes: bytes, GraphOutputs: outputs, EndsKnown: true, EndsSurely: true,
			EndsBytes: ends, EndsOutputs: ended}
	}
	for _, c := range []struct {
		name    string
		holders []trace.Holder
		saved   uint64
		want    []Kept
	}{
		{"alone", []trace.Holder{sure("small", 32*kib, 32*kib, 0, 0), sure("list", kib, kib, 96*kib, 96*kib)},
			100 * kib, []Kept{{FreesBytes: 97 * kib, FreesAbout: true}, {FreesBytes: 32 * kib}}},
		{"more is saved than computed", []trace.Holder{sure("list", kib, kib, 50*kib, 50*kib)}, 100 * kib,
			[]Kept{{FreesBytes: 101 * kib, FreesAtMost: true}}},
		{"freed by a backward pass", []trace.Holder{sure("spent", 4, 4, 768*kib, 768*kib)}, 0,
			[]Kept{{FreesBytes: 4}}},
		{"two graphs", []trace.Holder{sure("a", kib, kib, 60*kib, 60*kib), sure("b", 2, 2, 40*kib, 40*kib)},
			100 * kib, []Kept{{FreesBytes: 61 * kib, FreesAtMost: true}, {FreesBytes: 40*kib + 2, FreesAtMost: true}}},
		{"one graph of two", []trace.Holder{sure("losses", 48, 48, 0, 0), sure("state", kib, kib, 100*kib, 0)},
			100 * kib, []Kept{{FreesBytes: kib, SharedBytes: 100 * kib}, {FreesBytes: 48}}},
		{"in two lists", []trace.Holder{sure("a", 90*kib, 0, 0, 0), sure("b", 10*kib, 10*kib, 0, 0)}, 0,
			[]Kept{{FreesBytes: 10 * kib}, {SharedBytes: 90 * kib}}},
		{"cut short", []trace.Holder{{Bytes: 9 * kib, EndsKnown: true, EndsBytes: 9 * kib}}, 0,
			[]Kept{{FreesBytes: 9 * kib, FreesAtMost: true}}},
		{"of an older recording", []trace.Holder{{Bytes: 9 * kib, GraphBytes: kib}}, 0,
			[]Kept{{FreesBytes: 10 * kib, FreesAtMost: true}}},
	} {
		for i, k := range KeptOf(c.holders, c.saved) {
			got := Kept{FreesBytes: k.FreesBytes, FreesAbout: k.FreesAbout, FreesAtMost: k.FreesAtMost,
				SharedBytes: k.SharedBytes}
			if got.FreesBytes != c.want[i].FreesBytes || got.FreesAbout != c.want[i].FreesAbout ||
				got.FreesAtMost != c.want[i].FreesAtMost || got.SharedBytes != c.want[i].SharedBytes {
				t.Errorf("%s: %s %+v, want %+v", c.name, k.Path, got, c.want[i])
			}
		}
	}
}
