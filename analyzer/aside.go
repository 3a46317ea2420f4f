package analyzer

import (
	"memtrace/analyzer/heap"
	"memtrace/analyzer/trend"
)

// openedAside takes in a block of an account without detail, of which only totals are kept, and what each call stack
// held over time where growth is judged.
func (c *collector) openedAside(b *heap.Block) {
	c.totals[b.Account].Grow(b.Size, b.Time)
	if h := c.held; h != nil && trend.Judges(b.Account) {
		h.Opened(h.OwnerOfBlock(b), b.Size, b.Time)
	}
}

func (c *collector) closedAside(b *heap.Block, time int64) {
	c.totals[b.Account].Shrink(b.Size)
	if h := c.held; h != nil && trend.Judges(b.Account) {
		h.Closed(h.OwnerOfBlock(b), b.Size, time)
	}
}
