package training

import (
	"maps"
	"testing"

	"memtrace/trace"
)

// The last name of a parameter, buffer or state holds; of gradients, whose names are those of parameters, nothing does.
// A report without a reading ahead crashed at the first parameter in half precision.
func TestElements(t *testing.T) {
	var l Elements
	for _, e := range []trace.Event{
		{Name: 1, Category: trace.CategoryParameter},
		{Name: 2, Category: trace.CategoryParameter, Flags: trace.FlagTwoBytes},
		{Name: 3, Category: trace.CategoryOptimizer, Flags: trace.FlagOneByte | trace.FlagLate},
		{Name: 4, Category: trace.CategoryBuffer, Flags: trace.FlagTwoBytes},
		{Name: 5, Category: trace.CategoryGradient, Flags: trace.FlagTwoBytes},
		{Name: 4, Category: trace.CategoryBuffer},
	} {
		l = l.Named(&e)
	}
	if want := (Elements{2: 2, 3: 1}); !maps.Equal(l, want) {
		t.Errorf("%v, want %v", l, want)
	}
}
