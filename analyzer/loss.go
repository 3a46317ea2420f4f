package analyzer

import (
	"math"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/profile"
	"memtrace/cuda"
	"memtrace/trace"
)

// losses follow what lost records leave certain of the live memory. A lost event stands before everything that its
// records may have come before (trace/lost.go), so what was replayed before the first one is exact. From there on
//
//   - a block is certainly live if it is live by the records and no record that ends memory can have been lost since
//     its allocation. Its order number is above until
//     then. A free of its own that is recorded later proves nothing: a free and an allocation of the same address may
//     both have been lost in between;
//   - at its own allocation a block is live, whatever was lost;
//   - what was counted stays a lower bound where only records were lost that begin memory, and an upper bound where
//     only such were lost that end some.
//
// Some events say more than they seem to once a record is missing before them. A context that ends takes along what the
// replay may not know to be its own; an unmapping of addresses whose earlier mapping may have ended unseen may miss the
// ones that are there; the size of an imported handle is that of its first mapping, which may be another one. They make
// everything uncertain that is older than they are.
//
// The sums are kept only once something was lost. Nothing of this costs a whole trace more than a look at a flag.
type losses struct {
	begun   bool   // something was lost
	doubted bool   // some memory is not certain any more, and the sums of what is are kept
	until   uint64 // order number up to which a record that ended memory may be missing
	top     uint64 // highest order number of a block, once doubted

	enders, others uint64 // lost records that ended memory, and those that did not
	unknown        uint64 // lost records of unknown kind
	unplaced       bool   // it is not known where some were lost
	hopeless       bool   // so that nothing that was replayed is certain

	before    int64                     // time of the latest event that everything before is known of
	epochs    [heap.AccountCount]uint64 // of the totals then
	allocated bool                      // the framework's counters were right until then
	reserved  bool
	freed     uint64 // order number of the latest event that gave back memory of the driver, known to the replay or not
}

// sure reports whether a live block certainly lives.
func (l *losses) sure(b *heap.Block) bool { return !l.doubted || b.Seq > l.until }

// after reports whether everything was lost after the maximum with that epoch was reached.
func (l *losses) after(a heap.Account, epoch uint64) bool {
	return !l.begun || !l.unplaced && l.epochs[a] == epoch
}

// lose takes in a lost event.
func (c *collector) lose(e *trace.Event) {
	l, lost := &c.losses, e.Lost()
	c.lost += lost.Count
	if lost.Count == 0 {
		return
	}
	c.beginLosses()
	if lost.Known {
		l.enders += lost.Enders
		l.others += lost.Count - lost.Enders
	} else {
		l.unknown += lost.Count
	}
	harmless := lost.Known && lost.Enders == 0
	if lost.Until == 0 {
		l.unplaced, l.hopeless = true, l.hopeless || !harmless
		lost.Until = math.MaxUint64
	}
	if !harmless {
		c.doubt(lost.Until)
	}
}

func (c *collector) beginLosses() {
	l := &c.losses
	if l.begun {
		return
	}
	l.begun, l.before = true, c.lastTime
	c.heap.LoseRecords()
	for a, d := range c.details {
		if d != nil {
			l.epochs[a] = d.Total.Epoch
		}
	}
	l.allocated, l.reserved = c.device.Holdings.AllocatedMismatches == 0, c.device.Holdings.ReservedMismatches == 0
}

// loseSight looks at events that say less than usual once something was lost, before they are replayed.
func (c *collector) loseSight(e *trace.Event) {
	if e.Level == cuda.LevelDriver && (e.Kind == trace.EventFree || e.Kind == trace.EventUnmap ||
		e.Kind == trace.EventDestroy) {
		c.losses.freed = max(c.losses.freed, e.Seq)
	}
	switch {
	case e.Status != 0:
	case e.Kind == trace.EventDestroy && e.Object != cuda.ObjectPool && e.Object != cuda.ObjectExec:
		c.doubt(e.Seq)
	case e.Kind == trace.EventUnmap:
		if size, seq, known := c.heap.Mapped(e.Addr); !known || seq <= c.losses.until || size != e.Size {
			c.doubt(e.Seq)
		}
	}
}

// doubt makes uncertain what is live, and what is yet to come up to an order number.
func (c *collector) doubt(until uint64) {
	l := &c.losses
	if !l.doubted {
		c.beginDoubt()
	}
	l.until = max(l.until, until, l.top)
	for a := range c.totals {
		c.totals[a].Sure = 0
	}
	for _, d := range c.details {
		if d == nil {
			continue
		}
		d.Total.Sure = 0
		for i := range d.Devices {
			d.Devices[i].Sure = 0
		}
		d.Cells.Doubt(d.Total.Epoch)
	}
}

// beginDoubt sets up the sums of what is certain: so far that is everything.
func (c *collector) beginDoubt() {
	l := &c.losses
	l.doubted = true
	for id := range c.heap.Limit() {
		l.top = max(l.top, c.heap.Seq(id))
	}
	for a := range c.totals {
		c.totals[a].SurePeak = c.totals[a].Peak
	}
	for _, d := range c.details {
		if d == nil {
			continue
		}
		d.Total.SurePeak = d.Total.Peak
		for i := range d.Devices {
			d.Devices[i].SurePeak = d.Devices[i].Peak
		}
		d.Cells.BeginDoubt(d.Total.Epoch)
	}
}

// vouch adds a new block to the sums, before the block is counted: d is nil for an account without detail, n the number
// of the block's cell.
func (c *collector) vouch(b *heap.Block, e *trace.Event, d *profile.AccountStats, n uint32) {
	l := &c.losses
	l.top = max(l.top, b.Seq)
	sure, alone := l.sure(b), e.Flags&trace.FlagLate == 0 && e.Kind == trace.EventAlloc
	if d == nil {
		c.totals[b.Account].Vouch(b.Size, sure, alone)
		return
	}
	d.Total.Vouch(b.Size, sure, alone)
	meter.Slot(&d.Devices, profile.DeviceSlot(b.Device)).Vouch(b.Size, sure, alone)
	d.Cells.Vouch(n, b.Size, d.Total.Epoch, sure)
}

// unvouch takes a block that ends out of the sums, before it is uncounted.
func (c *collector) unvouch(b *heap.Block, d *profile.AccountStats, n uint32) {
	switch {
	case !c.losses.sure(b):
		if d != nil {
			d.Cells.Vouch(n, 0, d.Total.Epoch, false)
		}
	case d == nil:
		c.totals[b.Account].Sure -= b.Size
	default:
		d.Total.Sure -= b.Size
		d.Devices[profile.DeviceSlot(b.Device)].Sure -= b.Size
		meter.Slot(&d.Cells.Sure, int(n)).Shrink(b.Size, d.Total.Epoch)
	}
}

func currentShare(s *meter.Share) uint64 { return s.Current }
