package report

import (
	"fmt"
	"strings"
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
		{"recurrent layers save more than they compute", []trace.Holder{sure("total", 4, 4, 60*kib, 58*kib),
			sure("running", 4, 0, 3*kib, 0)}, 100 * kib,
			[]Kept{{FreesBytes: 100*kib + 4, FreesAtMost: true}, {SharedBytes: 5*kib + 4}}},
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

// Of what was found while a program grew and at its end, that counts which names more.
func TestKeptByWhileGrowingOrAtTheEnd(t *testing.T) {
	found := func(occasion string, rows ...string) string {
		return occasion + "\t1000\t9000000\n9\t0\t0\t9000000\t7\n" + strings.Join(rows, "")
	}
	row := func(bytes, garbage int, path, kind string) string {
		return fmt.Sprintf("%d\t9\t0\t0\t0\t%d\tuint8\t1\tcuda:0\t%s\tlist, %s\t\t%[1]d\t0\t1\t0\t0\n", bytes, garbage,
			path, kind)
	}
	named := func(bytes int) string { return row(bytes, 0, "in main (a.py:3), variable kept[*]", "Tensor") }
	model, garbage := row(8000000, 0, "__main__.net.*", "Parameter"), row(8000000, 1, "?Frame", "Tensor")
	for name, c := range map[string]struct{ growing, end, want string }{
		"a variable of a function":    {found("growth", named(4000000)), found("end", model), "growth"},
		"garbage at the end":          {found("growth", named(4000000)), found("end", garbage), "growth"},
		"one of a module":             {found("growth", named(4000000)), found("end", named(8000000)), "end"},
		"not searched at the end":     {found("growth", named(4000000)), "", "growth"},
		"not searched while it grows": {"", found("end", named(4000000)), "end"},
		"not searched":                {"", "", ""},
	} {
		s := Summary{}
		k := s.KeptByIn(trace.Info{trace.ReferrersKey: c.end, trace.ReferrersGrowingKey: c.growing},
			func() uint64 { return 0 })
		occasion, allocated := "", uint64(0)
		if k != nil {
			occasion, allocated = k.Occasion, k.AllocatedBytes
		}
		if occasion != c.want || (allocated == 9000000) != (c.want == "growth") {
			t.Errorf("%s: %q with %d, want %q", name, occasion, allocated, c.want)
		}
	}
}
