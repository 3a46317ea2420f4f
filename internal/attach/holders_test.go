package attach

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// Lines keep to the width, whatever a program calls its variables, and nothing of a name is lost.
func TestHolderText(t *testing.T) {
	long := "__main__.server." + strings.Repeat("caché", 30) + "['answers'][*]"
	found := referrersReport{Late: true, Holders: []placedHolder{
		{report.Kept{FreesBytes: 74 << 20, Holder: trace.Holder{Path: long,
			Types: strings.Repeat("Module, dict, ", 12) + "Tensor", Tensors: 50, Bytes: 50 << 20,
			Shape: []uint64{256, 1024}, DType: "float32", Device: "cuda:0", GraphNodes: 54, GraphBytes: 24 << 20}},
			[]holderSite{{"serve.py:31 answer", 40}, {"serve.py:12 make", 7}, {"", 3}}},
		{report.Kept{FreesBytes: 512, Holder: trace.Holder{Path: "a.b", Types: "module, Tensor\x1b[2J",
			Tensors: 1, Bytes: 512, Shape: []uint64{}, DType: "int8", Device: "cuda:1"}},
			[]holderSite{{"x.py:1 f", 1}}},
		{report.Kept{Holder: trace.Holder{Path: "?"}}, nil},
		{report.Kept{Holder: trace.Holder{Path: "?list[*]"}}, nil},
	}}
	for _, width := range []int{60, 80, 160} {
		text := holderText{width: width}
		text.report(&found, 2)
		var joined strings.Builder
		for line := range strings.Lines(text.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns of %d: %q", n, width, line)
			}
			joined.WriteString(strings.TrimSpace(line))
		}
		for _, part := range []string{long, "50 tensors, the largest float32 [256, 1024] on cuda:0",
			"allocated at serve.py:31 answer (40 of them)serve.py:12 make (7 of them)a place that the trace does not know (3 of them)",
			"int8 [] on cuda:1", `Tensor\x1b[2J`, "allocated at x.py:1 fheld by", "Time ran out",
			"not known: the time was over",
			"a list that no Python variable leads to, as an argument of a call that runs or made by a saved tensor's hook", "2 more rows"} {
			if !strings.Contains(strings.ReplaceAll(joined.String(), " ", ""), strings.ReplaceAll(part, " ", "")) {
				t.Errorf("at %d columns %q is missing:\n%s", width, part, text.String())
			}
		}
	}
	var none holderText
	none.report(&referrersReport{}, 0)
	if none.String() != "No CUDA tensor was found.\n" {
		t.Errorf("%q", none.String())
	}
}

// Places are grouped, those that the trace does not know last.
func TestHolderSites(t *testing.T) {
	sites := allocationSites{1: {Key: "a"}, 2: {Key: "b"}, 3: {Key: "b"}}
	got := sites.of(&trace.Holder{Storages: []uint64{9, 1, 8, 2, 7, 3}})
	if len(got) != 3 || got[0] != (holderSite{"b", 2}) || got[1] != (holderSite{"a", 1}) ||
		got[2] != (holderSite{"", 3}) {
		t.Errorf("%+v", got)
	}
	if got := allocationSites(nil).of(&trace.Holder{Storages: []uint64{1}}); got == nil || len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// What others hold as well was shown as 0 bytes behind all that is freed with one row, out of sight.
//
// Rows are in the order of what they hold, each memory with the first that has it.
func TestMostHeld(t *testing.T) {
	kept := func(path string, frees, shared uint64, storages ...uint64) report.Kept {
		return report.Kept{FreesBytes: frees, SharedBytes: shared,
			Holder: trace.Holder{Path: path, Storages: storages, Shape: []uint64{}}}
	}
	var paths []string
	text := holderText{width: 100}
	for _, h := range mostHeld([]report.Kept{kept("small", 3<<20, 0, 1), kept("hooked", 0, 588<<20, 2, 3),
		kept("probe", 10<<20, 200<<20, 4), kept("views", 0, 588<<20, 3, 2)}) {
		paths = append(paths, h.Path)
		text.holder(&placedHolder{h, nil})
	}
	if want := []string{"hooked", "probe", "small", "views"}; !slices.Equal(paths, want) {
		t.Errorf("%q, want %q", paths, want)
	}
	for _, part := range []string{" 588.0 MiB  hooked\n", "others hold 588.0 MiB of it as well",
		" 210.0 MiB  probe\n"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("%q is missing:\n%s", part, text.String())
		}
	}
}
