package analyzer

import "memtrace/trace"

// linkedStacks ties what a backward pass allocates to the forward operators that it is the gradient of. Such an allocation comes from a thread without Python frames, or with
// those of a gradient function of the program's own; it carries the number of its forward operator, and so did what that operator allocated in its time.
//
// A tied stack is a Python stack with an id of its own: the frames of the backward pass, if any, and behind them those of the forward operator.
type linkedStacks struct {
	operators []operator // by number and device; a later one takes an earlier one's place
	pairs     []linkedPair
	ids       map[linkedPair]trace.StackID
}

// operator is a forward operator. Every thread numbers its own, so that the same number returns on another device.
type operator struct {
	number uint32 // as events carry it
	device int16
	thread trace.ThreadID
	stack  trace.StackID // of Python
}

type linkedPair struct {
	backward, forward trace.StackID
	near              bool // forward is that of an operator shortly before, which may be on another line
}

const (
	// linkedBit marks ids of tied stacks. Ids of a dictionary are far below it.
	linkedBit trace.StackID = 1 << 31
	// operatorsKept is how many operators are remembered, a power of two: several steps of the largest models.
	operatorsKept = 1 << 18
	// operatorsBefore is how far before an operator that allocated nothing another one may stand for it. Operators that only make views come in short rows, on the same line.
	operatorsBefore = 8
)

// stack returns the Python stack that a block belongs to, given the event that made it.
func (l *linkedStacks) stack(e *trace.Event) trace.StackID {
	switch {
	case e.Op == 0:
		return e.PyStack
	case e.Flags&trace.FlagBackward != 0:
		return l.backward(e)
	case e.PyStack != 0:
		l.forward(operator{e.Op, e.Device, e.Thread, e.PyStack})
	}
	return e.PyStack
}

// forward takes in what an operator allocates. The number stays what it is until the next operator begins, so that of one number's allocations the first one is the operator's.
func (l *linkedStacks) forward(o operator) {
	if l.operators == nil {
		l.operators, l.ids = make([]operator, operatorsKept), make(map[linkedPair]trace.StackID)
	}
	if at := l.place(o.number, o.device); at.number != o.number || at.thread != o.thread || at.device != o.device {
		*at = o
	}
}

func (l *linkedStacks) place(number uint32, device int16) *operator {
	return &l.operators[(number^uint32(uint16(device))<<14)%operatorsKept]
}

func (l *linkedStacks) backward(e *trace.Event) trace.StackID {
	forward, near := l.find(e)
	if forward == 0 {
		return e.PyStack
	}
	pair := linkedPair{e.PyStack, forward, near}
	id, known := l.ids[pair]
	if !known {
		id = linkedBit | trace.StackID(len(l.pairs))
		l.pairs = append(l.pairs, pair)
		l.ids[pair] = id
	}
	return id
}

func (l *linkedStacks) find(e *trace.Event) (forward trace.StackID, near bool) {
	if l.operators == nil {
		return 0, false
	}
	for back := range min(uint32(operatorsBefore), e.Op) {
		if o := l.place(e.Op-back, e.Device); o.number == e.Op-back && o.device == e.Device {
			return o.stack, back > 0
		}
	}
	return 0, false
}

// split returns the parts of a Python stack: its own frames and, if it is tied, those of the forward operator.
func (l *linkedStacks) split(id trace.StackID) linkedPair {
	if n := id &^ linkedBit; id&linkedBit != 0 && l != nil && int(n) < len(l.pairs) {
		return l.pairs[n]
	}
	return linkedPair{backward: id}
}
