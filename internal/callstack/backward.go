package callstack

import "memtrace/trace"

// LinkedStacks links the allocations of a backward pass to the forward operators whose gradient it computes. Such an
// allocation is made by a thread without Python frames, or with the frames of a gradient function of the program; it
// carries the sequence number of its forward operator, as did the allocations of that operator.
//
// A linked stack is a Python stack with an id of its own: the frames of the backward pass, if any, followed by those of
// the forward operator.
type LinkedStacks struct {
	operators operatorTable
	pairs     []linkedPair
	ids       map[uint64]trace.StackID     // of pairs with nothing above, by both stacks: nearly all
	recent    [recentPairs]recentPair      // some of them
	between   map[linkedPair]trace.StackID // of the others
	latest    Operator
}

// Operator is a forward operator. Of one thread, those that come later have larger numbers.
type Operator struct {
	Number   uint64 // with its thread in the upper half; 0: none
	Backward bool   // it is the one whose gradient is computed
}

// recentPairs is the number of pairs found without a map lookup: a step of a large model has some hundreds.
const recentPairs = 1 << 9

type recentPair struct {
	key uint64
	id  trace.StackID
}

// linkedPair is the parts of a linked stack. If the forward operator itself allocated nothing, above is set: it ran
// between forward and above, and its stack is the frames that both have in common.
type linkedPair struct{ Backward, forward, above trace.StackID }

const (
	// LinkedBit marks ids of linked stacks. Ids of a dictionary are far below it.
	LinkedBit trace.StackID = 1 << 31
	// operatorsNear is the maximum distance of neighbours from an operator that allocated nothing. Operators that only
	// make views occur in short sequences.
	operatorsNear = 8
)

// Asker is the fields of the event that allocated a block, as far as linking needs them.
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

// StackOf is Stack for callers without the event.
func (l *LinkedStacks) StackOf(a *Asker) trace.StackID {
	if a.Op != 0 {
		l.latest = Operator{uint64(operatorOf(a)), a.Backward}
	}
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

// Latest is the operator of the latest block that has one. Blocks of a forward pass carry the number of the one that
// was recorded for autograd last: where no gradient will be computed, it stays the same.
func (l *LinkedStacks) Latest() Operator { return l.latest }

func (l *LinkedStacks) backward(a *Asker) trace.StackID {
	pair := l.find(a)
	if pair.forward == 0 {
		return a.PyStack
	}
	return l.id(pair)
}

// id returns the id of a linked stack; equal pairs have equal ids.
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

// lookUp is id for a pair that is not among the recent ones.
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

// Frames returns the Python frames of the forward operator, innermost first. Of two neighbours it returns the common
// frames; where they are at different lines of the same function, that function is the innermost frame, at the line of
// the earlier neighbour.
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

// Split returns the parts of a Python stack: its own frames and, if it is linked, those of the forward operator.
func (l *LinkedStacks) Split(id trace.StackID) linkedPair {
	if n := id &^ LinkedBit; id&LinkedBit != 0 && l != nil && int(n) < len(l.pairs) {
		return l.pairs[n]
	}
	return linkedPair{Backward: id}
}
