package callstack

import (
	"math"

	"memtrace/trace"
)

// operatorKey names a forward operator. Every thread numbers its own. Where the trace does not tell threads, the device
// keeps those of several apart, if each has its own; of two threads with one device the last one counts.
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

// offset is the key of the same thread's operator so many numbers later; numbers wrap around.
func (k operatorKey) offset(by int32) operatorKey {
	return k&^math.MaxUint32 | operatorKey(uint32(k)+uint32(by))
}

type operator struct {
	operatorKey
	taker trace.ThreadID
	stack trace.StackID // of Python; 0: nothing is here
	taken uint32        // by how many operators it came
}

// operatorSet holds operators whose keys share a place, the newest one first. One thread's numbers come in order, so
// that all of the table is theirs; several threads share it.
type operatorSet [4]operator

// operatorTable remembers the latest forward operators that allocated. It is as large as backward passes need it, so
// that what a training step touches stays in the processor's caches: it grows before it puts out an operator that is
// not much older than the oldest that was ever asked for. Beside a program that runs it matters, too, that its pages
// are few.
type operatorTable struct {
	sets  []operatorSet
	taken uint32 // operators so far; may wrap around
	reach uint32 // how many operators back was asked for, at most
}

const (
	// minOperatorSets and maxOperatorSets are powers of two. At most there is room for the operators of several steps
	// of the largest models.
	minOperatorSets = 1 << 9
	maxOperatorSets = 1 << 16
	// operatorMargin is how many times farther back than was ever asked for operators are kept: graphs may live for
	// several steps.
	operatorMargin = 8
	maxReach       = maxOperatorSets * uint32(len(operatorSet{}))
)

// put takes in what an operator allocates. The number stays what it is until the next operator begins, so that of one
// number's allocations the first one is the operator's.
func (t *operatorTable) put(k operatorKey, taker trace.ThreadID, stack trace.StackID) {
	if t.sets == nil {
		t.sets = make([]operatorSet, minOperatorSets)
	}
	set := t.set(k)
	at := set.find(k)
	if at != nil && at.taker == taker {
		return
	}
	t.taken++
	o := operator{k, taker, stack, t.taken}
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

// wanted reports whether an operator may still be asked for, as far as backward passes have shown.
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

// set returns where an operator is if it is known. Neighbours by number are neighbours there; threads begin far from
// each other.
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

// at returns the stack of the operator that the key's thread recorded so many operators after the key's, 0 if it is not
// known.
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

// miss says that an operator, and all near it, was not known: it may have been put out too early.
func (t *operatorTable) miss() { t.reach = min(2*t.reach, maxReach) }
