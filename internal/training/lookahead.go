package training

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// Lookahead is what a first reading of a trace finds out, so that the second one knows every name from its first event
// on.
type Lookahead struct {
	Framework bool // a framework reported blocks
	Modules   profile.ModuleNames
	steps     uint64 // of memtrace.step()
	stepped   optimizers
	ranges    rangeWatch
	ranged    uint64 // ranges that may be iterations
	period    periodWatch
	snapshot  bool // what came and went, and would tell iterations apart, is left out
	Blocks    *BlockNames
	Elements  Elements
	LastAlloc [heap.AccountCount]uint64 // order number of each account's last allocation
	thin      bool                      // what is read was thinned, so that nothing in it returns regularly

	room []trace.Event // where columns become rows
}

// ReadAhead reads a trace to its end, for nothing but names and what iterations can be told by.
func ReadAhead(src trace.Source) (*Lookahead, error) {
	p := &Lookahead{stepped: newOptimizers(), ranges: rangeWatch{tables: src.Tables()}}
	p.Blocks = newBlockNames()
	skipFields(src, trace.FieldTime, trace.FieldAPI, trace.FieldRuntime, trace.FieldDevice, trace.FieldStream,
		trace.FieldAllocated, trace.FieldReserved, trace.FieldObject, trace.FieldOp, trace.FieldOpThread,
		trace.FieldRest)
	for {
		err := p.next(src)
		if p.ended() {
			skipFields(src, trace.FieldThread, trace.FieldTag, trace.FieldStack, trace.FieldPyStack)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			p.Blocks.readEverything()
			return nil, fmt.Errorf("read names: %w", err)
		}
	}
	p.Blocks.readEverything()
	p.room = nil
	p.snapshot = src.Info()[trace.SnapshotKey] != ""
	return p, nil
}

// next takes in the next events of a source, column by column where it has columns.
func (p *Lookahead) next(src trace.Source) error {
	columns, ok := src.(trace.ColumnSource)
	if !ok {
		events, err := src.ReadBatch()
		p.thin = trace.IsThin(src.Info())
		p.rows(events)
		return err
	}
	b, err := columns.ReadColumns()
	p.thin = trace.IsThin(src.Info())
	if err != nil {
		return err
	}
	runs := b.Runs()
	if len(runs) == 0 {
		p.rows(b.Rows())
	}
	for i := range runs {
		if heap.FastRun(&runs[i]) && p.Framework && (p.ended() || p.thin) {
			p.framework(&runs[i])
			continue
		}
		rows := slices.Grow(p.room[:0], runs[i].Len())[:runs[i].Len()]
		runs[i].Rows(rows)
		p.rows(rows)
		p.room = rows
	}
	return nil
}

func (p *Lookahead) rows(events []trace.Event) {
	for i := range events {
		p.event(&events[i])
	}
}

// framework takes in allocations and frees of a framework, of which only the names of their blocks are looked for.
func (p *Lookahead) framework(c *trace.Columns) {
	seq, addr, size, flags := c.Column(trace.FieldSeq), c.Column(trace.FieldAddr), c.Column(trace.FieldSize),
		c.Column(trace.FieldFlags)
	last := &p.LastAlloc[heap.AccountFramework]
	for i, kind := range c.Kinds() {
		if trace.Flags(flags.At(i))&^trace.FlagBackward == 0 && p.Blocks.fastPath(kind, seq.At(i), addr.At(i),
			size.At(i)) {
			if kind == trace.EventAlloc {
				*last = max(*last, seq.At(i))
			}
			continue
		}
		var e trace.Event
		c.Row(i, &e)
		p.event(&e)
	}
}

// skipFields spares a source fields that are not looked at.
func skipFields(src trace.Source, fields ...trace.Field) {
	if s, ok := src.(trace.Projector); ok {
		s.Skip(fields...)
	}
}

// ended reports whether somebody said what ends an iteration, so that it need not be guessed.
func (p *Lookahead) ended() bool { return p.steps > 0 || len(p.stepped.all) > 0 }

func (p *Lookahead) event(e *trace.Event) {
	p.Blocks.event(e)
	switch e.Kind {
	case trace.EventAlloc:
		if e.Status == 0 {
			p.alloc(e)
		}
	case trace.EventFree:
		if p.Framework == (e.Level == cuda.LevelFramework) {
			p.period.free(e)
		}
	case trace.EventStep:
		p.steps++
	case trace.EventName:
		p.Elements = p.Elements.Named(e)
		switch e.Category {
		case trace.CategoryModule:
			p.Modules.Named(e.Handle, e.Name)
		case trace.CategoryStep:
			p.stepped.step(e)
		}
	}
}

// alloc looks for what may be an iteration, as long as nobody has said what one is.
func (p *Lookahead) alloc(e *trace.Event) {
	account := heap.AccountOf(e)
	framework := account == heap.AccountFramework
	if account != heap.AccountNone {
		p.LastAlloc[account] = max(p.LastAlloc[account], e.Seq)
	}
	if framework && !p.Framework {
		p.Framework = true
		p.period = periodWatch{} // the driver's blocks are not those that count
	}
	if p.ended() || p.thin {
		return
	}
	if p.ranges.begins(e) {
		p.ranged++
	}
	if p.ranged <= 1 && p.Framework == framework {
		p.period.alloc(e)
	}
}

// iterationsBy decides what ends an iteration: the program's own word, then the framework's, then what looks like it.
func (p *Lookahead) iterationsBy() string {
	switch {
	case p.steps > 0:
		return report.IterationsByStep
	case len(p.stepped.all) > 0:
		return report.IterationsByOptimizer
	case p.ranged > 1:
		return report.IterationsByRange
	case p.period.anchor() != nil && !p.snapshot:
		return report.IterationsByPeriod
	}
	return report.IterationsByNothing
}
