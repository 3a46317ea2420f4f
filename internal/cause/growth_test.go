package cause

import (
	"maps"
	"testing"

	"memtrace/internal/callstack"
)

// What env_step allocated at line 25 was said to be allocated at line 34, which called it, beside a sentence and a
// table that had line 25.
//
// Of what one line allocated that a place called, that line is known. Of several there is none, nor where it is the
// place itself, a library's or a step of a backward pass.
func TestInnerLines(t *testing.T) {
	t.Parallel()
	stack := func(key string, user bool) *callstack.Stack { // Backward is there for any
		return &callstack.Stack{Key: key, Site: &callstack.Frame{User: user}, Backward: callstack.BackwardOf[false]}
	}
	var places []callstack.Place
	var stacks []*callstack.Stack
	var by []uint64
	for _, c := range []struct {
		place string
		stack *callstack.Stack
		by    uint64
	}{
		{"dqn.py:34", stack("dqn.py:25 env_step", true), 8},
		{"dqn.py:34", stack("dqn.py:25 env_step", true), 4},
		{"dqn.py:34", stack("dqn.py:99 unrelated", true), 0},
		{"a.py:1", stack("a.py:2", true), 1}, {"a.py:1", stack("a.py:3", true), 1},
		{"b.py:1", stack("b.py:2", true), 1}, {"b.py:1", stack("b.py:1", true), 1},
		{"c.py:1", stack("c.py:1", true), 1}, {"d.py:1", stack("lib.py:1", false), 1},
		{"e.py:1", stack("backward of e.py:2", true), 1}, {"f.py:1", &callstack.Stack{}, 1},
	} {
		places = append(places, callstack.Place{Key: c.place})
		stacks, by = append(stacks, c.stack), append(by, c.by)
	}
	got := innerLines(places, stacks, by)
	maps.DeleteFunc(got, func(_, line string) bool { return line == "" })
	if want := map[string]string{"dqn.py:34": "dqn.py:25 env_step"}; !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
