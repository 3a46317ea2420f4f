package analyzer

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// oomGroupings are what an OOM event's ledgers divide by, and oomPlaces where places are told.
var oomGroupings = []string{"tag", "library", "api"}

// describe takes a picture of the device for a case: who holds what, at the event that refused.
func (c *collector) describe(o *oomCase, e *trace.Event, final bool) {
	v := &o.event
	v.Seq, v.TimeNS, v.Tag = e.Seq, e.Time, c.resolver.tables.String(e.Tag)
	v.DriverBytes, v.LostRecords = c.details[heap.AccountDriver].total.Current, c.lost
	now := c.holding.driverBytes(o.device)
	v.ReleasedBytes = o.first - min(o.first, now)
	if c.want.kind == momentOOM && c.moment == nil { // it costs a look at all that is live
		o.moment = c.now(e.Time)
	}
	if !c.wantPicture(v, e, final) {
		v.DropDetails()
		return
	}
	v.Detailed = true
	v.Sample, v.Sizes = c.lastSample(o.device), c.sizes.nowOn(deviceSlot(o.device))
	c.picture(v)
	v.Balance()
}

// wantPicture bounds what a program costs that runs out of memory all the time. The end of a framework's attempts is always worth one: what is failed
// for certain matters most.
func (c *collector) wantPicture(v *report.OOMEvent, e *trace.Event, final bool) bool {
	t := &c.ooms
	switch {
	case v.Device < 0, t.failed >= maxOOMDetailed:
		return false
	case !final && t.pictures >= maxOOMPictures && e.Time-t.lastPicture < oomPictureEvery:
		return false
	}
	t.pictures++
	t.lastPicture = e.Time
	return true
}

// ownerKey is a row of a ledger in the making.
type ownerKey struct{ owner, key string }

// picture is a device's memory at one moment, divided among its owners.
type picture struct {
	by        []*grouping
	main      heap.Account          // whose blocks are listed: the framework's, or without one the driver's
	sums      []map[ownerKey]uint64 // by grouping
	young     map[ownerKey]uint64   // by the first grouping: what came after the last step or mark
	inBlocks  uint64
	framework bool
	held      uint64 // by the framework's allocator, from the driver
}

// picture fills in who holds a device's memory.
func (c *collector) picture(v *report.OOMEvent) {
	p := c.takePicture(v.Device)
	if p.framework {
		v.Allocator = &report.OOMAllocator{ReservedBytes: p.held, AllocatedBytes: p.inBlocks, IdleBytes: p.held - min(p.held, p.inBlocks)}
		if c.holding.fromDriver() {
			if pieces := c.fragments(v.Device); pieces.FreeBytes == v.Allocator.IdleBytes {
				v.Allocator.Pieces = pieces // otherwise records are missing, and there are not the gaps that there seem to be
			}
		}
	}
	v.Ledgers = []report.Ledger{}
	for g := range p.by {
		v.Ledgers = append(v.Ledgers, p.ledger(g, v.TimeNS))
	}
	v.Since = nil
	if c.ooms.since != nil {
		since := *c.ooms.since
		since.Rows = ownerRows(p.young)
		for _, row := range since.Rows {
			since.Bytes += row.Bytes
		}
		v.Since = &since
	}
	v.StepBytes = []uint64{}
	if slot := deviceSlot(v.Device); slot < len(c.ooms.steps) {
		v.StepBytes = slices.Clone(c.ooms.steps[slot])
	}
}

// takePicture walks over the live blocks of a device.
func (c *collector) takePicture(device int16) *picture {
	by, err := pickGroupings(oomGroupings, nil)
	if err != nil {
		panic(err) // the names are the registry's
	}
	p := &picture{by: by, main: heap.AccountDriver, sums: make([]map[ownerKey]uint64, len(by)), young: make(map[ownerKey]uint64)}
	for g := range p.sums {
		p.sums[g] = make(map[ownerKey]uint64)
	}
	if p.framework, p.held = c.frameworkOn(device); p.framework {
		p.main = heap.AccountFramework
	}
	if c.ooms.places {
		p.by = append(p.by, &oomPlaces)
		p.sums = append(p.sums, make(map[ownerKey]uint64))
	}
	names := newKeyNames(&c.resolver, p.by)
	c.heap.Each(func(_ uint32, b *heap.Block) {
		switch {
		case b.Device != device:
		case b.Account == p.main:
			p.inBlocks += b.Size
			for g := range p.by {
				p.sums[g][ownerKey{report.OwnerBlocks, names.of(g, b)}] += b.Size
			}
			if c.ooms.since != nil && b.Seq > c.ooms.sinceSeq {
				p.young[ownerKey{report.OwnerBlocks, names.of(0, b)}] += b.Size
			}
		case b.Account == heap.AccountDriver && c.holding.fromDriver():
			if library := c.resolver.libraries.Of(b.Stack); library != c.holding.library {
				p.outside(c.resolver.libraries.Name(library), b.Size)
			}
		}
	})
	if driver := c.holding.driverBytes(device); p.framework && !c.holding.fromDriver() && driver > p.held {
		p.outside(report.UnknownLibrary, driver-p.held)
	}
	if last := len(by); c.ooms.places && !names.ownPlaces(last) {
		p.by, p.sums = p.by[:last], p.sums[:last]
	}
	if c.ooms.told != nil {
		c.resolver.stacks.Forget()
	}
	return p
}

// outside adds driver memory that the framework's allocator does not hold.
func (p *picture) outside(library string, bytes uint64) {
	for g := range p.sums {
		p.sums[g][ownerKey{report.OwnerOutside, library}] += bytes
	}
}

func (p *picture) ledger(g int, time int64) report.Ledger {
	l := report.Ledger{By: p.by[g].name, Level: p.main.String(), Moment: "oom", TimeNS: time, Rows: ownerRows(p.sums[g])}
	if p.framework {
		l.SlackBytes = int64(p.held) - int64(p.inBlocks)
		if l.SlackBytes > 0 {
			l.Rows = append(l.Rows, report.LedgerRow{Owner: report.OwnerSlack, Key: "slack", Bytes: uint64(l.SlackBytes)})
		}
	}
	return l
}

// frameworkOn tells whether a framework's allocator reports blocks on a device, and what it holds from the driver there.
func (c *collector) frameworkOn(device int16) (reports bool, held uint64) {
	slot := deviceSlot(device)
	if slot >= len(c.holding.devices) {
		return false, 0
	}
	d := &c.holding.devices[slot]
	return d.counted || d.blocks > 0, d.current(c.holding.library, c.holding.fromDriver())
}

// ownerRows sorts what a map holds, most first.
func ownerRows(sums map[ownerKey]uint64) []report.LedgerRow {
	rows := make([]report.LedgerRow, 0, len(sums))
	for k, bytes := range sums {
		rows = append(rows, report.LedgerRow{Owner: k.owner, Key: k.key, Bytes: bytes})
	}
	slices.SortFunc(rows, func(a, b report.LedgerRow) int {
		return cmp.Or(strings.Compare(a.Owner, b.Owner), cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Key, b.Key))
	})
	return rows
}

// keyNames remembers the text of each identifier: a picture names every live block.
type keyNames struct {
	resolver *resolver
	by       []*grouping
	known    []map[uint64]string
}

func newKeyNames(r *resolver, by []*grouping) *keyNames {
	n := &keyNames{resolver: r, by: by}
	for range by {
		n.known = append(n.known, make(map[uint64]string))
	}
	return n
}

func (n *keyNames) of(g int, b *heap.Block) string {
	o := originOf(b)
	id := n.by[g].id(n.resolver, &o)
	name, known := n.known[g][id]
	if !known {
		name = n.by[g].key(n.resolver, id)
		n.known[g][id] = name
	}
	return name
}

// callerOf names the place of a call, as far as the trace knows it.
func (c *collector) callerOf(stack trace.StackID) string {
	frames := c.resolver.tables.Stack(stack)
	if len(frames) == 0 {
		return ""
	}
	m, known := c.resolver.tables.ModuleAt(frames[0] - 1)
	if !known {
		return fmt.Sprintf("%#x", frames[0])
	}
	return fmt.Sprintf("%s+%#x", path.Base(m.Path), frames[0]-m.Base)
}

// driverBytes returns the live driver memory of a device, whatever the filters are.
func (h *holdings) driverBytes(device int16) uint64 {
	if slot := deviceSlot(device); slot < len(h.devices) {
		return h.devices[slot].driverBytes()
	}
	return 0
}

func (d *deviceHoldings) driverBytes() (sum uint64) {
	for i := range d.byLibrary {
		sum += d.byLibrary[i].Current
	}
	return sum
}
