package oom

import (
	"fmt"
	"path"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// groupings are what an OOM event's ledgers divide by, and places where places are told.
var groupings = []string{"tag", "library", "api"}

// describe takes a picture of the device for a case: who holds what, at the event that refused.
func (t *Tracker) describe(o *incident, e *trace.Event, final bool) {
	v := &o.event
	v.Seq, v.TimeNS, v.Tag = e.Seq, e.Time, t.Resolver.Tables.String(e.Tag)
	v.DriverBytes, v.LostRecords = t.Replay.DriverBytes(), t.Replay.LostRecords()
	now := t.Devices.Holdings.DriverBytes(o.device)
	v.ReleasedBytes = o.first - min(o.first, now)
	if t.wantPicture(v, e, final) {
		v.Detailed = true
		v.Sample, v.Sizes = t.Devices.Samples.Last(o.device), t.Devices.Sizes.NowOn(profile.DeviceSlot(o.device))
		t.picture(v, final)
		v.Balance()
	} else {
		v.DropDetails()
	}
	if state := t.Replay.AtRefusal(e.Time); state != nil {
		o.state = state
	}
}

// wantPicture bounds what a program costs that runs out of memory all the time. The end of a framework's attempts is
// always worth one: what is failed for certain matters most.
func (t *Tracker) wantPicture(v *report.OOMEvent, e *trace.Event, final bool) bool {
	switch {
	case v.Device < 0, t.failed >= MaxDetailed:
		return false
	case !final && t.pictures >= maxPictures && e.Time-t.lastPicture < pictureEvery:
		return false
	}
	t.pictures++
	t.lastPicture = e.Time
	return true
}

// picture is a device's memory at one moment, divided among its owners.
type picture struct {
	by        []*profile.Grouping
	main      heap.Account                 // whose blocks are listed: the framework's, or without one the driver's
	sums      []map[report.OwnerKey]uint64 // by grouping
	young     map[report.OwnerKey]uint64   // by the first grouping: what came after the last step or mark
	inBlocks  uint64
	framework bool
	held      uint64 // by the framework's allocator, from the driver
}

// picture fills in who holds a device's memory; final as in compose.
func (t *Tracker) picture(v *report.OOMEvent, final bool) {
	p := t.takePicture(v.Device)
	v.Through, v.Division, v.Seen = nil, nil, report.OOMSeen{}
	if t.Places && t.Ended == nil && t.failed == 0 {
		v.Through, v.Division, v.Seen = t.lookThrough(v.Device, p.main, v.TimeNS)
	}
	v.Composition, v.Categories = nil, nil
	if p.framework {
		v.Composition, v.Categories = t.compose(v.Device, final)
		v.Allocator = &report.OOMAllocator{ReservedBytes: p.held, AllocatedBytes: p.inBlocks,
			IdleBytes: p.held - min(p.held, p.inBlocks)}
		if t.Devices.Holdings.FromDriver() {
			if cache := t.Devices.Fragments(t.Heap, t.Resolver.Libraries, v.Device); cache.All.FreeBytes ==
				v.Allocator.IdleBytes {
				// otherwise records are missing, and there are not the gaps that there seem to be
				v.Allocator.Pieces, v.Allocator.Common = cache.All, cache.Common
				v.Allocator.Private = cache.Private
			}
		}
	}
	v.Ledgers = []report.Ledger{}
	for g := range p.by {
		v.Ledgers = append(v.Ledgers, p.ledger(g, v.TimeNS))
	}
	v.Since = nil
	if t.since != nil {
		since := *t.since
		since.Rows = report.OwnerRows(p.young)
		for _, row := range since.Rows {
			since.Bytes += row.Bytes
		}
		v.Since = &since
	}
	if t.Ended != nil {
		t.Resolver.Stacks.Forget()
	}
	v.StepBytes = []uint64{}
	if slot := profile.DeviceSlot(v.Device); slot < len(t.steps) {
		v.StepBytes = slices.Clone(t.steps[slot])
	}
}

// takePicture walks over the live blocks of a device.
func (t *Tracker) takePicture(device int16) *picture {
	by, err := profile.PickGroupings(groupings, nil)
	if err != nil {
		panic(err) // the names are the registry's
	}
	p := &picture{by: by, main: heap.AccountDriver, sums: make([]map[report.OwnerKey]uint64, len(by)),
		young: make(map[report.OwnerKey]uint64)}
	for g := range p.sums {
		p.sums[g] = make(map[report.OwnerKey]uint64)
	}
	if p.framework, p.held = t.frameworkOn(device); p.framework {
		p.main = heap.AccountFramework
	}
	if t.Places {
		p.by = append(p.by, &placeGrouping)
		p.sums = append(p.sums, make(map[report.OwnerKey]uint64))
	}
	names := newKeyNames(t.Resolver, p.by)
	t.Heap.Each(func(_ uint32, b *heap.Block) {
		switch {
		case b.Device != device:
		case b.Account == p.main:
			p.inBlocks += b.Size
			for g := range p.by {
				p.sums[g][report.OwnerKey{Owner: report.OwnerBlocks, Key: names.of(g, b)}] += b.Size
			}
			if t.since != nil && b.Seq > t.sinceSeq {
				p.young[report.OwnerKey{Owner: report.OwnerBlocks, Key: names.of(0, b)}] += b.Size
			}
		case b.Account == heap.AccountDriver && t.Devices.Holdings.FromDriver():
			if library := t.Devices.HolderOf(b, t.Resolver.Libraries); !t.Devices.Holdings.Reports(library) {
				p.outside(t.Resolver.Libraries.Name(library), b.Size)
			}
		}
	})
	if driver := t.Devices.Holdings.DriverBytes(device); p.framework && !t.Devices.Holdings.FromDriver() &&
		driver > p.held {
		p.outside(report.UnknownLibrary, driver-p.held)
	}
	if last := len(by); t.Places && !names.ownPlaces(last) {
		p.by, p.sums = p.by[:last], p.sums[:last]
	}
	return p
}

// outside adds driver memory that the framework's allocator does not hold.
func (p *picture) outside(library string, bytes uint64) {
	for g := range p.sums {
		p.sums[g][report.OwnerKey{Owner: report.OwnerOutside, Key: library}] += bytes
	}
}

func (p *picture) ledger(g int, time int64) report.Ledger {
	l := report.Ledger{By: p.by[g].Name, Level: p.main.String(), Moment: "oom", TimeNS: time,
		Rows: report.OwnerRows(p.sums[g])}
	if p.framework {
		l.SlackBytes = int64(p.held) - int64(p.inBlocks)
		if l.SlackBytes > 0 {
			l.Rows = append(l.Rows, report.LedgerRow{Owner: report.OwnerSlack, Key: "slack",
				Bytes: uint64(l.SlackBytes)})
		}
	}
	return l
}

// frameworkOn tells whether a framework's allocator reports blocks on a device, and what it holds from the driver
// there.
func (t *Tracker) frameworkOn(device int16) (reports bool, held uint64) {
	slot := profile.DeviceSlot(device)
	if slot >= len(t.Devices.Holdings.Devices) {
		return false, 0
	}
	d := &t.Devices.Holdings.Devices[slot]
	return d.Counted || d.Blocks > 0 || d.HasPools(), t.Devices.Holdings.Current(slot)
}

// keyNames remembers the text of each identifier: a picture names every live block.
type keyNames struct {
	resolver *profile.Resolver
	by       []*profile.Grouping
	known    []map[uint64]string
}

func newKeyNames(r *profile.Resolver, by []*profile.Grouping) *keyNames {
	n := &keyNames{resolver: r, by: by}
	for range by {
		n.known = append(n.known, make(map[uint64]string))
	}
	return n
}

func (n *keyNames) of(g int, b *heap.Block) string {
	o := profile.OriginOf(b)
	id := n.by[g].ID(n.resolver, &o)
	name, known := n.known[g][id]
	if !known {
		name = n.by[g].Key(n.resolver, id)
		n.known[g][id] = name
	}
	return name
}

// callerOf names the place of a call, as far as the trace knows it.
func (t *Tracker) callerOf(stack trace.StackID) string {
	frames := t.Resolver.Tables.Stack(stack)
	if len(frames) == 0 {
		return ""
	}
	m, known := t.Resolver.Tables.ModuleAt(frames[0] - 1)
	if !known {
		return fmt.Sprintf("%#x", frames[0])
	}
	return fmt.Sprintf("%s+%#x", path.Base(m.Path), frames[0]-m.Base)
}
