package training

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// What of a training stands in a keyframe, and in the closing of a trace's keyframes; names of tables begin with
// "training.".

// Keep keeps the parameters.
func (l *ParameterList) Keep(s *trace.State) {
	t, objects, names := s.Table("training.parameters"), s.Table("training.objects"), s.Table("training.names")
	for i := range l.list {
		p := &l.list[i]
		t.PutText(p.name)
		t.Put(uint64(p.category), uint64(len(p.order)))
		t.PutBool(p.renamed)
		t.PutSigned(p.from)
		for _, key := range p.order {
			f := p.figures[key]
			t.Put(uint64(key.category), f.bytes, f.block)
			t.PutText(key.state)
			t.PutSigned(int64(key.device))
			if t.PutBool(f.requested != nil); f.requested != nil {
				t.Put(f.requested.Bytes, f.requested.RestBytes, f.requested.UnknownBytes)
			}
		}
	}
	for _, object := range slices.Sorted(maps.Keys(l.objects)) {
		objects.Put(object, uint64(l.objects[object]))
	}
	for _, name := range slices.Sorted(maps.Keys(l.names)) {
		names.Put(uint64(name), uint64(l.names[name]))
	}
}

// Restore brings back what Keep kept.
func (l *ParameterList) Restore(s *trace.State) {
	t := s.Table("training.parameters")
	*l = ParameterList{}
	if !t.More() {
		return
	}
	l.index, l.names, l.objects = make(map[string]int), make(map[trace.StringID]int), make(map[uint64]int)
	for t.More() {
		p := parameterFigures{name: t.Text(), category: trace.Category(t.Next()), figures: make(map[figureKey]figure)}
		figures := t.Next()
		p.renamed, p.from = t.Bool(), t.Signed()
		for ; figures > 0 && t.More(); figures-- {
			key := figureKey{category: trace.Category(t.Next())}
			f := figure{bytes: t.Next(), block: t.Next()}
			key.state, key.device = t.Text(), int16(t.Signed())
			if t.Bool() {
				f.requested = &report.Requested{Bytes: t.Next(), RestBytes: t.Next(), UnknownBytes: t.Next()}
			}
			p.order, p.figures[key] = append(p.order, key), f
		}
		l.index[p.name] = len(l.list)
		l.list = append(l.list, p)
	}
	number := func(t *trace.Numbers) int {
		n := t.ID()
		if int(n) >= len(l.list) {
			t.Fail()
			return 0
		}
		return int(n)
	}
	for t := s.Table("training.objects"); t.More(); {
		object := t.Next()
		l.objects[object] = number(t)
	}
	for t := s.Table("training.names"); t.More(); {
		name := trace.StringID(t.ID())
		l.names[name] = number(t)
	}
}

// Keep keeps the bytes of elements.
func (l Elements) Keep(s *trace.State) {
	t := s.Table("training.elements")
	for _, name := range slices.Sorted(maps.Keys(l)) {
		t.Put(uint64(name), uint64(l[name]))
	}
}

// RestoreElements brings back what Keep kept.
func RestoreElements(s *trace.State) (l Elements) {
	for t := s.Table("training.elements"); t.More(); {
		if l == nil {
			l = make(Elements)
		}
		name := trace.StringID(t.ID())
		l[name] = uint8(t.Next())
	}
	return l
}

// Keep keeps where the tracker is; order lists the live blocks.
func (t *Tracker) Keep(s *trace.State, order []uint32) {
	n := s.Table("training.tracker")
	n.Put(t.epoch, t.number, uint64(t.pass))
	n.PutBool(t.started)
	callstack.KeepPair(n, t.from)
	n.Put(uint64(len(t.reserved)))
	n.Put(t.reserved...)
	n.Put(t.open.ReservedEndBytes)
	t.ranges.keep(n)
	passing, modules := s.Table("training.pass"), s.Table("training.backward")
	for i, id := range order {
		if int(id) < t.live.Len() && t.live.At(id).pass == t.run {
			passing.Put(uint64(i))
		}
	}
	for module, passed := range t.backward {
		if passed {
			modules.PutText(t.modules.names[module])
		}
	}
}

// Restore brings back what Keep kept, behind the live blocks; ids are their numbers, in order.
func (t *Tracker) Restore(s *trace.State, ids []uint32) {
	n := s.Table("training.tracker")
	t.epoch, t.number, t.pass = n.Next(), n.Next(), uint8(n.Next())
	t.started, t.from = n.Bool(), callstack.TakePair(n)
	t.called = t.callOf(t.from.Python)
	t.reserved = nil
	for i := range min(n.Next(), heap.MaxSlots) {
		*heap.Slot(&t.reserved, int(i)) = n.Next()
	}
	t.open.ReservedEndBytes = n.Next()
	t.ranges.restore(n)
	t.run = 2
	for _, id := range ids {
		if int(id) < t.live.Len() {
			t.live.At(id).pass = 1
		}
	}
	for n := s.Table("training.pass"); n.More(); {
		i := n.Next()
		if i >= uint64(len(ids)) {
			n.Fail()
			return
		}
		if id := ids[i]; int(id) < t.live.Len() { // else it is of another account
			t.live.At(id).pass = t.run
		}
	}
	for n := s.Table("training.backward"); n.More(); {
		*heap.Slot(&t.backward, int(t.modules.number(n.Text()))) = true
	}
}

func (w *rangeWatch) keep(n *trace.Numbers) {
	n.Put(uint64(w.thread), uint64(w.tag))
	for _, thread := range slices.Sorted(maps.Keys(w.inside)) {
		n.Put(uint64(thread), uint64(w.inside[thread]))
	}
}

func (w *rangeWatch) restore(n *trace.Numbers) {
	w.thread, w.tag = trace.ThreadID(n.ID()), trace.StringID(n.ID())
	w.known, w.inside = make(map[trace.StringID]string), make(map[trace.ThreadID]trace.StringID)
	for n.More() {
		thread := trace.ThreadID(n.ID())
		w.inside[thread] = trace.StringID(n.ID())
	}
}

// Keep keeps what reading ahead found out, without the names of blocks.
func (p *Lookahead) Keep(s *trace.State) {
	t := s.Table("training.ahead")
	t.PutBool(p.Framework)
	t.PutBool(p.snapshot)
	t.Put(p.steps, p.ranged, p.Blocks.PeakSeq())
	t.Put(p.LastAlloc[:]...)
	anchor := p.period.anchor()
	if t.PutBool(anchor != nil); anchor != nil {
		callstack.KeepPair(t, anchor.stacks)
		t.Put(anchor.gap)
	}
	for _, object := range slices.Sorted(maps.Keys(p.stepped.all)) {
		o := p.stepped.all[object]
		t.Put(object, uint64(o.name), o.count, o.repeats, o.first, o.last)
	}
	p.Elements.Keep(s)
	first := s.Table("training.first")
	for _, object := range slices.Sorted(maps.Keys(p.Modules.First)) {
		first.Put(object, uint64(p.Modules.First[object]))
	}
}

// RestoreLookahead brings back what Keep kept; nothing is known of the names of blocks.
func RestoreLookahead(s *trace.State, tables *trace.Tables) *Lookahead {
	p := &Lookahead{stepped: newOptimizers(), ranges: rangeWatch{tables: tables}}
	t := s.Table("training.ahead")
	p.Framework, p.snapshot = t.Bool(), t.Bool()
	p.steps, p.ranged = t.Next(), t.Next()
	p.Blocks = newBlockNames()
	p.Blocks.total.seq = t.Next()
	for account := range p.LastAlloc {
		p.LastAlloc[account] = t.Next()
	}
	if t.Bool() {
		p.period.found = &recurrence{stacks: callstack.TakePair(t), gap: t.Next()}
	}
	for t.More() {
		object := t.Next()
		p.stepped.all[object] = &optimizer{trace.StringID(t.ID()), t.Next(), t.Next(), t.Next(), t.Next()}
	}
	p.Elements = RestoreElements(s)
	for t := s.Table("training.first"); t.More(); {
		if p.Modules.First == nil {
			p.Modules.First = make(map[uint64]trace.StringID)
		}
		object := t.Next()
		p.Modules.First[object] = trace.StringID(t.ID())
	}
	return p
}

// takeNames takes over the names that blocks of a keyframe get in the end.
func (p *Lookahead) takeNames(k *trace.Keyframe) {
	for t := k.State.Table("training.later"); t.More(); {
		i, category, name := t.Next(), t.Next(), trace.StringID(t.ID())
		if i >= uint64(len(k.Live)) || category > math.MaxUint8 {
			t.Fail()
			return
		}
		p.Blocks.keep(k.Live[i].Seq, blockName{trace.Category(category), name})
	}
}

// ReadStretch reads ahead the part of a trace that begins at a keyframe, nil for the beginning, for nothing but the
// names of blocks. end returns the keyframe that the source ends at, nil where it ends with the trace: what lives on
// there has its names in the keyframe.
func (p *Lookahead) ReadStretch(begin *trace.Keyframe, src trace.Source, end func() (*trace.Keyframe, error)) error {
	defer p.Blocks.readEverything()
	if err := p.beginStretch(begin); err != nil {
		return err
	}
	for {
		events, err := src.ReadBatch()
		for i := range events {
			p.Blocks.event(&events[i])
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read names: %w", err)
		}
	}
	at, err := end()
	if err == nil && at != nil {
		p.takeNames(at)
	}
	p.Blocks.open = 0 // the page that is laid out may lack what came later
	return err
}

func (p *Lookahead) beginStretch(k *trace.Keyframe) error {
	p.Blocks.total.peak = math.MaxUint64 // the peak is known
	if k == nil {
		return nil
	}
	p.takeNames(k)
	return p.Blocks.heap.Restore(k, func(at heap.Space) bool { return at == heap.SpaceFramework },
		func(id uint32, b *heap.Block, _ *trace.Event) {
			if name, known := p.Blocks.Of(b.Seq); known {
				*p.Blocks.of.Slot(id) = nameOfBlock{b.Seq, name}
			}
		})
}
