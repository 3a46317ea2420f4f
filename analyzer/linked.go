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

// linkedPair is what a tied stack is made of. Where the forward operator itself allocated nothing, above is set: it ran between the two, and its stack is what these have in common.
type linkedPair struct{ backward, forward, above trace.StackID }

const (
	// linkedBit marks ids of tied stacks. Ids of a dictionary are far below it.
	linkedBit trace.StackID = 1 << 31
	// operatorsKept is how many operators are remembered, a power of two: several steps of the largest models.
	operatorsKept = 1 << 18
	// operatorsNear is how far from an operator that allocated nothing its neighbours may be. Operators that only make views come in short rows.
	operatorsNear = 8
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
	pair := l.find(e)
	if pair.forward == 0 {
		return e.PyStack
	}
	id, known := l.ids[pair]
	if !known {
		id = linkedBit | trace.StackID(len(l.pairs))
		l.pairs = append(l.pairs, pair)
		l.ids[pair] = id
	}
	return id
}

func (l *linkedStacks) find(e *trace.Event) linkedPair {
	if l.operators == nil {
		return linkedPair{}
	}
	if at := l.at(e.Op, e.Device); at != 0 {
		return linkedPair{e.PyStack, at, 0}
	}
	below, above := trace.StackID(0), trace.StackID(0)
	for n := uint32(1); n <= operatorsNear && (below == 0 || above == 0); n++ {
		if below == 0 && n < e.Op {
			below = l.at(e.Op-n, e.Device)
		}
		if above == 0 {
			above = l.at(e.Op+n, e.Device)
		}
	}
	switch {
	case below == 0:
		return linkedPair{}
	case above == 0:
		above = below
	}
	return linkedPair{e.PyStack, below, above}
}

// at returns the stack of an operator, 0 if it is not known.
func (l *linkedStacks) at(number uint32, device int16) trace.StackID {
	if o := l.place(number, device); o.number == number && o.device == device {
		return o.stack
	}
	return 0
}

// frames returns the Python frames of the forward operator, innermost first. Of two neighbours those count that they have in common; where they are at different places of the same
// function, that is the innermost frame, at the place of the one before.
func (p *linkedPair) frames(tables *trace.Tables) []trace.PyFrame {
	list, _ := tables.PyStack(p.forward)
	if p.above == 0 {
		return list
	}
	other, _ := tables.PyStack(p.above)
	common := 0
	for common < min(len(list), len(other)) {
		a, b := list[len(list)-1-common], other[len(other)-1-common]
		if a.Code != b.Code || a.Self != b.Self {
			break
		}
		common++
		if a.Offset != b.Offset {
			break
		}
	}
	return list[len(list)-common:]
}

// split returns the parts of a Python stack: its own frames and, if it is tied, the forward operator's.
func (l *linkedStacks) split(id trace.StackID) linkedPair {
	if n := id &^ linkedBit; id&linkedBit != 0 && l != nil && int(n) < len(l.pairs) {
		return l.pairs[n]
	}
	return linkedPair{backward: id}
}
