package oom

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

const gib = 1 << 30

// plainOOM is an event to which no rule but remarks applies: 10 GiB, of which one owner of many holds a little each.
const oneMiB = 1 << 20

func plainOOM() *report.OOMEvent {
	e := &report.OOMEvent{Outcome: report.OOMFailed, Level: "framework", Memory: "device", RequestedBytes: gib,
		DriverRequestedBytes: gib, Attempts: 2, Detailed: true,
		TotalBytes: 10 * gib, UsedBytes: 95 * gib / 10, FreeBytes: gib / 2, StepBytes: []uint64{},
		Advice:    []report.Advice{},
		Allocator: &report.OOMAllocator{ReservedBytes: 9 * gib, AllocatedBytes: 9 * gib}}
	l := report.Ledger{By: "tag", Level: "framework"}
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		l.Rows = append(l.Rows, report.LedgerRow{Owner: report.OwnerBlocks, Key: key, Bytes: 3 * gib / 2})
	}
	library := l
	library.By, library.Rows = "library",
		[]report.LedgerRow{{Owner: report.OwnerBlocks, Key: "libc10_cuda.so", Bytes: 9 * gib},
			{Owner: report.OwnerOutside, Key: "libcublas.so.12", Bytes: 32 * oneMiB}}
	e.Ledgers = []report.Ledger{l, library}
	return e
}

func torchInfo() trace.Info { return trace.Info{"framework.torch": "2.7.1"} }

func addRow(e *report.OOMEvent, by string, row report.LedgerRow) {
	for i := range e.Ledgers {
		if e.Ledgers[i].By == by {
			e.Ledgers[i].Rows = append(e.Ledgers[i].Rows, row)
		}
	}
}

// adviceCases: each makes one rule fire, and then takes away what it needs.
var adviceCases = []struct {
	rule string
	fire func(e *report.OOMEvent, info trace.Info)
	not  []func(e *report.OOMEvent, info trace.Info)
	says string
}{
	{"larger-than-device", func(e *report.OOMEvent, _ trace.Info) { e.RequestedBytes = 11 * gib },
		[]func(*report.OOMEvent, trace.Info){func(e *report.OOMEvent, _ trace.Info) { e.TotalBytes = 0 },
			func(e *report.OOMEvent, _ trace.Info) { e.TotalBytes = 11 * gib }}, "11.0 GiB"},
	{"larger-than-device", func(e *report.OOMEvent, _ trace.Info) { // than what the driver leaves of it
		e.RequestedBytes, e.Sample = 10*gib, &report.Sample{KeptBytes: oneMiB}
	}, []func(*report.OOMEvent, trace.Info){func(e *report.OOMEvent, _ trace.Info) { e.Sample = nil }}, "10.0 GiB"},
	{"own-limit", func(e *report.OOMEvent, _ trace.Info) { e.Attempts, e.FreeBytes = 0, 5*gib },
		[]func(*report.OOMEvent, trace.Info){func(e *report.OOMEvent, _ trace.Info) { e.Attempts = 1 },
			func(e *report.OOMEvent, _ trace.Info) { e.FreeBytes = 0 }}, "5.00 GiB"},
	{"fragmentation", func(e *report.OOMEvent, _ trace.Info) {
		e.Allocator.IdleBytes, e.Allocator.Common = 2*gib, report.Fragments{FreeBytes: 2 * gib, FreePieces: 40,
			LargestFreeBytes: 600 * oneMiB, PageFreeBytes: 3 * gib / 2}
	}, []func(*report.OOMEvent, trace.Info){
		func(e *report.OOMEvent, _ trace.Info) { e.Allocator.Common.LargestFreeBytes = 2 * gib },
		func(e *report.OOMEvent, _ trace.Info) { e.Allocator.Common.PageFreeBytes = 100 * oneMiB },
		func(_ *report.OOMEvent, info trace.Info) {
			info["env.PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
		},
		func(_ *report.OOMEvent, info trace.Info) { delete(info, "framework.torch") },
		func(e *report.OOMEvent, _ trace.Info) { e.Outcome = report.OOMRecovered },
		func(e *report.OOMEvent, _ trace.Info) { e.Allocator.Common = report.Fragments{} },
	}, "600.0 MiB"},
	{"private-pools", func(e *report.OOMEvent, _ trace.Info) {
		e.Allocator.IdleBytes = 3 * gib
		e.Allocator.Private = []report.PrivatePool{{Number: 2, ReservedBytes: 2 * gib, IdleBytes: 2 * gib},
			{Number: 4, ReservedBytes: gib, IdleBytes: gib / 2}}
	}, []func(*report.OOMEvent, trace.Info){
		func(e *report.OOMEvent, _ trace.Info) { e.Allocator.Private = e.Allocator.Private[:1] },
		func(e *report.OOMEvent, _ trace.Info) { e.Allocator.Private[1].ReservedBytes = oneMiB },
		func(e *report.OOMEvent, _ trace.Info) { e.Outcome = report.OOMRecovered },
		func(_ *report.OOMEvent, info trace.Info) { delete(info, "framework.torch") },
	}, "2.50 GiB of the 3.00 GiB that are cached but idle are in 2 private pools"},
	{"kept", func(e *report.OOMEvent, _ trace.Info) {
		e.Composition = &report.OOMComposition{OlderBytes: 4 * gib, OlderPasses: 22, OlderSite: "train.py:7 validate",
			Passes: 23, Stepped: true, OlderSinceStep: true, KeepsGraphs: true}
	}, []func(*report.OOMEvent, trace.Info){
		func(e *report.OOMEvent, _ trace.Info) { e.Composition.OlderPasses = 2 },
		func(e *report.OOMEvent, _ trace.Info) { e.Composition.OlderBytes = 100 * oneMiB },
		func(e *report.OOMEvent, _ trace.Info) { e.Outcome = report.OOMRecovered },
		func(e *report.OOMEvent, _ trace.Info) {
			e.Composition.KeepsGraphs, e.Allocator.Private = false, []report.PrivatePool{{Number: 2}}
		},
		func(_ *report.OOMEvent, info trace.Info) { delete(info, "framework.torch") },
	}, "4.00 GiB (42% of what is in use) are older than the latest of 23 runs of the same code since the last step and " +
		"are neither parameters, gradients, optimizer state nor buffers: something keeps them, most of it from " +
		"train.py:7 validate. These are activations that no backward pass has freed"},
	{"multi-tensor", func(e *report.OOMEvent, _ trace.Info) {
		e.Composition = &report.OOMComposition{MultiTensorBytes: gib, MultiTensorOf: "adam",
			LargestParameterBytes: 128 * oneMiB}
	}, []func(*report.OOMEvent, trace.Info){
		func(e *report.OOMEvent, _ trace.Info) { e.Composition.MultiTensorBytes = 500 * oneMiB },
		func(e *report.OOMEvent, _ trace.Info) { e.Outcome = report.OOMRecovered },
		func(e *report.OOMEvent, _ trace.Info) { e.FreeBytes = gib },
		func(e *report.OOMEvent, _ trace.Info) { e.Composition = nil },
		func(_ *report.OOMEvent, info trace.Info) { delete(info, "framework.torch") },
	}, "1.00 GiB (11% of what is in use) are temporaries of _multi_tensor_adam, a step that makes those of many parameters at once: fused=True, which makes none, gives back " +
		"about 1.00 GiB; foreach=False, which makes those of one parameter at a time, about 768.0 MiB."},
	{"multi-tensor", func(e *report.OOMEvent, _ trace.Info) { // foreach=False would not be enough
		e.Composition = &report.OOMComposition{MultiTensorBytes: gib, MultiTensorOf: "adamw",
			LargestParameterBytes: 300 * oneMiB}
	}, []func(*report.OOMEvent, trace.Info){
		func(_ *report.OOMEvent, info trace.Info) { info["framework.torch"] = "1.13.1" },
	}, "fused=True, which makes none, gives back about 1.00 GiB."},
	{"multi-tensor", func(e *report.OOMEvent, _ trace.Info) { // has no fused step
		e.Composition = &report.OOMComposition{MultiTensorBytes: gib, MultiTensorOf: "rmsprop",
			LargestParameterBytes: 128 * oneMiB}
	}, []func(*report.OOMEvent, trace.Info){
		func(e *report.OOMEvent, _ trace.Info) { e.Composition.LargestParameterBytes = 300 * oneMiB },
	}, "at once: foreach=False, which makes those of one parameter at a time, gives back about 768.0 MiB."},
	{"idle-cache", func(e *report.OOMEvent, _ trace.Info) {
		e.Level, e.Allocator.Pieces.WholeFreeBytes = "driver", 3*gib
	},
		[]func(*report.OOMEvent, trace.Info){func(e *report.OOMEvent, _ trace.Info) { e.Level = "framework" },
			func(e *report.OOMEvent, _ trace.Info) {
				e.Outcome = report.OOMRecovered
			}, func(e *report.OOMEvent, _ trace.Info) {
				e.Allocator.Pieces.WholeFreeBytes = oneMiB
			}}, "3.00 GiB"},
	{"other-processes", func(e *report.OOMEvent, _ trace.Info) {
		e.Sample = &report.Sample{ShareKnown: true, OthersBytes: 4 * gib}
		e.TotalBytes, e.UsedBytes = e.TotalBytes+4*gib, e.UsedBytes+4*gib
	},
		[]func(*report.OOMEvent, trace.Info){func(e *report.OOMEvent, _ trace.Info) {
			e.Sample.OthersBytes = 10 * oneMiB
		}, func(e *report.OOMEvent, _ trace.Info) { e.Sample = nil }}, "4.00 GiB"},
	{"fresh", func(e *report.OOMEvent, _ trace.Info) {
		e.Since = &report.OOMGrowth{What: "step 3", Bytes: 6 * gib,
			Rows: []report.LedgerRow{{Owner: report.OwnerBlocks, Key: "e", Bytes: gib}}}
	}, []func(*report.OOMEvent, trace.Info){func(e *report.OOMEvent, _ trace.Info) { e.Since.Bytes = 100 * oneMiB },
		func(e *report.OOMEvent, _ trace.Info) { e.Since.What = "mark x" }}, "6.00 GiB"},
	{"largest-owner", func(e *report.OOMEvent, _ trace.Info) {
		e.Since = &report.OOMGrowth{What: "mark x"}
		addRow(e, "tag", report.LedgerRow{Owner: report.OwnerBlocks, Key: "model", Bytes: 4 * gib})
	}, []func(*report.OOMEvent, trace.Info){
		func(e *report.OOMEvent, _ trace.Info) {
			e.Since.Rows = []report.LedgerRow{{Owner: report.OwnerBlocks, Key: "model", Bytes: 4 * gib}}
		},
		func(e *report.OOMEvent, _ trace.Info) { e.Since = nil },
	}, "model holds 4.00 GiB"},
	{"untagged", func(e *report.OOMEvent, _ trace.Info) {
		e.Ledgers[0].Rows = []report.LedgerRow{{Owner: report.OwnerBlocks, Key: report.Untagged, Bytes: 9 * gib}}
	},
		[]func(*report.OOMEvent, trace.Info){
			func(e *report.OOMEvent, _ trace.Info) { e.Ledgers[0].Rows[0].Bytes = gib },
			func(e *report.OOMEvent, _ trace.Info) { e.Ledgers[0].Rows[0].Key = "model" },
			func(e *report.OOMEvent, _ trace.Info) { e.Since = &report.OOMGrowth{What: "mark x"} },
			func(e *report.OOMEvent, _ trace.Info) { e.Outcome = report.OOMRecovered },
			func(e *report.OOMEvent, _ trace.Info) { e.FreeBytes = 2 * gib },
			func(e *report.OOMEvent, _ trace.Info) { e.Device = -1 },
			func(_ *report.OOMEvent, info trace.Info) { delete(info, "framework.torch") },
		}, "512.0 MiB more"},
	// On the first real device a program with tags and without steps got no advice; on the null GPU its remark had
	// stood in for that.
	{"tagged", func(e *report.OOMEvent, _ trace.Info) {
		addRow(e, "tag", report.LedgerRow{Owner: report.OwnerBlocks, Key: "hoard", Bytes: 4 * gib})
	},
		[]func(*report.OOMEvent, trace.Info){
			func(e *report.OOMEvent, _ trace.Info) { e.UsedBytes = 100 * gib },
			func(e *report.OOMEvent, _ trace.Info) {
				addRow(e, "tag", report.LedgerRow{Owner: report.OwnerBlocks, Key: report.Untagged,
					Bytes: 5 * gib})
			},
			func(e *report.OOMEvent, _ trace.Info) {
				addRow(e, "tag", report.LedgerRow{Owner: report.OwnerBlocks, Key: "optimizer", Bytes: 5 * gib})
			},
			func(e *report.OOMEvent, _ trace.Info) { e.Since = &report.OOMGrowth{What: "mark x"} },
			func(e *report.OOMEvent, _ trace.Info) { e.Outcome = report.OOMRecovered },
			func(e *report.OOMEvent, _ trace.Info) { e.FreeBytes = 2 * gib },
			func(e *report.OOMEvent, _ trace.Info) { e.Device = -1 },
			func(_ *report.OOMEvent, info trace.Info) { delete(info, "framework.torch") },
		}, "hoard holds 4.00 GiB, 42% of what is in use, and 512.0 MiB more"},
	{"optimizer-state", func(e *report.OOMEvent, _ trace.Info) {
		addRow(e, "tag", report.LedgerRow{Owner: report.OwnerBlocks, Key: "train.optimizer", Bytes: 4 * gib})
	},
		[]func(*report.OOMEvent, trace.Info){func(e *report.OOMEvent, _ trace.Info) { e.UsedBytes = 100 * gib },
			func(_ *report.OOMEvent, info trace.Info) { delete(info, "framework.torch") }}, "3.00 GiB"},
	{"growing", func(e *report.OOMEvent, _ trace.Info) {
		e.StepBytes = []uint64{gib, 4 * gib, 5 * gib, 6 * gib, 7 * gib}
	},
		[]func(*report.OOMEvent, trace.Info){
			func(e *report.OOMEvent, _ trace.Info) { e.StepBytes = e.StepBytes[1:] },
			func(e *report.OOMEvent, _ trace.Info) { e.StepBytes[3] = 5 * gib },
			func(e *report.OOMEvent, _ trace.Info) {
				e.StepBytes = []uint64{0, 4 * gib, 4*gib + 1, 4*gib + 2, 4*gib + 3}
			},
		}, "3.00 GiB more"},
	{"pool-idle", func(e *report.OOMEvent, _ trace.Info) {
		addRow(e, "tag", report.LedgerRow{Owner: report.OwnerPoolIdle, Key: "memory pools, idle", Bytes: gib})
	},
		[]func(*report.OOMEvent, trace.Info){func(e *report.OOMEvent, _ trace.Info) {
			addRowBytes(e, report.OwnerPoolIdle, oneMiB)
		}}, "1.00 GiB lie idle"},
	{"graph-pool", func(e *report.OOMEvent, _ trace.Info) {
		addRow(e, "tag", report.LedgerRow{Owner: report.OwnerGraphPool, Key: "graph memory pool", Bytes: gib})
	},
		[]func(*report.OOMEvent, trace.Info){func(e *report.OOMEvent, _ trace.Info) {
			addRowBytes(e, report.OwnerGraphPool, oneMiB)
		}}, "1.00 GiB are held"},
	{"outside", func(e *report.OOMEvent, _ trace.Info) {
		addRow(e, "library", report.LedgerRow{Owner: report.OwnerOutside, Key: "libnccl.so.2", Bytes: gib})
	},
		[]func(*report.OOMEvent, trace.Info){func(e *report.OOMEvent, _ trace.Info) {
			addRowBytes(e, report.OwnerOutside, oneMiB)
		}}, "NCCL_BUFFSIZE"},
	{"mxnet-pool", func(e *report.OOMEvent, _ trace.Info) {
		addRow(e, "library", report.LedgerRow{Owner: report.OwnerBlocks, Key: "libmxnet.so", Bytes: 8 * gib})
	},
		[]func(*report.OOMEvent, trace.Info){func(e *report.OOMEvent, _ trace.Info) {
			addRowBytes(e, report.OwnerBlocks,
				oneMiB)
		}}, "8.00 GiB"},
	{"context", func(e *report.OOMEvent, info trace.Info) {
		e.Sample = &report.Sample{ShareKnown: true, ContextBytes: 2 * gib, RemainderBytes: gib}
		info["cuda.driver_version"] = "12.1"
	},
		[]func(*report.OOMEvent, trace.Info){
			func(_ *report.OOMEvent, info trace.Info) { info["cuda.driver_version"] = "12.2" },
			func(_ *report.OOMEvent, info trace.Info) { info["env.CUDA_MODULE_LOADING"] = "LAZY" },
			func(_ *report.OOMEvent, info trace.Info) { delete(info, "cuda.driver_version") },
			func(e *report.OOMEvent, _ trace.Info) { e.Sample.ContextBytes = 0 },
			func(e *report.OOMEvent, _ trace.Info) { e.Sample.ShareKnown = false },
		}, "3.00 GiB"},
	{"context", func(e *report.OOMEvent, info trace.Info) {
		e.Sample = &report.Sample{ShareKnown: true, ContextBytes: 2 * gib, RemainderBytes: gib}
		info["cuda.driver_version"], info["env.CUDA_MODULE_LOADING"] = "13.0", "EAGER"
	}, nil, "3.00 GiB"},
	{"pinned", func(e *report.OOMEvent, _ trace.Info) { e.Memory, e.Device = "host", -1 },
		[]func(*report.OOMEvent, trace.Info){func(e *report.OOMEvent, _ trace.Info) { e.Memory = "managed" }},
		"1.00 GiB"},
	{"recovered", func(e *report.OOMEvent, _ trace.Info) { e.Outcome, e.ReleasedBytes = report.OOMRecovered, gib },
		[]func(*report.OOMEvent, trace.Info){func(e *report.OOMEvent, _ trace.Info) { e.Outcome = report.OOMFailed },
			func(e *report.OOMEvent, _ trace.Info) { e.ReleasedBytes = 0 }}, "1.00 GiB back"},
	{"null-gpu", func(_ *report.OOMEvent, info trace.Info) { info["nullgpu"] = "1" },
		[]func(*report.OOMEvent, trace.Info){func(_ *report.OOMEvent, info trace.Info) { info["nullgpu"] = "" }},
		"10.0 GiB"},
}

// addRowBytes sets the size of every row of a kind.
func addRowBytes(e *report.OOMEvent, owner string, bytes uint64) {
	for i := range e.Ledgers {
		for j := range e.Ledgers[i].Rows {
			if e.Ledgers[i].Rows[j].Owner == owner {
				e.Ledgers[i].Rows[j].Bytes = bytes
			}
		}
	}
}

func ruleNames(list []report.Advice) (names []string) {
	for _, a := range list {
		names = append(names, a.Rule)
	}
	return names
}

// TestAdviceFires: each rule fires where it should, alone, with its number; and not when any one of its conditions is
// gone.
func TestAdviceFires(t *testing.T) {
	if got := Advise(plainOOM(), AdviceFacts{Info: torchInfo()}); len(got) != 0 {
		t.Fatalf("the plain event gets advice: %+v", got)
	}
	covered := map[string]bool{}
	for _, c := range adviceCases {
		covered[c.rule] = true
		e, info := plainOOM(), torchInfo()
		c.fire(e, info)
		list := Advise(e, AdviceFacts{Info: info})
		i := slices.IndexFunc(list, func(a report.Advice) bool { return a.Rule == c.rule })
		if i < 0 {
			t.Errorf("%s does not fire; %q do", c.rule, ruleNames(list))
			continue
		}
		if len(list) != 1 {
			t.Errorf("with %s fire %q", c.rule, ruleNames(list))
		}
		if text := list[i].Text; !strings.Contains(text, c.says) || strings.ContainsAny(text, "{}") ||
			!regexp.MustCompile(`\d+(\.\d+)? [KMGT]?i?B`).MatchString(text) {
			t.Errorf("%s says %q, want %q in it", c.rule, text, c.says)
		}
		for n, not := range c.not {
			e, info := plainOOM(), torchInfo()
			c.fire(e, info)
			not(e, info)
			if list := Advise(e, AdviceFacts{Info: info}); slices.Contains(ruleNames(list), c.rule) {
				t.Errorf("%s fires without its condition %d", c.rule, n)
			}
		}
	}
	for _, rule := range adviceRules {
		if !covered[rule.name] {
			t.Errorf("rule %s has no case", rule.name)
		}
	}
}

// TestAdviceBesideOthers: on a device that other processes fill, or may fill, a program's own memory is judged by what
// the program has.
func TestAdviceBesideOthers(t *testing.T) {
	for _, known := range []bool{true, false} {
		e := plainOOM()
		e.TotalBytes, e.UsedBytes = e.TotalBytes+70*gib, e.UsedBytes+70*gib
		e.Sample = &report.Sample{ShareKnown: known, RemainderBytes: 70 * gib}
		if known {
			e.Sample.OthersBytes, e.Sample.RemainderBytes = 70*gib, 0
		}
		e.Composition = &report.OOMComposition{OlderBytes: 6 * gib, OlderPasses: 5, IterationFeatureBytes: gib}
		list := Advise(e, AdviceFacts{Info: torchInfo()})
		if len(list) == 0 || list[0].Rule != "kept" ||
			!strings.Contains(list[0].Text, "63% of what this process is known to have") {
			t.Errorf("share known %v: %+v", known, list)
		}
		if named := slices.Contains(ruleNames(list), "other-processes"); named != known {
			t.Errorf("share known %v: %q", known, ruleNames(list))
		}
	}
}

// TestAdviceOrder: what frees most comes first, remarks last.
func TestAdviceOrder(t *testing.T) {
	e, info := plainOOM(), torchInfo()
	info["nullgpu"] = "1"
	e.Sample = &report.Sample{ShareKnown: true, OthersBytes: 4 * gib}
	addRow(e, "tag", report.LedgerRow{Owner: report.OwnerBlocks, Key: "optimizer", Bytes: 8 * gib})
	addRow(e, "library", report.LedgerRow{Owner: report.OwnerOutside, Key: "libother.so", Bytes: 12 * gib})
	got := ruleNames(Advise(e, AdviceFacts{Info: info}))
	want := []string{"outside", "optimizer-state", "other-processes", "null-gpu"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	e.RequestedBytes = 1 << 58 // where no freeing helps, nothing is said that frees
	want = []string{"larger-than-device", "null-gpu"}
	if got := ruleNames(Advise(e, AdviceFacts{Info: info})); !slices.Equal(got, want) {
		t.Errorf("of 256 PiB: %q", got)
	}
}

// Where memory leaks, nothing is said that only puts off the next refusal: nor that segments should grow, nor what
// gives back little, nor what is said of unknown memory.
func TestAdviceWhereMemoryLeaks(t *testing.T) {
	e := plainOOM()
	e.Composition = &report.OOMComposition{OlderBytes: 6 * gib, OlderPasses: 5, IterationFeatureBytes: gib}
	e.Categories = []report.OOMCategory{{Category: "Feature maps", Bytes: 7 * gib}}
	e.Allocator.Common = report.Fragments{FreeBytes: 2 * gib, FreePieces: 40, LargestFreeBytes: 600 * oneMiB,
		PageFreeBytes: 3 * gib / 2}
	e.StepBytes = []uint64{gib, 4 * gib, 5 * gib, 6 * gib, 7 * gib}
	e.FreeBytes, e.Sample = gib-oneMiB, &report.Sample{ShareKnown: true, OthersBytes: 40 * oneMiB}
	e.Ledgers[0].Rows = []report.LedgerRow{{Owner: report.OwnerBlocks, Key: report.Untagged, Bytes: 9 * gib}}
	if got := ruleNames(Advise(e, AdviceFacts{Info: torchInfo()})); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("%q", got)
	}
}

// Garbage in reference cycles was to be looked for in lists, and so was a state that is never detached.
func TestKeptRemedy(t *testing.T) {
	holder := func(path string, tensors, nodes, frees uint64, garbage bool) report.Kept {
		return report.Kept{Holder: trace.Holder{Path: path, Tensors: tensors, GraphNodes: nodes, Garbage: garbage},
			FreesBytes: frees}
	}
	for _, c := range []struct {
		holder report.Kept
		graphs bool
		says   string
	}{
		{holder("?Result.values", 30, 0, 5*gib, true), false, "gc.collect() frees it"},
		{holder("?Result.values", 30, 9, 5*gib, true), true, "gc.collect() frees it"},
		{holder("__main__.hidden", 1, 900, 5*gib, false), true,
			"One tensor has the graph of all that it was computed from: __main__.hidden."},
		{holder("__main__.outputs[*]", 30, 900, 5*gib, false), true, dropGraphs},
		{holder("__main__.outputs[*]", 30, 0, 5*gib, false), false, dropLists},
		{holder("?Result.values", 1, 0, gib, true), false, dropLists}, // most is kept by others
	} {
		e := plainOOM()
		e.Composition = &report.OOMComposition{OlderBytes: 6 * gib, OlderPasses: 5, KeepsGraphs: c.graphs}
		e.Advice = Advise(e, AdviceFacts{Info: torchInfo()})
		Differentiated(e, &report.KeptBy{Occasion: report.KeptAtOOM, Holders: []report.Kept{c.holder}})
		text := e.Advice[0].Text
		if !strings.Contains(text, c.says) {
			t.Errorf("%+v: %q, want %q", c.holder, text, c.says)
		}
		for _, other := range []string{dropLists, dropGraphs} {
			if other != c.says && strings.Contains(text, other) {
				t.Errorf("%+v: %q", c.holder, text)
			}
		}
	}
}

// TestAdviceIsAFinding: every rule is a finding of a kind of its own.
func TestAdviceIsAFinding(t *testing.T) {
	ids := []string{"longer-input", "loaded-twice", "failed-attempts"}
	for _, r := range adviceRules {
		ids = append(ids, r.name)
	}
	for _, a := range categoryAdvices {
		ids = append(ids, a.rule)
	}
	for _, id := range ids {
		if !slices.ContainsFunc(report.FindingKinds, func(k report.FindingKind) bool { return k.ID == id }) {
			t.Errorf("%s is not among finding.Kinds", id)
		}
	}
}
