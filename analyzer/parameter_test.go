package analyzer

import (
	"reflect"
	"testing"

	"memtrace/trace"
)

// TestParameters: copies on several devices add up, what is said again replaces what was said, an object counts under its last name, and what an optimizer keeps for itself is no parameter.
func TestParameters(t *testing.T) {
	var tables trace.Tables
	for i, name := range []string{"", "fc.weight", "exp_avg:fc.weight", "old.weight", "new.weight", "running_mean", "flat (of 2)", "in_arg:conv", "arg_grad:conv", "optimizer_state:mean:conv", "qmap:Adam8bit"} {
		tables.AddString(trace.StringID(i), name)
	}
	var l parameterList
	say := func(category trace.Category, name trace.StringID, object, bytes, block uint64, device int16) {
		l.named(&trace.Event{Category: category, Name: name, Handle: object, Size: bytes}, &Block{Size: block, Device: device}, &tables)
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
	want := []Parameter{
		{"fc.weight", "parameter", 200, 1024, 100, 1024, []State{{"exp_avg", 200, 1024}}},
		{"new.weight", "parameter", 10, 512, 0, 0, []State{}},
		{"running_mean", "buffer", 8, 512, 0, 0, []State{}},
		{"conv", "parameter", 4, 4096, 4, 4096, []State{{"mean", 4, 4096}}},
		{"Adam8bit", "optimizer", 0, 0, 0, 0, []State{{"qmap", 1024, 1024}}},
	}
	if got := l.values(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
