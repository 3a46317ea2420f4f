package callstack

import (
	"memtrace/trace"
)

// What libraries and linked stacks are known in a keyframe; names of tables begin with "stack.". Numbers are given anew
// in the same order, so that they are the same.

// Keep keeps which library each call stack was found to be of, and their order.
func (l *Libraries) Keep(s *trace.State) {
	names, stacks := s.Table("stack.libraries"), s.Table("stack.callers")
	for _, name := range l.names.List[1:] {
		names.PutText(name)
	}
	before := int64(0)
	for n, id := range l.stacks.IDs {
		stacks.PutSigned(int64(id) - before)
		stacks.Put(uint64(l.byNum[n]))
		before = int64(id)
	}
}

// Restore brings back what Keep kept. The dictionary as of the keyframe must have been read.
func (l *Libraries) Restore(s *trace.State) {
	for t := s.Table("stack.libraries"); t.More(); {
		l.names.Intern(t.Text())
	}
	id := int64(0)
	for t := s.Table("stack.callers"); t.More(); {
		id += t.Signed()
		library := t.ID()
		if id <= 0 || id > 1<<32-1 || int(library) >= len(l.names.List) {
			t.Fail()
			return
		}
		if _, isNew := l.stacks.Number(uint64(id)); !isNew {
			t.Fail()
			return
		}
		l.byNum = append(l.byNum, library)
		if frames := l.tables.Stack(trace.StackID(id)); len(frames) > 0 {
			if pc := frames[0] - 1; l.byPC[pc] == UnknownLibrary {
				l.byPC[pc] = library
			}
		}
	}
}

// Len is how many numbers there are.
func (l *Libraries) Len() int { return len(l.names.List) }

// Keep keeps the linked stacks, and the forward operators whose backward passes may be yet to come.
func (l *LinkedStacks) Keep(s *trace.State) {
	pairs := s.Table("stack.pairs")
	for _, p := range l.pairs {
		pairs.Put(uint64(p.Backward), uint64(p.forward), uint64(p.above))
	}
	t, table := &l.operators, s.Table("stack.operators")
	table.Put(uint64(len(t.sets)), uint64(t.taken), uint64(t.reach))
	before := operatorKey(0)
	for i := range t.sets {
		for n := len(t.sets[i]) - 1; n >= 0; n-- { // the newest of a set is pushed last
			if o := &t.sets[i][n]; o.operatorKey != 0 || o.stack != 0 {
				table.PutSigned(int64(o.operatorKey - before))
				table.Put(uint64(o.thread), uint64(o.stack), uint64(t.taken-o.taken))
				before = o.operatorKey
			}
		}
	}
}

// Restore brings back what Keep kept.
func (l *LinkedStacks) Restore(s *trace.State) {
	for t := s.Table("stack.pairs"); t.More(); {
		p := linkedPair{trace.StackID(t.ID()), trace.StackID(t.ID()), trace.StackID(t.ID())}
		if p.forward == 0 || l.lookUp(p, uint64(p.Backward)<<32|uint64(p.forward)) != LinkedBit|
			trace.StackID(len(l.pairs)-1) {
			t.Fail()
		}
	}
	t, table := &l.operators, s.Table("stack.operators")
	sets := table.Next()
	t.taken, t.reach = table.ID(), min(table.ID(), maxReach)
	if sets == 0 {
		return
	}
	if sets&(sets-1) != 0 || sets < minOperatorSets || sets > maxOperatorSets {
		table.Fail()
		return
	}
	t.sets = make([]operatorSet, sets)
	for key := operatorKey(0); table.More(); {
		key += operatorKey(table.Signed())
		o := operator{key, trace.ThreadID(table.ID()), trace.StackID(table.ID()), t.taken - table.ID()}
		t.set(key).push(o)
	}
}

// Known reports whether a Python stack is one of a dictionary, or linked.
func (l *LinkedStacks) Known(id trace.StackID) bool {
	return id&LinkedBit == 0 || int(id&^LinkedBit) < len(l.pairs)
}

// KeepPair and TakePair keep a pair of call stacks.
func KeepPair(t *trace.Numbers, p Pair) { t.Put(uint64(p.Native), uint64(p.Python)) }

// TakePair reads what KeepPair wrote.
func TakePair(t *trace.Numbers) Pair {
	return Pair{Native: trace.StackID(t.ID()), Python: trace.StackID(t.ID())}
}
