package training

import (
	"reflect"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// TestParameters: copies on several devices add up, what is said again replaces what was said, an object counts under
// its last name, and what an optimizer keeps for itself is no parameter.
func TestParameters(t *testing.T) {
	var tables trace.Tables
	for i, name := range []string{"", "fc.weight", "exp_avg:fc.weight", "old.weight", "new.weight", "running_mean",
		"flat (of 2)", "in_arg:conv", "arg_grad:conv", "optimizer_state:mean:conv", "qmap:Adam8bit"} {
		tables.AddString(trace.StringID(i), name)
	}
	var l ParameterList
	say := func(category trace.Category, name trace.StringID, object, bytes, block uint64, device int16) {
		l.Named(&trace.Event{Category: category, Name: name, Handle: object, Size: bytes},
			&heap.Block{Size: block, Device: device}, nil, &tables)
	}
	say(trace.CategoryParameter, 1, 0xa, 90, 512, 0)
	say(trace.CategoryParameter, 1, 0xa, 100, 512, 0)
	say(trace.CategoryParameter, 1, 0xb, 100, 512, 1)
	say(trace.CategoryGradient, 1, 0xa, 100, 1024, 0)
	say(trace.CategoryOptimizer, 2, 0xc, 100, 512, 0)
	say(trace.CategoryOptimizer, 2, 0xd, 100, 512, 1)
	say(trace.CategoryParameter, 3, 0xe, 10, 512, 0)
	say(trace.CategoryParameter, 4, 0xe, 10, 512, 0)
	say(trace.CategoryBuffer, 5, 0xf, 8, 512, 0)
	say(trace.CategoryParameter, 6, 0, 500, 512, 0)
	say(trace.CategoryData, 6, 1, 500, 512, 0)
	say(trace.CategoryParameter, 7, 0x1, 4, 4096, 0)
	say(trace.CategoryGradient, 8, 0x2, 4, 4096, 0)
	say(trace.CategoryOptimizer, 9, 0x3, 4, 4096, 0)
	say(trace.CategoryOptimizer, 10, 0x4, 1024, 1024, 0)
	want := []report.Parameter{
		{Name: "fc.weight", Category: "parameter", Bytes: 200, BlockBytes: 1024, Gradient: 100, GradBlock: 1024,
			States: []report.State{{Name: "exp_avg", Bytes: 200, BlockBytes: 1024}}},
		{Name: "new.weight", Category: "parameter", Bytes: 10, BlockBytes: 512, Gradient: 0, GradBlock: 0,
			States: []report.State{}},
		{Name: "running_mean", Category: "buffer", Bytes: 8, BlockBytes: 512, Gradient: 0, GradBlock: 0,
			States: []report.State{}},
		{Name: "conv", Category: "parameter", Bytes: 4, BlockBytes: 4096, Gradient: 4, GradBlock: 4096,
			States: []report.State{{Name: "mean", Bytes: 4, BlockBytes: 4096}}},
		{Name: "Adam8bit", Category: "optimizer", Bytes: 0, BlockBytes: 0, Gradient: 0, GradBlock: 0,
			States: []report.State{{Name: "qmap", Bytes: 1024, BlockBytes: 1024}}},
	}
	if got := l.Values(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
