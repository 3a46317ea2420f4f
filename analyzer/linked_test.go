package analyzer

import (
	"testing"

	"memtrace/trace"
)

// forwardAlloc and backwardAlloc are allocations of a framework, as far as the tie looks at them.
func forwardAlloc(thread trace.ThreadID, op uint32, device int16, stack trace.StackID) *trace.Event {
	return &trace.Event{Kind: trace.EventAlloc, Thread: thread, Op: op, Device: device, PyStack: stack}
}

func backwardAlloc(op uint32, device int16, own trace.StackID) *trace.Event {
	return &trace.Event{Kind: trace.EventAlloc, Thread: 99, Op: op, Device: device, PyStack: own, Flags: trace.FlagBackward}
}

func TestLinkedStacks(t *testing.T) {
	l := &linkedStacks{}
	tied := func(e *trace.Event) linkedPair { return l.split(l.stack(e)) }
	if got := tied(backwardAlloc(5, 0, 7)); got != (linkedPair{backward: 7}) {
		t.Errorf("before any operator: %+v", got)
	}
	for _, e := range []*trace.Event{
		forwardAlloc(1, 5, 0, 50),
		forwardAlloc(1, 5, 0, 51), // after the operator, before the next one
		forwardAlloc(1, 6, 0, 60),
		forwardAlloc(2, 6, 1, 61), // another thread numbers its own
		forwardAlloc(1, 0, 0, 62),
	} {
		if got := l.stack(e); got != e.PyStack {
			t.Errorf("a forward stack became %d", got)
		}
	}
	for _, test := range []struct {
		about string
		event *trace.Event
		want  linkedPair
	}{
		{"the operator's first allocation", backwardAlloc(5, 0, 0), linkedPair{0, 50, false}},
		{"frames of its own before it", backwardAlloc(5, 0, 7), linkedPair{7, 50, false}},
		{"by device", backwardAlloc(6, 1, 0), linkedPair{0, 61, false}},
		{"an operator that only made views", backwardAlloc(9, 0, 0), linkedPair{0, 60, true}},
		{"too far from any", backwardAlloc(6+operatorsBefore, 0, 3), linkedPair{backward: 3}},
		{"no operator", backwardAlloc(0, 0, 3), linkedPair{backward: 3}},
	} {
		if got := tied(test.event); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.about, got, test.want)
		}
	}
	if a, b := l.stack(backwardAlloc(5, 0, 7)), l.stack(backwardAlloc(5, 0, 7)); a != b {
		t.Errorf("the same pair has two ids: %d, %d", a, b)
	}
	l.stack(forwardAlloc(3, 5, 0, 55)) // the latest thread with the number counts
	if got := tied(backwardAlloc(5, 0, 0)); got != (linkedPair{0, 55, false}) {
		t.Errorf("another thread: %+v", got)
	}
	for op := range uint32(2 * operatorsKept) { // all that was is forgotten
		l.stack(forwardAlloc(1, 100+op, 0, 1000))
	}
	if got := tied(backwardAlloc(6, 1, 0)); got != (linkedPair{}) {
		t.Errorf("an operator of long ago: %+v", got)
	}
	if got := l.split(linkedBit | 1<<20); got != (linkedPair{backward: linkedBit | 1<<20}) {
		t.Errorf("an id that nobody gave: %+v", got)
	}
}
