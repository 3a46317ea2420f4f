package analyzer

import (
	"fmt"
	"slices"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/trace"
)

const (
	// maxOOMEvents bounds the list of OOM events; all are counted.
	maxOOMEvents = 100
	// maxOOMDetailed bounds those of one outcome that say who held the memory.
	maxOOMDetailed = 20
	// maxOOMPictures bounds how often the live blocks are looked through without pause; after that it is done at most once in oomPictureEvery.
	maxOOMPictures  = 64
	oomPictureEvery = 1e9 // nanoseconds
	// oomWindow is how long an OOM event waits for the next attempt, and for the device's own word, before it counts as over.
	oomWindow = 200e6 // nanoseconds
	// maxOOMOpen bounds how many threads may be out of memory at once.
	maxOOMOpen = 64
	// maxOOMSteps is how many beginnings of steps are remembered.
	maxOOMSteps = 8
)

// statusOutOfMemory is the driver's and the runtime's code for it.
const statusOutOfMemory = 2

// oomTracker turns refusals into OOM events. Attempts belong together if one thread makes them for one device within a short time: an allocator asks,
// gives back what it has cached, asks again and tells its caller. An allocation that is granted in between ends the matter only if nothing is refused after
// it, since expandable segments ask piece by piece.
type oomTracker struct {
	report.OOM
	open     []*oomCase // in the order in which they began
	told     func(*report.OOMEvent)
	places   bool // places of the program are told
	info     func() trace.Info
	since    *report.OOMGrowth // the latest step or mark, without its bytes
	sinceSeq uint64
	steps    [][]uint64 // live bytes at the latest beginnings of steps, by device slot

	failed, recovered int // detailed events so far
	pictures          int
	lastPicture       int64
	number            int // of the event that was told last, from 1
}

// oomCase is an OOM event that may go on.
type oomCase struct {
	event   report.OOMEvent
	thread  trace.ThreadID
	device  int16
	last    int64  // time of the latest attempt
	first   uint64 // driver bytes of the device at the first attempt
	decided bool   // nothing that comes can change the outcome
	granted bool   // since the last refusal, as much was granted
	moment  *moment
}

// outOfMemory reports whether a refused allocation was refused for want of memory.
func outOfMemory(e *trace.Event) bool {
	return e.Kind == trace.EventAlloc && e.Status == statusOutOfMemory && e.Level == cuda.LevelDriver && e.Mem != cuda.MemoryAddress
}

// shortDevice is the device whose memory ran out: none for host memory.
func shortDevice(e *trace.Event) int16 {
	if e.Mem == cuda.MemoryHost || e.Mem == cuda.MemoryRegistered {
		return -1
	}
	return e.Device
}

// oomEvent lets the tracker see an event, after the heap. It costs next to nothing while memory does not run out.
func (c *collector) oomEvent(e *trace.Event) {
	t := &c.ooms
	if len(t.open) > 0 && e.Flags&trace.FlagLate == 0 {
		c.expireOOM(e.Time)
	}
	switch e.Kind {
	case trace.EventAlloc:
		if outOfMemory(e) {
			c.refusedForMemory(e)
		}
	case trace.EventOOM:
		c.gaveUp(e)
	case trace.EventStep:
		c.stepBegan(e)
	case trace.EventMark:
		t.since, t.sinceSeq = &report.OOMGrowth{What: "mark " + c.resolver.tables.String(e.Name), TimeNS: e.Time}, e.Seq
	case trace.EventSample:
		c.sampled(e)
	}
	if len(t.open) > 0 && e.Kind == trace.EventAlloc && e.Status == 0 {
		c.granted(e)
	}
}

// refusedForMemory takes in one refused driver call.
func (c *collector) refusedForMemory(e *trace.Event) {
	if !c.filter.hasDevice(e.Device) {
		return
	}
	c.ooms.RefusedCount++
	o := c.openCase(e)
	o.last, o.granted = e.Time, false
	o.event.Attempts++
	o.event.Level = e.Level.String()
	o.event.Memory, o.event.DriverRequestedBytes, o.event.RequestedBytes = e.Mem.String(), e.Size, e.Size
	o.event.Site = c.oomPlace(e)
	o.event.Call, o.event.Library, o.event.Caller = heap.CallOf(e).String(), c.resolver.libraries.Name(c.resolver.libraries.Of(e.Stack)), c.callerOf(e.Stack)
	c.describe(o, e, false)
}

// gaveUp takes in a framework's own report.
func (c *collector) gaveUp(e *trace.Event) {
	if !c.filter.hasDevice(e.Device) {
		return
	}
	o := c.openCase(e)
	o.last, o.decided, o.granted = e.Time, true, false
	o.event.Level, o.event.RequestedBytes = e.Level.String(), e.Size
	o.event.AllocatedBytes, o.event.ReservedBytes = e.Allocated, e.Reserved
	if o.event.Site == "" {
		o.event.Site = c.oomPlace(e)
	}
	if o.event.Memory == "" {
		o.event.Memory = cuda.MemoryDevice.String()
	}
	if o.event.Library == "" {
		o.event.Library, o.event.Caller = c.resolver.libraries.Name(c.resolver.libraries.Of(e.Stack)), c.callerOf(e.Stack)
	}
	c.describe(o, e, true)
}

func (t *oomTracker) find(thread trace.ThreadID, device int16) *oomCase {
	for _, o := range t.open {
		if o.thread == thread && o.device == device {
			return o
		}
	}
	return nil
}

// openCase returns the case that an attempt belongs to, which may be a new one.
func (c *collector) openCase(e *trace.Event) *oomCase {
	o := c.ooms.find(e.Thread, shortDevice(e))
	if o != nil && !o.decided {
		return o
	}
	if o != nil {
		c.tell(o)
	}
	return c.beginCase(e)
}

func (c *collector) beginCase(e *trace.Event) *oomCase {
	if len(c.ooms.open) == maxOOMOpen {
		c.tell(c.ooms.open[0])
	}
	device := shortDevice(e)
	o := &oomCase{thread: e.Thread, device: device, first: c.holding.driverBytes(device)}
	o.event = report.OOMEvent{Device: device, FirstTimeNS: e.Time, Thread: threadKey(&c.resolver, uint64(e.Thread)), Ledgers: []report.Ledger{}, StepBytes: []uint64{},
		Advice: []report.Advice{}}
	c.ooms.open = append(c.ooms.open, o)
	return o
}

// expireOOM ends the cases that nothing was added to for long.
func (c *collector) expireOOM(now int64) {
	for _, o := range slices.Clone(c.ooms.open) {
		if now > o.last+oomWindow {
			c.tell(o)
		}
	}
}

// granted looks whether somebody who was refused got what it wanted after all.
func (c *collector) granted(e *trace.Event) {
	o := c.ooms.find(e.Thread, shortDevice(e))
	if o == nil || o.decided {
		return
	}
	switch {
	case e.Level == cuda.LevelFramework: // the allocator handed out a block
		o.decided = o.granted
	case e.Level == cuda.LevelDriver && e.Size >= o.event.DriverRequestedBytes:
		o.granted = true
		now := c.holding.driverBytes(o.device)
		before := now - min(now, e.Size)
		o.event.ReleasedBytes = o.first - min(o.first, before)
	}
}

// tell ends a case and puts it on the list.
func (c *collector) tell(o *oomCase) {
	t := &c.ooms
	t.open = slices.DeleteFunc(t.open, func(other *oomCase) bool { return other == o })
	e := &o.event
	detailed := &t.failed
	e.Outcome = report.OOMFailed
	if o.granted {
		e.Outcome, detailed = report.OOMRecovered, &t.recovered
		t.RecoveredCount++
	} else {
		t.Count++
	}
	t.number++
	if c.want.kind == momentOOM && (c.want.oom == t.number || c.want.oom == 0 && c.moment == nil && e.Outcome == report.OOMFailed) {
		c.moment = o.moment
	}
	if e.Detailed && *detailed >= maxOOMDetailed {
		e.DropDetails()
	}
	if e.Detailed {
		c.sizeUp(e)
	}
	if e.Detailed || e.Device < 0 && *detailed < maxOOMDetailed {
		*detailed++
		e.Advice = adviseOOM(e, t.facts())
	}
	if t.told != nil {
		t.told(e)
		return
	}
	if len(t.Events) < maxOOMEvents {
		t.Events = append(t.Events, *e)
	}
}

// sizeUp takes the device's size, which the recorder may have found out only after the event.
func (c *collector) sizeUp(e *report.OOMEvent) {
	for _, d := range c.resolver.tables.Devices() {
		if d.Index == e.Device {
			e.TotalBytes = d.TotalBytes
		}
	}
	e.Balance()
}

// finishOOM ends every case: nothing more will come.
func (c *collector) finishOOM() {
	for len(c.ooms.open) > 0 {
		c.tell(c.ooms.open[0])
	}
}

// endOOMForNow ends every case as if nothing more came, and returns what takes that back: a trace that grows may say more.
func (c *collector) endOOMForNow() (undo func()) {
	tracker, moment := c.ooms, c.moment
	c.ooms.Events = slices.Clip(c.ooms.Events)
	c.ooms.open = nil
	for _, o := range tracker.open {
		copied := *o
		c.ooms.open = append(c.ooms.open, &copied)
	}
	c.finishOOM()
	return func() { c.ooms, c.moment = tracker, moment }
}

// stepBegan remembers what is live, so that growth from step to step can be seen.
func (c *collector) stepBegan(e *trace.Event) {
	t := &c.ooms
	t.since, t.sinceSeq = &report.OOMGrowth{What: "step " + report.Number(e.Count), TimeNS: e.Time}, e.Seq
	for slot := range c.holding.devices {
		d := &c.holding.devices[slot]
		live := d.blocks
		if !d.counted {
			live = d.driverBytes()
		}
		kept := meter.Slot(&t.steps, slot)
		if len(*kept) == maxOOMSteps {
			*kept = slices.Delete(*kept, 0, 1)
		}
		*kept = append(*kept, live)
	}
}

// sampled completes the open cases with the device's word. It is asked for when memory runs out, or when the program ends over that. What it says beyond what
// was tracked then is taken to have been there at the refusal.
func (c *collector) sampled(e *trace.Event) {
	for _, o := range c.ooms.open {
		if o.device == e.Device && o.event.Detailed {
			o.event.Sample = c.lastSample(e.Device)
			o.event.Balance()
		}
	}
}

// lastSample returns the latest sample of a device, or the settled one before it if the latest fits no single moment; nil without any.
func (c *collector) lastSample(device int16) *report.Sample {
	slot := deviceSlot(device)
	if slot >= len(c.samples.devices) || len(c.samples.devices[slot].list) == 0 {
		return nil
	}
	list := c.samples.devices[slot].list
	last := list[len(list)-1]
	if n := len(list); n > 1 && !last.Settled && list[n-2].Settled && last.TimeNS-list[n-2].TimeNS < oomPictureEvery {
		last = list[n-2]
	}
	return &last
}

// noOOM says why there is no such moment.
func (c *collector) noOOM(want At) error {
	t := &c.ooms
	if t.number == 0 {
		return fmt.Errorf("the trace has no moment %s: memory never ran out", want)
	}
	if want.oom == 0 {
		return fmt.Errorf("the trace has no moment %s: memory ran out %d times, but the program got it in the end; choose oom:1 to oom:%d", want, t.number, t.number)
	}
	return fmt.Errorf("the trace has no moment %s: memory ran out %d times, so oom:%d is the last", want, t.number, t.number)
}

func (t *oomTracker) facts() adviceFacts {
	if t.info == nil {
		return adviceFacts{}
	}
	return adviceFacts{Info: t.info()}
}
