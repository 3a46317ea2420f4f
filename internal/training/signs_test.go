package training

import (
	"slices"
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
	// Blocks of stacks up to 20 go with the next one of their stack, those of stacks beyond 40 at a stack of 0.
	watch := func(stacks ...trace.StackID) *recurrence {
		w := &periodWatch{}
		live := make(map[trace.StackID][]uint64)
		free := func(s trace.StackID) {
			for _, addr := range live[s] {
				w.free(&trace.Event{Addr: addr})
			}
			live[s] = nil
		}
		for i, s := range stacks {
			w.alloc(&trace.Event{PyStack: s, Size: 1, Addr: uint64(i + 1)})
			if s <= 20 {
				free(s)
			}
			if live[s] = append(live[s], uint64(i+1)); s == 0 {
				for s := range live {
					if s > 40 {
						free(s)
					}
				}
			}
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
	layers := func(stack trace.StackID, passes int) (list []trace.StackID) {
		for range passes {
			list = append(list, 0, 0) // the input and the loss have stacks of their own
			for range 12 {
				list = append(list, stack, stack+1)
			}
		}
		return list
	}
	for name, stacks := range map[string][]trace.StackID{"what is never freed": slices.Repeat([]trace.StackID{21}, 10),
		"layers of two passes": layers(41, 2), "layers of three passes": layers(41, 3),
		"layers of two passes that keep nothing": layers(11, 2)} {
		if a := watch(stacks...); a != nil {
			t.Errorf("%s is an iteration: %+v", name, a)
		}
	}
	var longer []trace.StackID
	for pass := range 60 { // a backward pass through all iterations before
		longer = append(longer, 1, 2)
		for range pass {
			longer = append(longer, 3, 4)
		}
	}
	if a := watch(longer...); a != nil {
		t.Errorf("passes that get longer: %+v", a)
	}
	var epochs []trace.StackID
	for epoch := range 6 {
		rest := make([]trace.StackID, 3+epoch*epoch%5)
		epochs = slices.Concat(epochs, slices.Repeat([]trace.StackID{1, 2, 3}, 20), rest)
	}
	if a := watch(epochs...); a == nil || a.gap != 3 || a.count != 120 {
		t.Errorf("epochs of twenty iterations: %+v", a)
	}
	if a := watch(ragged...); a != nil {
		t.Errorf("no loop: %+v", a)
	}
	if a := watch(1, 1); a != nil {
		t.Errorf("two are no loop: %+v", a)
	}
}
