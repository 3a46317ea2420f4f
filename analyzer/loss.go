package analyzer

import (
	"math"

	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// losses follow what lost records leave certain of the live memory. A lost event stands before everything that its
// records may have come before (trace/lost.go), so what was replayed before the first one is exact. From there on
//
//   - a block is certainly live if it is live by the records and no record that ends memory can have been lost since
//     its allocation. Its order number is above until then. A free of its own that is recorded later proves nothing: a
//     free and an allocation of the same address may both have been lost in between;
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
	replayer *replayer

	count uint64 // lost records

	begun     bool   // something was lost
	uncertain bool   // some memory is not certain any more, and the sums of what is are kept
	until     uint64 // order number up to which a record that ended memory may be missing
	top       uint64 // highest order number of a block, once uncertain

	enders, others uint64 // lost records that ended memory, and those that did not
	unknown        uint64 // lost records of unknown kind
	unplaced       bool   // it is not known where some were lost
	nothingCertain bool   // so that nothing that was replayed is certain

	before    int64                     // time of the latest event that everything before is known of
	epochs    [heap.AccountCount]uint64 // of the totals then
	allocated bool                      // the framework's counters were right until then
	reserved  bool
	freed     uint64 // order number of the latest event that gave back memory of the driver, known to the replay or not
}

// isCertain reports whether a live block certainly lives.
func (l *losses) isCertain(b *heap.Block) bool { return !l.uncertain || b.Seq > l.until }

// after reports whether everything was lost after the maximum with that epoch was reached.
func (l *losses) after(a heap.Account, epoch uint64) bool {
	return !l.begun || !l.unplaced && l.epochs[a] == epoch
}

// lose takes in a lost event.
func (l *losses) lose(e *trace.Event) {
	lost := e.Lost()
	l.count += lost.Count
	if lost.Count == 0 {
		return
	}
	l.begin()
	if lost.Known {
		l.enders += lost.Enders
		l.others += lost.Count - lost.Enders
	} else {
		l.unknown += lost.Count
	}
	harmless := lost.Known && lost.Enders == 0
	if lost.Until == 0 {
		l.unplaced, l.nothingCertain = true, l.nothingCertain || !harmless
		lost.Until = math.MaxUint64
	}
	if !harmless {
		l.markUncertain(lost.Until)
	}
}

// loseAfterWindow counts records that were lost after the window. Unless it is not known when that was, the window is
// as certain as it was.
func (l *losses) loseAfterWindow(e *trace.Event) {
	lost := e.Lost()
	switch {
	case lost.Count == 0:
		return
	case lost.Until == 0:
		l.lose(e)
		return
	case lost.Known:
		l.enders += lost.Enders
		l.others += lost.Count - lost.Enders
	default:
		l.unknown += lost.Count
	}
	l.count += lost.Count
	if !l.begun {
		l.before = l.replayer.lastTime
	}
}

func (l *losses) begin() {
	if l.begun {
		return
	}
	r := l.replayer
	l.begun, l.before = true, r.lastTime
	r.heap.LoseRecords()
	for _, a := range detailedAccounts {
		l.epochs[a] = r.accounts.details[a].Total.Epoch
	}
	l.allocated, l.reserved = r.device.Holdings.AllocatedMismatches == 0, r.device.Holdings.ReservedMismatches == 0
}

// event looks at events that say less than usual once something was lost, before they are replayed.
func (l *losses) event(e *trace.Event) {
	if e.Level == cuda.LevelDriver && (e.Kind == trace.EventFree || e.Kind == trace.EventUnmap ||
		e.Kind == trace.EventDestroy) {
		l.freed = max(l.freed, e.Seq)
	}
	switch {
	case e.Status != 0:
	case e.Kind == trace.EventDestroy && e.Object != cuda.ObjectPool && e.Object != cuda.ObjectExec:
		l.markUncertain(e.Seq)
	case e.Kind == trace.EventUnmap:
		if size, seq, known := l.replayer.heap.Mappings.Size(e.Addr); !known || seq <= l.until || size != e.Size {
			l.markUncertain(e.Seq)
		}
	}
}

// markUncertain makes uncertain what is live, and what is yet to come up to an order number.
func (l *losses) markUncertain(until uint64) {
	if !l.uncertain {
		l.beginUncertain()
	}
	l.until = max(l.until, until, l.top)
	accounts := &l.replayer.accounts
	for a := range accounts.totals {
		accounts.totals[a].Certain = 0
	}
	for _, a := range detailedAccounts {
		d := accounts.details[a]
		d.Total.Certain = 0
		for i := range d.Devices {
			d.Devices[i].Certain = 0
		}
		d.Cells.MarkUncertain(d.Total.Epoch)
	}
}

// beginUncertain sets up the sums of what is certain: so far that is everything.
func (l *losses) beginUncertain() {
	accounts, blocks := &l.replayer.accounts, l.replayer.heap
	l.uncertain = true
	for id := range blocks.Limit() {
		l.top = max(l.top, blocks.Seq(id))
	}
	for a := range accounts.totals {
		accounts.totals[a].CertainPeak = accounts.totals[a].Peak
	}
	for _, a := range detailedAccounts {
		d := accounts.details[a]
		d.Total.CertainPeak = d.Total.Peak
		for i := range d.Devices {
			d.Devices[i].CertainPeak = d.Devices[i].Peak
		}
		d.Cells.BeginUncertain(d.Total.Epoch)
	}
}

// addCertain adds a new block to the sums, before the block is counted: d is nil for an account without detail, n the
// number of the block's cell.
func (l *losses) addCertain(b *heap.Block, e *trace.Event, d *profile.AccountStats, n uint32) {
	l.top = max(l.top, b.Seq)
	sure, alone := l.isCertain(b), e.Flags&trace.FlagLate == 0 && e.Kind == trace.EventAlloc
	if d == nil {
		l.replayer.accounts.totals[b.Account].AddCertain(b.Size, sure, alone)
		return
	}
	d.Total.AddCertain(b.Size, sure, alone)
	heap.Slot(&d.Devices, profile.DeviceSlot(b.Device)).AddCertain(b.Size, sure, alone)
	d.Cells.AddCertain(n, b.Size, d.Total.Epoch, sure)
}

// removeCertain takes a block that ends out of the sums, before it is uncounted.
func (l *losses) removeCertain(b *heap.Block, d *profile.AccountStats, n uint32) {
	switch {
	case !l.isCertain(b):
		if d != nil {
			d.Cells.AddCertain(n, 0, d.Total.Epoch, false)
		}
	case d == nil:
		l.replayer.accounts.totals[b.Account].Certain -= b.Size
	default:
		d.Total.Certain -= b.Size
		d.Devices[profile.DeviceSlot(b.Device)].Certain -= b.Size
		heap.Slot(&d.Cells.Certain, int(n)).Shrink(b.Size, d.Total.Epoch)
	}
}

func currentShare(s *heap.Share) uint64 { return s.Current }
