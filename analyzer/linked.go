package analyzer

import "memtrace/trace"

// linkedStacks ties what a backward pass allocates to the forward operators that it is the gradient of. Such an allocation comes from a thread without Python frames, or with
// those of a gradient function of the program's own; it carries the number of its forward operator, and so did what that operator allocated in its time.
//
// A tied stack is a Python stack with an id of its own: the frames of the backward pass, if any, and behind them those of the forward operator.
type linkedStacks struct {
	operators []operatorSet
	pairs     []linkedPair
	ids       map[linkedPair]trace.StackID
}

// operatorKey names a forward operator. Every thread numbers its own. Where the trace does not tell threads, the device keeps those of several apart, if each has its own; of two
// threads with one device the last one counts.
type operatorKey struct {
	number uint32 // as events carry it
	thread uint16 // as events carry it, 0 unknown
	device int16  // 0 where the thread is known
}

type operator struct {
	operatorKey
	taker trace.ThreadID
	stack trace.StackID // of Python
}

// operatorSet holds operators whose keys share a place, the newest one first. One thread's numbers come in order, so that all of the table is theirs; several threads share it.
type operatorSet [4]operator

func operatorOf(e *trace.Event) operatorKey {
	if e.OpThread != 0 {
		return operatorKey{number: e.Op, thread: e.OpThread}
	}
	return operatorKey{number: e.Op, device: e.Device}
}

// linkedPair is what a tied stack is made of. Where the forward operator itself allocated nothing, above is set: it ran between the two, and its stack is what these have in common.
type linkedPair struct{ backward, forward, above trace.StackID }

const (
	// linkedBit marks ids of tied stacks. Ids of a dictionary are far below it.
	linkedBit trace.StackID = 1 << 31
	// operatorSets is a power of two. There is room for the operators of several steps of the largest models.
	operatorSets = 1 << 16
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
		l.forward(operator{operatorOf(e), e.Thread, e.PyStack})
	}
	return e.PyStack
}

// forward takes in what an operator allocates. The number stays what it is until the next operator begins, so that of one number's allocations the first one is the operator's.
func (l *linkedStacks) forward(o operator) {
	if l.operators == nil {
		l.operators, l.ids = make([]operatorSet, operatorSets), make(map[linkedPair]trace.StackID)
	}
	set := l.set(o.operatorKey)
	at := set.find(o.operatorKey)
	switch {
	case at == nil:
		copy(set[1:], set[:])
		set[0] = o
	case at.taker != o.taker:
		*at = o
	}
}

// set returns where an operator is if it is known. Neighbours by number are neighbours there; threads begin far from each other.
func (l *linkedStacks) set(k operatorKey) *operatorSet {
	begin := (uint32(k.thread)<<16 | uint32(uint16(k.device))) * 0x9e3779b1 >> 16
	return &l.operators[(k.number+begin)%operatorSets]
}

func (s *operatorSet) find(k operatorKey) *operator {
	for i := range s {
		if s[i].operatorKey == k {
			return &s[i]
		}
	}
	return nil
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
	key := operatorOf(e)
	if at := l.at(key, 0); at != 0 {
		return linkedPair{e.PyStack, at, 0}
	}
	below, above := trace.StackID(0), trace.StackID(0)
	for n := int32(1); n <= operatorsNear && (below == 0 || above == 0); n++ {
		if below == 0 {
			below = l.at(key, -n)
		}
		if above == 0 {
			above = l.at(key, n)
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

// at returns the stack of the operator that the key's thread recorded so many operators after the key's, 0 if it is not known.
func (l *linkedStacks) at(k operatorKey, after int32) trace.StackID {
	k.number += uint32(after)
	if o := l.set(k).find(k); o != nil {
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
