package training

import (
	"testing"

	"memtrace/trace"
)

// TestSignsOfIterations: ranges and periods are found where they are, and not where they are not.
func TestSignsOfIterations(t *testing.T) {
	for _, test := range []struct{ tag, want string }{
		{"train.step 12.forward", "train.step 12"}, {"iteration 3", "iteration 3"}, {"step", "step"},
		{"train_step", "train_step"}, {"epoch 1/batch_7/x", "epoch 1/batch_7"},
		{"model.encoder", ""}, {"stepwise", ""}, {"", ""}, {"loss.item", ""},
	} {
		if got := rangeOf(test.tag); got != test.want {
			t.Errorf("%q has the range %q, want %q", test.tag, got, test.want)
		}
	}
	watch := func(stacks ...trace.StackID) *recurrence {
		w := &periodWatch{}
		for _, s := range stacks {
			w.alloc(&trace.Event{PyStack: s, Size: 1})
		}
		return w.anchor()
	}
	var loop, ragged, inner []trace.StackID
	for i := range 8 {
		loop = append(loop, 1, 2, 2, 3)
		ragged = append(append(ragged, 1), make([]trace.StackID, i*i%5)...)
		inner = append(inner, 1, 2, 3, 2, 3, 2, 3)
	}
	if a := watch(loop...); a == nil || a.gap != 4 || a.stacks.Python != 1 {
		t.Errorf("a loop of 4: %+v", a)
	}
	if a := watch(inner...); a == nil || a.gap != 7 {
		t.Errorf("a loop in a loop: %+v", a)
	}
	if a := watch(append([]trace.StackID{9, 8, 7}, loop...)...); a == nil || a.gap != 4 {
		t.Errorf("a loop after something else: %+v", a)
	}
	if a := watch(ragged...); a != nil {
		t.Errorf("no loop: %+v", a)
	}
	if a := watch(1, 1); a != nil {
		t.Errorf("two are no loop: %+v", a)
	}
}
