package callstack

import (
	"math"

	"memtrace/trace"
)

// operatorKey identifies a forward operator. Every thread numbers its own. In a trace without thread numbers, the
// device distinguishes threads, if each has its own; of two threads with one device the last one counts.
//
//	bits 0-31   number, as events carry it
//	bits 32-47  device, 0 where the thread is known
//	bits 48-63  thread, as events carry it, 0 unknown
//
// One word, so that keys are compared in one step.
type operatorKey uint64

func operatorOf(a *Asker) operatorKey {
	if a.OpThread != 0 {
		return operatorKey(a.Op) | operatorKey(a.OpThread)<<48
	}
	return operatorKey(a.Op) | operatorKey(uint16(a.Device))<<32
}

// offset is the key of the same thread's operator that is by numbers later; numbers wrap around.
func (k operatorKey) offset(by int32) operatorKey {
	return k&^math.MaxUint32 | operatorKey(uint32(k)+uint32(by))
}

type operator struct {
	operatorKey
	thread trace.ThreadID
	stack  trace.StackID // of Python; 0: nothing is here
	taken  uint32        // number of operators recorded before it
}

// operatorSet is one set of the set-associative operatorTable, the newest operator first. Numbers of one thread are
// consecutive, so that a single thread uses the whole table; several threads share it.
type operatorSet [4]operator

// operatorTable keeps the latest forward operators that allocated. It is sized by what backward passes need, so that
// the data of a training step stays in the processor's caches: it grows before it evicts an operator not much older
// than the oldest one ever looked up. In the traced process, a small number of pages matters, too.
type operatorTable struct {
	sets  []operatorSet
	taken uint32 // operators so far; may wrap around
	reach uint32 // largest distance of a lookup so far, in operators
}

const (
	// minOperatorSets and maxOperatorSets are powers of two. At most there is room for the operators of several steps
	// of the largest models.
	minOperatorSets = 1 << 9
	maxOperatorSets = 1 << 16
	// operatorMargin is the factor by which operators are kept beyond the largest distance of a lookup: graphs may live
	// for several steps.
	operatorMargin = 8
	maxReach       = maxOperatorSets * uint32(len(operatorSet{}))
)

// put records an allocation of an operator. The number stays until the next operator begins, so that only the first
// allocation with a number is the operator's.
func (t *operatorTable) put(k operatorKey, thread trace.ThreadID, stack trace.StackID) {
	if t.sets == nil {
		t.sets = make([]operatorSet, minOperatorSets)
	}
	set := t.set(k)
	at := set.find(k)
	if at != nil && at.thread == thread {
		return
	}
	t.taken++
	o := operator{k, thread, stack, t.taken}
	if at != nil {
		*at = o
		return
	}
	for t.wanted(&set[len(set)-1]) && len(t.sets) < maxOperatorSets {
		t.grow()
		set = t.set(k)
	}
	set.push(o)
}

// wanted reports whether an operator may still be looked up, judging by past backward passes.
func (t *operatorTable) wanted(o *operator) bool {
	return o.stack != 0 && (t.reach == 0 || t.taken-o.taken < operatorMargin*t.reach)
}

func (t *operatorTable) grow() {
	old := t.sets
	t.sets = make([]operatorSet, 2*len(old))
	for i := range old {
		for n := len(old[i]) - 1; n >= 0; n-- {
			if o := &old[i][n]; o.stack != 0 {
				t.set(o.operatorKey).push(*o)
			}
		}
	}
}

// set returns the set of an operator. Operators with adjacent numbers are in adjacent sets; threads begin far from each
// other.
func (t *operatorTable) set(k operatorKey) *operatorSet {
	begin := uint32(k>>32) * 0x9e3779b1 >> 16
	return &t.sets[(uint32(k)+begin)&uint32(len(t.sets)-1)]
}

func (s *operatorSet) find(k operatorKey) *operator {
	for i := range s {
		if s[i].operatorKey == k {
			return &s[i]
		}
	}
	return nil
}

func (s *operatorSet) push(o operator) {
	copy(s[1:], s[:])
	s[0] = o
}

// at returns the stack of the operator that the key's thread recorded after numbers later than the key's, 0 if unknown.
func (t *operatorTable) at(k operatorKey, after int32) trace.StackID {
	if t.sets == nil {
		return 0
	}
	k = k.offset(after)
	o := t.set(k).find(k)
	if o == nil || o.stack == 0 {
		return 0
	}
	t.reach = min(max(t.reach, t.taken-o.taken+1), maxReach)
	return o.stack
}

// miss records that an operator, and all near it, was not found: it may have been evicted too early.
func (t *operatorTable) miss() { t.reach = min(2*t.reach, maxReach) }
