package profile

import (
	"memtrace/analyzer/meter"
)

// Doubt marks everything as uncertain.
func (c *Cells) Doubt(epoch uint64) {
	if !c.vouched {
		return
	}
	c.vouched = false
	for n := range c.Sure {
		c.Sure[n].Sync(epoch)
		c.Sure[n].Current = 0
	}
}

func (c *Cells) BeginDoubt(epoch uint64) {
	c.Sure = make([]meter.Share, len(c.List))
	for n := range c.List {
		c.Sure[n] = meter.Share{AtPeak: c.List[n].Peak(epoch), Epoch: epoch}
	}
}

func (c *Cells) Vouch(n uint32, size, epoch uint64, sure bool) {
	s := meter.Slot(&c.Sure, int(n))
	s.Sync(epoch)
	if sure {
		s.Current += size
		c.vouched = true
	}
}

// MoveSure moves a block's certain bytes from one cell to another; past: also those at the peak. It is unknown whether
// a block that is uncertain now was certain then, so neither cell counts it.
func (c *Cells) MoveSure(from, to uint32, size, epoch uint64, now, past, pastSure bool) {
	c.Vouch(max(from, to), 0, epoch, false)
	c.Vouch(min(from, to), 0, epoch, false)
	a, b := &c.Sure[from], &c.Sure[to]
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

// SureOf returns the certain part of a cell by a measure of its share.
func (c *Cells) SureOf(n int, measure func(*meter.Share) uint64) uint64 {
	if n >= len(c.Sure) {
		return 0
	}
	return measure(&c.Sure[n])
}
