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
		for i, k := range KeptOf(c.holders, c.saved, 0) {
			got := Kept{FreesBytes: k.FreesBytes, FreesAbout: k.FreesAbout, FreesAtMost: k.FreesAtMost,
				SharedBytes: k.SharedBytes}
			if got.FreesBytes != c.want[i].FreesBytes || got.FreesAbout != c.want[i].FreesAbout ||
				got.FreesAtMost != c.want[i].FreesAtMost || got.SharedBytes != c.want[i].SharedBytes {
				t.Errorf("%s: %s %+v, want %+v", c.name, k.Path, got, c.want[i])
			}
		}
	}
}

// A loss whose backward pass had run was said to hold what the pass after it had saved. What that one made is not saved
// by graphs of earlier ones, and those that have nothing do not share it.
func TestKeptOfEarlierPasses(t *testing.T) {
	const mib = 1 << 20
	holder := func(path string, earlier bool, outputs uint64) trace.Holder {
		return trace.Holder{Path: path, Bytes: 4, EndsKnown: true, EndsSurely: true, EndsBytes: 4,
			GraphOutputs: outputs, EndsOutputs: outputs, Earlier: earlier}
	}
	holders := []trace.Holder{holder("loss", true, 800*mib), holder("x", false, 780*mib)}
	for latest, want := range map[uint64][2]Kept{
		768 * mib: {{FreesBytes: 768*mib + 4, FreesAbout: true}, {FreesBytes: 4}},
		668 * mib: {{FreesBytes: 768*mib + 4, FreesAtMost: true}, {FreesBytes: 100*mib + 4, FreesAtMost: true}},
		0:         {{FreesBytes: 768*mib + 4, FreesAtMost: true}, {FreesBytes: 768*mib + 4, FreesAtMost: true}},
	} {
		for i, k := range KeptOf(holders, 768*mib, latest) {
			if latest > 0 && k.Path != [2]string{"x", "loss"}[i] || k.FreesBytes != want[i].FreesBytes ||
				k.FreesAbout != want[i].FreesAbout || k.FreesAtMost != want[i].FreesAtMost {
				t.Errorf("%d made by the latest pass: %+v, want %+v", latest, k, want[i])
			}
		}
	}
}
