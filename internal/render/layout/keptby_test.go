package layout

import (
	"fmt"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// What is said to be freed is the most where others have it as well, and a single tensor need only be detached.
func TestKeptByWords(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		kept report.Kept
		says string
	}{
		{report.Kept{Holder: trace.Holder{Path: "__main__.a[*]", Tensors: 9, Bytes: 90 * mib}, SharedBytes: 90 * mib},
			"Kept by __main__.a[*]: at most 90.0 MiB (9 tensors; others hold 90.0 MiB of it as well)."},
		{report.Kept{Holder: trace.Holder{Path: "__main__.a[*]", Tensors: 9, Bytes: 90 * mib}, FreesBytes: 88 * mib,
			SharedBytes: 2 * mib}, "Kept by __main__.a[*]: 88.0 MiB (9 tensors)."},
		{report.Kept{Holder: trace.Holder{Path: "__main__.v[*]", Tensors: 9, Bytes: 90 * mib, HiddenBytes: 88 * mib},
			FreesBytes: 90 * mib},
			"Kept by __main__.v[*]: 90.0 MiB (9 tensors; views that show 2.00 MiB of it, .clone() of them frees the rest)."},
		{report.Kept{Holder: trace.Holder{Path: "__main__.v[*]", Tensors: 9, Bytes: 90 * mib, HiddenBytes: 88 * mib},
			SharedBytes: 90 * mib},
			"Kept by __main__.v[*]: at most 90.0 MiB (9 tensors; others hold 90.0 MiB of it as well)."},
		{report.Kept{Holder: trace.Holder{Path: "__main__.v[*]", Tensors: 9, Bytes: 90 * mib, HiddenBytes: 40 * mib},
			FreesBytes: 90 * mib}, "Kept by __main__.v[*]: 90.0 MiB (9 tensors)."},
		{report.Kept{Holder: trace.Holder{Path: "__main__.h", Tensors: 1, Bytes: mib, GraphNodes: 64,
			GraphBytes: 62 * mib}, FreesBytes: 63 * mib},
			"Kept by __main__.h: 63.0 MiB (1 tensor; autograd graph with 62.0 MiB, which .detach() drops)."},
		{report.Kept{Holder: trace.Holder{Path: "__main__.h", Tensors: 1, Bytes: mib, GraphNodes: 64},
			FreesBytes: 63 * mib, FreesAtMost: true},
			"Kept by __main__.h: at most 63.0 MiB (1 tensor; autograd graph of 64 nodes, which .detach() drops)."},
		{report.Kept{Holder: trace.Holder{Path: "__main__.l[*]", Tensors: 8, Bytes: 8, GraphNodes: 64},
			FreesBytes: mib, FreesAbout: true},
			"Kept by __main__.l[*]: about 1.00 MiB (8 tensors; autograd graph of 64 nodes)."},
		{report.Kept{Holder: trace.Holder{Path: "?Tensor", Tensors: 1, Bytes: 90 * mib}, FreesBytes: 90 * mib},
			"Kept by Tensor that no Python variable leads to, as where C++ code holds it: 90.0 MiB (1 tensor)."},
		{report.Kept{Holder: trace.Holder{Path: "?list[*]", Tensors: 1, Bytes: 90 * mib}, FreesBytes: 90 * mib},
			"Kept by a list that no Python variable leads to, as an argument of a call that runs " +
				"or made by a saved tensor's hook: 90.0 MiB (1 tensor)."},
		{report.Kept{Holder: trace.Holder{Path: "?dict['a'][*]", Tensors: 1, Bytes: 90 * mib}, FreesBytes: 90 * mib},
			"Kept by dict['a'][*] that no Python variable leads to, as an argument of a call that runs " +
				"or made by a saved tensor's hook: 90.0 MiB (1 tensor)."},
		{report.Kept{Holder: trace.Holder{Path: "?listing[*]", Tensors: 1, Bytes: 90 * mib}, FreesBytes: 90 * mib},
			"Kept by listing[*] that no Python variable leads to, as where C++ code holds it: 90.0 MiB (1 tensor)."},
		{report.Kept{Holder: trace.Holder{Path: "?Result.values", Tensors: 2, Bytes: 90 * mib, Garbage: true},
			FreesBytes: 90 * mib}, "90.0 MiB is garbage in reference cycles (Result.values; 2 tensors): gc.collect() frees it."},
		{report.Kept{Holder: trace.Holder{Path: "in forward (a.py:10), variable x", Tensors: 1, Bytes: mib,
			GraphNodes: 64, GraphBytes: 62 * mib}, SharedBytes: 63 * mib}, ""},
		{report.Kept{Holder: trace.Holder{Path: "in run (a.py:10), variable outputs[*]", Tensors: 9, Bytes: 9 * mib,
			GraphNodes: 64, GraphBytes: 54 * mib}, FreesBytes: 63 * mib},
			"Kept in run (a.py:10), variable outputs[*]: 63.0 MiB (9 tensors; autograd graph with 54.0 MiB)."},
		{report.Kept{Holder: trace.Holder{Path: "in forward (a.py:13), variable input of forward (activation.py:734)",
			Types: "Tensor", Tensors: 1, Bytes: 80 * mib}, SharedBytes: 80 * mib}, ""},
		{report.Kept{Holder: trace.Holder{Path: "in forward (a.py:13), variable args of _call_impl (module.py:1762)[*]",
			Types: "tuple, Tensor", Tensors: 1, Bytes: 20 * mib}, SharedBytes: 20 * mib}, ""},
		{report.Kept{Holder: trace.Holder{Path: "in fit (a.py:13), variable x", Types: "Tensor", Tensors: 1,
			Bytes: 20 * mib}, SharedBytes: 20 * mib}, ""},
		{report.Kept{Holder: trace.Holder{Path: "__main__.loss", Types: "module, Tensor", Tensors: 1, Bytes: 512,
			GraphNodes: 64}, FreesBytes: 512, SharedBytes: 63 * mib}, ""},
		{report.Kept{Holder: trace.Holder{Path: "in fit (a.py:13), variable x", Types: "Tensor", Tensors: 1,
			Bytes: 20 * mib}, FreesBytes: 20 * mib}, "Kept in fit (a.py:13), variable x: 20.0 MiB (1 tensor)."},
		{report.Kept{Holder: trace.Holder{Path: "in fit (a.py:13), variable kept[*]", Types: "list, Tensor", Tensors: 2,
			Bytes: 20 * mib}, SharedBytes: 20 * mib},
			"Kept in fit (a.py:13), variable kept[*]: at most 20.0 MiB (2 tensors; others hold 20.0 MiB of it as well)."},
		{report.Kept{Holder: trace.Holder{Path: "in forward (a.py:13), variable skips[*]", Types: "list, Tensor",
			Tensors: 4, Bytes: 48 * mib}, SharedBytes: 48 * mib}, ""},
		{report.Kept{Holder: trace.Holder{Path: "in forward (a.py:13), variable skips[*]", Types: "list, Tensor",
			Tensors: 4, Bytes: 48 * mib}, FreesBytes: 48 * mib, FreesAtMost: true}, ""},
		{report.Kept{Holder: trace.Holder{Path: "in forward (a.py:13), variable cache[*]", Types: "list, Tensor",
			Tensors: 4, Bytes: 48 * mib}, FreesBytes: 48 * mib},
			"Kept in forward (a.py:13), variable cache[*]: 48.0 MiB (4 tensors)."},
		{report.Kept{Holder: trace.Holder{Path: "in forward (a.py:13), variable self.cache[*]", Tensors: 4,
			Types: "Attention, list, Tensor", Bytes: 48 * mib}, SharedBytes: 48 * mib},
			"Kept in forward (a.py:13), variable self.cache[*]: at most 48.0 MiB (4 tensors; others hold 48.0 MiB of it " +
				"as well)."},
		{report.Kept{Holder: trace.Holder{Path: "?list[*]", Tensors: 1, Bytes: 26 * mib, GraphNodes: 98},
			FreesBytes: 52 * mib, SharedBytes: 254 * mib, FreesAtMost: true}, ""},
		{report.Kept{Holder: trace.Holder{Path: "?Tensor", Types: "Tensor", Tensors: 1, Bytes: 26 * mib, GraphNodes: 3},
			FreesBytes: 26 * mib, FreesAtMost: true}, ""},
		{report.Kept{Holder: trace.Holder{Path: "?list[*]", Tensors: 8, Bytes: 8, GraphNodes: 98, GraphBytes: 54 * mib},
			FreesBytes: 54 * mib},
			"Kept by a list that no Python variable leads to, as an argument of a call that runs or made by a saved " +
				"tensor's hook: 54.0 MiB (8 tensors; autograd graph with 54.0 MiB)."},
		{report.Kept{Holder: trace.Holder{Path: "__main__.small", Tensors: 1, Bytes: mib / 8},
			FreesBytes: mib / 8}, ""},
	} {
		text, _ := KeptBy(&report.KeptBy{Holders: []report.Kept{c.kept}}, 10*mib, 0)
		if text != c.says {
			t.Errorf("%q, want %q", text, c.says)
		}
	}
}

// What a program's functions held is in no variable once they have returned: gc.collect() was said to free it, and did
// not.
func TestKeptByGarbageAtTheEnd(t *testing.T) {
	const mib = 1 << 20
	garbage := report.Kept{Holder: trace.Holder{Path: "?Result.values", Tensors: 2, Bytes: 90 * mib, Garbage: true},
		FreesBytes: 90 * mib}
	const want = "90.0 MiB was in reference cycles at the end (Result.values; 2 tensors): gc.collect() frees it, " +
		"unless a function that has returned by then held it."
	text, _ := KeptBy(&report.KeptBy{Occasion: report.KeptAtEnd, Holders: []report.Kept{garbage}}, 100*mib, 0)
	if text != want {
		t.Errorf("%q, want %q", text, want)
	}
}

// The sentence names what somebody may want to drop, not that an optimizer has parameters.
func TestKeptByLeavesOutModels(t *testing.T) {
	const gib = 1 << 30
	kept := func(path, types string) report.Kept {
		return report.Kept{Holder: trace.Holder{Path: path, Types: types, Tensors: 2, Bytes: gib}, FreesBytes: gib}
	}
	k := &report.KeptBy{Holders: []report.Kept{
		kept("__main__.optimizer.param_groups[*]['params'][*]", "module, Adam, list, dict, list, Parameter"),
		kept("__main__.optimizer.state[*]['exp_avg']", "module, Adam, defaultdict, dict, Tensor"),
		kept("__main__.model.0.weight", "module, Sequential, dict, Linear, dict, Parameter"),
		kept("__main__.history[*]", "module, list, Tensor")}}
	text, bytes := KeptBy(k, 4*gib, 3*gib)
	if want := "Kept by __main__.history[*]: 1.00 GiB (2 tensors)."; text != want || bytes != gib {
		t.Errorf("%q, %d bytes; want %q", text, bytes, want)
	}
}

// The states of optimizers that a list of schedulers keeps were left out as a model's, and nothing was said of what
// memory grew by.
//
// What an optimizer keeps is named where it is more than all that had not grown.
func TestKeptByGrownStates(t *testing.T) {
	const gib = 1 << 30
	k := &report.KeptBy{Holders: []report.Kept{{FreesBytes: 8 * gib, Holder: trace.Holder{
		Path:  "__main__.schedulers[*].optimizer.state[*]",
		Types: "module, list, LambdaLR, Adam, defaultdict, dict, Tensor", Tensors: 64, Bytes: 8 * gib}}}}
	text, _ := KeptBy(k, 10*gib, 7*gib)
	if want := "Kept by __main__.schedulers[*].optimizer.state[*]: 8.00 GiB (64 tensors)."; text != want {
		t.Errorf("%q, want %q", text, want)
	}
	if text, _ := KeptBy(k, 10*gib, 2*gib); text != "" {
		t.Errorf("%q, want nothing: as much may have been there from the beginning", text)
	}
}

// Entries of a dictionary that each hold little are told as one: eight histories of gradients of 45 MiB, of 480 MiB in
// all, had no "Kept by".
func TestKeptByOfManyKeys(t *testing.T) {
	const mib = 1 << 20
	entries := func(count int, bytes uint64) *report.KeptBy {
		k := &report.KeptBy{Occasion: report.KeptAtEnd}
		for i := range count {
			k.Holders = append(k.Holders, report.Kept{Holder: trace.Holder{Types: "module, dict, list, Tensor",
				Path: fmt.Sprintf("__main__.history['layer.%d'][*]", i), Tensors: 80, Bytes: bytes}, FreesBytes: bytes})
		}
		return k
	}
	for _, c := range []struct {
		k    *report.KeptBy
		want string
	}{
		{entries(8, 45*mib), "Kept by __main__.history[*][*]: 360.0 MiB (640 tensors)."},
		{entries(2, 45*mib), ""},
		{entries(3, 100*mib), "Kept by __main__.history['layer.0'][*]: 100.0 MiB (80 tensors); and by " +
			"__main__.history['layer.1'][*]: 100.0 MiB (80 tensors)."},
	} {
		before := fmt.Sprint(c.k.Holders)
		if got, _ := KeptBy(c.k, 480*mib, 360*mib); got != c.want || fmt.Sprint(c.k.Holders) != before {
			t.Errorf("%q, want %q; %v", got, c.want, c.k.Holders)
		}
	}
}
