package heap

import (
	"memtrace/trace"
)

// Observer is told what happens to blocks. b is valid during the call only; id is the block's number until Closed
// returns.
type Observer interface {
	// Opened reports a new live block.
	Opened(id uint32, b *Block, e *trace.Event)
	// Closed reports that a block's memory is gone; e is the event that ended it.
	Closed(id uint32, b *Block, e *trace.Event)
	// LateAlloc reports a late allocation whose block had already ended when its event came: it counts, but it was
	// never seen live.
	LateAlloc(b *Block, e *trace.Event)
	// Refused reports an allocation that failed.
	Refused(e *trace.Event)
}

// NoopObserver observes nothing.
type NoopObserver struct{}

// Opened implements Observer.
func (NoopObserver) Opened(uint32, *Block, *trace.Event) {}

// Closed implements Observer.
func (NoopObserver) Closed(uint32, *Block, *trace.Event) {}

// LateAlloc implements Observer.
func (NoopObserver) LateAlloc(*Block, *trace.Event) {}

// Refused implements Observer.
func (NoopObserver) Refused(*trace.Event) {}
