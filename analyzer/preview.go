package analyzer

import (
	"errors"
	"fmt"
	"io"

	"memtrace/trace"
)

// preview is what a first reading of a trace finds out, so that the second one knows every name from its first event on.
type preview struct {
	framework bool // a framework reported blocks
	modules   moduleNames
	steps     uint64                // of memtrace.step()
	stepped   map[uint64]*optimizer // by address of the object
	ranges    rangeWatch
	ranged    uint64 // ranges that may be iterations
	period    periodWatch
	blocks    *blockNames
}

// blockNames are the names of a framework's blocks, found in a reading of their own, so that filters know them when a block begins, and iterations that end before a name is said.
type blockNames struct {
	nobody
	heap  *Heap
	named namedBlocks
	of    map[uint64]blockName // by order number of the allocation
}

type blockName struct {
	category trace.Category
	name     trace.StringID
}

func newBlockNames() *blockNames {
	n := &blockNames{of: make(map[uint64]blockName)}
	n.heap = NewHeap(n)
	return n
}

func (n *blockNames) event(e *trace.Event) {
	switch e.Kind {
	case trace.EventAlloc, trace.EventFree, trace.EventDestroy:
		n.heap.Apply(e)
	case trace.EventName:
		id, ok := n.named.find(n.heap, e.Addr)
		if !ok || e.Addr == 0 {
			return
		}
		b := &n.heap.blocks[id]
		if old := n.of[b.Seq]; b.Account == AccountFramework && b.Seq <= e.Seq && !keepsName(old.category, e.Category, false) {
			n.of[b.Seq] = blockName{e.Category, e.Name}
		}
	}
}

// nobody observes nothing.
type nobody struct{}

// Opened implements Observer.
func (nobody) Opened(uint32, *Block, *trace.Event) {}

// Closed implements Observer.
func (nobody) Closed(uint32, *Block, *trace.Event) {}

// Elapsed implements Observer.
func (nobody) Elapsed(*Block, *trace.Event) {}

// Refused implements Observer.
func (nobody) Refused(*trace.Event) {}

// optimizer is one whose steps were reported.
type optimizer struct {
	name  trace.StringID
	count uint64
	first uint64 // order number of the first step
}

// readAhead reads a trace to its end, for nothing but names and what iterations can be told by. It leaves its dictionary with the collector's stacks.
func (c *collector) readAhead(src trace.Source) (*preview, error) {
	p := &preview{stepped: make(map[uint64]*optimizer), ranges: rangeWatch{tables: src.Tables()}}
	p.blocks = newBlockNames()
	c.foretold = p.blocks.of
	for {
		events, err := src.ReadBatch()
		for i := range events {
			p.event(&events[i])
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read names: %w", err)
		}
	}
	c.resolver.tables, c.resolver.stacks.tables, c.resolver.stacks.info = src.Tables(), src.Tables(), src.Info
	return p, nil
}

func (p *preview) event(e *trace.Event) {
	p.blocks.event(e)
	switch e.Kind {
	case trace.EventAlloc:
		if e.Status != 0 {
			return
		}
		if accountOf(e) == AccountFramework && !p.framework {
			p.framework = true
			p.period = periodWatch{} // the driver's blocks are not those that count
		}
		if p.framework == (accountOf(e) == AccountFramework) {
			p.period.alloc(e)
		}
		if p.ranges.begins(e) {
			p.ranged++
		}
	case trace.EventStep:
		p.steps++
	case trace.EventName:
		switch e.Category {
		case trace.CategoryModule:
			p.modules.named(e.Handle, e.Name)
		case trace.CategoryStep:
			o := p.stepped[e.Handle]
			if o == nil {
				o = &optimizer{name: e.Name, first: e.Seq}
				p.stepped[e.Handle] = o
			}
			o.count++
		}
	}
}

// iterationsBy decides what ends an iteration: the program's own word, then the framework's, then what looks like it.
func (p *preview) iterationsBy() string {
	switch {
	case p.steps > 0:
		return IterationsByStep
	case len(p.stepped) > 0:
		return IterationsByOptimizer
	case p.ranged > 1:
		return IterationsByRange
	case p.period.anchor() != nil:
		return IterationsByPeriod
	}
	return IterationsByNothing
}

// mainOptimizer returns the optimizer that stepped most often; of several, the one whose first step came last, so that an iteration ends after all of them stepped.
func (p *preview) mainOptimizer() (object uint64, o *optimizer) {
	for handle, other := range p.stepped {
		if o == nil || other.count > o.count || other.count == o.count && other.first > o.first {
			object, o = handle, other
		}
	}
	return object, o
}
