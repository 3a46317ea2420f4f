package profile

import (
	"memtrace/internal/heap"
)

// MarkUncertain marks everything as uncertain.
func (c *Cells) MarkUncertain(epoch uint64) {
	if !c.anyCertain {
		return
	}
	c.anyCertain = false
	for n := range c.Certain {
		c.Certain[n].Sync(epoch)
		c.Certain[n].Current = 0
	}
}

func (c *Cells) BeginUncertain(epoch uint64) {
	c.Certain = make([]heap.Share, len(c.List))
	for n := range c.List {
		c.Certain[n] = heap.Share{AtPeak: c.List[n].Peak(epoch), Epoch: epoch}
	}
}

func (c *Cells) AddCertain(n uint32, size, epoch uint64, sure bool) {
	s := heap.Slot(&c.Certain, int(n))
	s.Sync(epoch)
	if sure {
		s.Current += size
		c.anyCertain = true
	}
}

// MoveCertain moves a block's certain bytes from one cell to another; past: also those at the peak. It is unknown
// whether a block that is uncertain now was certain then, so neither cell counts it.
func (c *Cells) MoveCertain(from, to uint32, size, epoch uint64, now, past, pastSure bool) {
	c.AddCertain(max(from, to), 0, epoch, false)
	c.AddCertain(min(from, to), 0, epoch, false)
	a, b := &c.Certain[from], &c.Certain[to]
	if now {
		a.Current -= size
		b.Current += size
	}
	if past {
		a.AtPeak -= min(a.AtPeak, size)
		if pastSure {
			b.AtPeak += size
		}
	}
}

// CertainOf returns the certain part of a cell by a measure of its share.
func (c *Cells) CertainOf(n int, measure func(*heap.Share) uint64) uint64 {
	if n >= len(c.Certain) {
		return 0
	}
	return measure(&c.Certain[n])
}
