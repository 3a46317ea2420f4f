package callstack

import (
	"slices"
	"testing"

	"memtrace/trace"
)

// forwardAlloc and backwardAlloc return allocations of a framework with the fields that linking reads.
func forwardAlloc(thread trace.ThreadID, op uint32, device int16, stack trace.StackID) *trace.Event {
	return &trace.Event{Kind: trace.EventAlloc, Thread: thread, Op: op, Device: device, PyStack: stack}
}

// inThread adds the framework's thread number.
func inThread(e *trace.Event, number uint16) *trace.Event {
	e.OpThread = number
	return e
}

func backwardAlloc(op uint32, device int16, own trace.StackID) *trace.Event {
	return &trace.Event{Kind: trace.EventAlloc, Thread: 99, Op: op, Device: device, PyStack: own,
		Flags: trace.FlagBackward}
}

func TestLinkedStacks(t *testing.T) {
	l := &LinkedStacks{}
	tied := func(e *trace.Event) linkedPair { return l.Split(l.Stack(e)) }
	if got := tied(backwardAlloc(5, 0, 7)); got != (linkedPair{Backward: 7}) {
		t.Errorf("before any operator: %+v", got)
	}
	for _, e := range []*trace.Event{
		forwardAlloc(1, 5, 0, 50),
		forwardAlloc(1, 5, 0, 51), // after the operator, before the next one
		forwardAlloc(1, 6, 0, 60),
		forwardAlloc(2, 6, 1, 61), // another thread numbers its own
		forwardAlloc(1, 0, 0, 62),
		forwardAlloc(1, 18, 0, 70),
	} {
		if got := l.Stack(e); got != e.PyStack {
			t.Errorf("a forward stack became %d", got)
		}
	}
	for _, test := range []struct {
		about string
		event *trace.Event
		want  linkedPair
	}{
		{"the operator's first allocation", backwardAlloc(5, 0, 0), linkedPair{0, 50, 0}},
		{"frames of its own before it", backwardAlloc(5, 0, 7), linkedPair{7, 50, 0}},
		{"by device", backwardAlloc(6, 1, 0), linkedPair{0, 61, 0}},
		{"an operator that only made views, the last one", backwardAlloc(19, 0, 0), linkedPair{0, 70, 70}},
		{"one between two", backwardAlloc(13, 0, 0), linkedPair{0, 60, 70}},
		{"too far from any", backwardAlloc(19+operatorsNear, 0, 3), linkedPair{Backward: 3}},
		{"no operator", backwardAlloc(0, 0, 3), linkedPair{Backward: 3}},
	} {
		if got := tied(test.event); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.about, got, test.want)
		}
	}
	if a, b := l.Stack(backwardAlloc(5, 0, 7)), l.Stack(backwardAlloc(5, 0, 7)); a != b {
		t.Errorf("the same pair has two ids: %d, %d", a, b)
	}
	l.Stack(forwardAlloc(3, 5, 0, 55)) // the latest thread with the number counts
	if got := tied(backwardAlloc(5, 0, 0)); got != (linkedPair{0, 55, 0}) {
		t.Errorf("another thread: %+v", got)
	}
	for op := range uint32(2 * maxReach) { // all that was is forgotten
		l.Stack(forwardAlloc(1, 100+op, 0, 1000))
	}
	if got := tied(backwardAlloc(6, 1, 0)); got != (linkedPair{}) {
		t.Errorf("an operator of long ago: %+v", got)
	}
	if got := l.Split(LinkedBit | 1<<20); got != (linkedPair{Backward: LinkedBit | 1<<20}) {
		t.Errorf("an id that nobody gave: %+v", got)
	}
}

// TestLinkedThreads: two threads that train on one device use the same operator numbers. Before events carried thread
// numbers, a quarter of the bytes was linked to lines of the other thread.
func TestLinkedThreads(t *testing.T) {
	l := &LinkedStacks{}
	tied := func(e *trace.Event) linkedPair { return l.Split(l.Stack(e)) }
	for step := range uint32(1000) {
		for thread := range uint16(3) {
			for op := range uint32(8) {
				if op%4 != 3 {
					l.Stack(inThread(forwardAlloc(trace.ThreadID(thread), 1+8*step+op, 0,
						trace.StackID(1+10*uint32(thread)+op)), 1+thread))
				}
			}
		}
		for thread := range uint16(3) {
			first := trace.StackID(1 + 10*uint32(thread))
			for _, test := range []struct {
				op   uint32
				want linkedPair
			}{{0, linkedPair{0, first, 0}}, {6, linkedPair{0, first + 6, 0}},
				{3, linkedPair{0, first + 2, first + 4}}} {
				if got := tied(inThread(backwardAlloc(1+8*step+test.op, 0, 0), 1+thread)); got != test.want {
					t.Fatalf("operator %d of step %d of thread %d: %+v, want %+v", test.op, step, thread,
						got, test.want)
				}
			}
		}
	}
	// its gradient is on the device that the forward pass moved it from
	if got := tied(inThread(backwardAlloc(8000, 1, 0), 2)); got.forward == 0 || got.Backward != 0 {
		t.Errorf("on another device: %+v", got)
	}
	if got := tied(inThread(backwardAlloc(8000, 0, 5), 9)); got != (linkedPair{Backward: 5}) {
		t.Errorf("a thread without operators: %+v", got)
	}
	if got := tied(backwardAlloc(8000, 0, 5)); got != (linkedPair{Backward: 5}) {
		t.Errorf("an operator of no known thread: %+v", got)
	}
}

// TestOperatorTableCapacity: a single thread uses the whole table; threads that share it each keep their latest
// operators, whatever their first number is.
func TestOperatorTableCapacity(t *testing.T) {
	const room = maxReach
	for threads := uint32(1); threads <= 4; threads *= 2 {
		l := &LinkedStacks{}
		last := 3 * room
		for op := uint32(1); op <= last; op++ {
			for thread := range threads {
				l.Stack(inThread(forwardAlloc(1, op, 0, trace.StackID(1+thread)), uint16(1+thread)))
			}
		}
		for thread := range threads {
			for _, op := range []uint32{last, last - room/threads + 1} {
				if got := l.operators.at(operatorOf(&Asker{Op: op, OpThread: uint16(1 + thread)}), 0); got !=
					trace.StackID(1+thread) {
					t.Errorf("%d threads: operator %d of thread %d has stack %d", threads, op, thread, got)
				}
			}
			if got := l.operators.at(operatorOf(&Asker{Op: last - room, OpThread: uint16(1 + thread)}), 0); got != 0 {
				t.Errorf("%d threads: an operator of long ago has stack %d", threads, got)
			}
		}
	}
}

// TestOperatorTableGrows: all operators of a training are found in a table no larger than a few of its steps need, and
// the table grows when steps become longer.
func TestOperatorTableGrows(t *testing.T) {
	l := &LinkedStacks{}
	number, missed := uint32(0), 0
	train := func(steps, operators uint32) {
		for range steps {
			first := number + 1
			for range operators {
				number++
				l.Stack(inThread(forwardAlloc(1, number, 0, trace.StackID(1+number%1000)), 1))
			}
			for op := number; op >= first; op-- {
				if got := l.Split(l.Stack(inThread(backwardAlloc(op, 0, 0), 1))); got !=
					(linkedPair{0, trace.StackID(1 + op%1000), 0}) {
					missed++
				}
			}
		}
	}
	room := func() int { return len(l.operators.sets) * len(operatorSet{}) }
	train(200, 900)
	if missed != 0 || room() > 4*operatorMargin*900 {
		t.Errorf("%d operators missed, room for %d", missed, room())
	}
	train(3, 5000) // within the margin
	if missed != 0 || room() < 2*5000 || room() > 4*operatorMargin*5000 {
		t.Errorf("longer steps: %d operators missed, room for %d", missed, room())
	}
	train(3, 100_000) // beyond it: some of the first steps' operators are lost, later ones are not
	missed = 0
	train(2, 100_000)
	if missed != 0 {
		t.Errorf("much longer steps: %d operators missed, room for %d", missed, room())
	}
}

// TestFramesBetween: what two neighbours have in common.
func TestFramesBetween(t *testing.T) {
	frame := func(code trace.CodeID, offset uint32, self uint64) trace.PyFrame {
		return trace.PyFrame{Code: code, Offset: offset, Self: self}
	}
	for _, test := range []struct {
		about        string
		below, above []trace.PyFrame // innermost first
		want         []trace.PyFrame
	}{
		{"the same", []trace.PyFrame{frame(2, 5, 0), frame(1, 1, 0)}, []trace.PyFrame{frame(2, 5, 0), frame(1, 1, 0)},
			[]trace.PyFrame{frame(2, 5, 0), frame(1, 1, 0)}},
		{"another line of the same function", []trace.PyFrame{frame(2, 5, 0), frame(1, 1, 0)},
			[]trace.PyFrame{frame(2, 7, 0), frame(1, 1, 0)}, []trace.PyFrame{frame(2, 5, 0), frame(1, 1, 0)}},
		{"another module", []trace.PyFrame{frame(3, 1, 0xa), frame(2, 5, 0), frame(1, 1, 0)},
			[]trace.PyFrame{frame(3, 1, 0xb), frame(2, 7, 0), frame(1, 1, 0)},
			[]trace.PyFrame{frame(2, 5, 0), frame(1, 1, 0)}},
		{"one deeper", []trace.PyFrame{frame(1, 1, 0)}, []trace.PyFrame{frame(2, 7, 0), frame(1, 1, 0)},
			[]trace.PyFrame{frame(1, 1, 0)}},
		{"nothing", []trace.PyFrame{frame(1, 1, 0)}, []trace.PyFrame{frame(2, 1, 0)}, []trace.PyFrame{}},
	} {
		var tables trace.Tables
		tables.AddPyStack(trace.PyStack{ID: 1, Frames: test.below})
		tables.AddPyStack(trace.PyStack{ID: 2, Frames: test.above})
		if got := (&linkedPair{0, 1, 2}).Frames(&tables); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.about, got, test.want)
		}
	}
}
