package callstack

import "memtrace/trace"

// LinkedStacks ties what a backward pass allocates to the forward operators that it is the gradient of. Such an
// allocation comes from a thread without Python frames, or with those of a gradient function of the program's own; it
// carries the number of its forward operator, and so did what that operator allocated in its time.
//
// A tied stack is a Python stack with an id of its own: the frames of the backward pass, if any, and behind them those
// of the forward operator.
type LinkedStacks struct {
	operators operatorTable
	pairs     []linkedPair
	ids       map[uint64]trace.StackID     // of pairs with nothing above, by both stacks: nearly all
	recent    [recentPairs]recentPair      // some of them
	between   map[linkedPair]trace.StackID // of the others
}

// recentPairs is how many pairs are found without a look into a map: a step of a large model has some hundreds.
const recentPairs = 1 << 9

type recentPair struct {
	key uint64
	id  trace.StackID
}

// linkedPair is what a tied stack is made of. Where the forward operator itself allocated nothing, above is set: it ran
// between the two, and its stack is what these have in common.
type linkedPair struct{ Backward, forward, above trace.StackID }

const (
	// LinkedBit marks ids of tied stacks. Ids of a dictionary are far below it.
	LinkedBit trace.StackID = 1 << 31
	// operatorsNear is how far from an operator that allocated nothing its neighbours may be. Operators that only make
	// views come in short rows.
	operatorsNear = 8
)

// Asker is who asked for a block: the fields of the event that made it.
type Asker struct {
	PyStack  trace.StackID
	Op       uint32 // as events carry it
	OpThread uint16
	Device   int16
	Thread   trace.ThreadID
	Backward bool
}

// Stack returns the Python stack that a block belongs to, given the event that made it.
func (l *LinkedStacks) Stack(e *trace.Event) trace.StackID {
	if e.Op == 0 {
		return e.PyStack
	}
	return l.StackOf(&Asker{e.PyStack, e.Op, e.OpThread, e.Device, e.Thread, e.Flags&trace.FlagBackward != 0})
}

// StackOf is Stack for one who does not have the event.
func (l *LinkedStacks) StackOf(a *Asker) trace.StackID {
	switch {
	case a.Op == 0:
		return a.PyStack
	case a.Backward:
		return l.backward(a)
	case a.PyStack != 0:
		l.operators.put(operatorOf(a), a.Thread, a.PyStack)
	}
	return a.PyStack
}

func (l *LinkedStacks) backward(a *Asker) trace.StackID {
	pair := l.find(a)
	if pair.forward == 0 {
		return a.PyStack
	}
	return l.id(pair)
}

// id returns the id of a tied stack, the same one for the same pair.
func (l *LinkedStacks) id(pair linkedPair) trace.StackID {
	key := uint64(pair.Backward)<<32 | uint64(pair.forward)
	recent := &l.recent[(pair.forward^pair.Backward*31)%recentPairs]
	if pair.above == 0 && recent.key == key { // no pair has the key 0, for none is without a forward operator
		return recent.id
	}
	id := l.lookUp(pair, key)
	if pair.above == 0 {
		*recent = recentPair{key, id}
	}
	return id
}

// lookUp is id for a pair that did not come up lately.
func (l *LinkedStacks) lookUp(pair linkedPair, key uint64) trace.StackID {
	known, next := l.ids[key], LinkedBit|trace.StackID(len(l.pairs))
	if pair.above != 0 {
		known = l.between[pair]
	}
	switch {
	case known != 0:
		return known
	case l.ids == nil:
		l.ids, l.between = make(map[uint64]trace.StackID), make(map[linkedPair]trace.StackID)
	}
	if pair.above != 0 {
		l.between[pair] = next
	} else {
		l.ids[key] = next
	}
	l.pairs = append(l.pairs, pair)
	return next
}

func (l *LinkedStacks) find(a *Asker) linkedPair {
	key := operatorOf(a)
	if at := l.operators.at(key, 0); at != 0 {
		return linkedPair{a.PyStack, at, 0}
	}
	below, above := trace.StackID(0), trace.StackID(0)
	for n := int32(1); n <= operatorsNear && (below == 0 || above == 0); n++ {
		if below == 0 {
			below = l.operators.at(key, -n)
		}
		if above == 0 {
			above = l.operators.at(key, n)
		}
	}
	switch {
	case below == 0:
		l.operators.miss()
		return linkedPair{}
	case above == 0:
		above = below
	}
	return linkedPair{a.PyStack, below, above}
}

// Frames returns the Python frames of the forward operator, innermost first. Of two neighbours those count that they
// have in common; where they are at different places of the same function, that is the innermost frame, at the place of
// the one before.
func (p *linkedPair) Frames(tables *trace.Tables) []trace.PyFrame {
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

// Split returns the parts of a Python stack: its own frames and, if it is tied, the forward operator's.
func (l *LinkedStacks) Split(id trace.StackID) linkedPair {
	if n := id &^ LinkedBit; id&LinkedBit != 0 && l != nil && int(n) < len(l.pairs) {
		return l.pairs[n]
	}
	return linkedPair{Backward: id}
}
