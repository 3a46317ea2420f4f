package oom

import (
	"slices"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/callstack"
	"memtrace/internal/device"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

const (
	// MaxEvents bounds the list of OOM events; all are counted.
	MaxEvents = 100
	// MaxDetailed bounds those of one outcome that say who held the memory.
	MaxDetailed = 20
	// maxPictures bounds how often the live blocks are looked through without pause; after that it is done at most once
	// in pictureEvery.
	maxPictures  = 64
	pictureEvery = 1e9 // nanoseconds
	// window is how long an OOM event waits for the next attempt, and for the device's own word, before it counts as
	// over.
	window = 200e6 // nanoseconds
	// maxOpen bounds how many threads may be out of memory at once.
	maxOpen = 64
	// maxSteps is how many beginnings of steps are remembered.
	maxSteps = 8
)

// StatusOutOfMemory is the driver's and the runtime's code for it.
const StatusOutOfMemory = 2

// Replay is what the tracker asks of the replay that it watches.
type Replay interface {
	// Watches reports whether the filters keep a device.
	Watches(device int16) bool
	// DriverBytes is the live memory of the driver that the filters keep.
	DriverBytes() uint64
	// LostRecords is how many records were lost so far.
	LostRecords() uint64
	// AtRefusal is called at each refusal. What it returns is handed to OOMEnded with the event that the refusal is
	// part of.
	AtRefusal(time int64) (state any)
	// CategoryOf says what a live block is for; "" where that is not known.
	CategoryOf(id uint32, b *heap.Block) string
	// ElementOf is how many bytes an element of the tensor in a block has, 1, 2 or trace.WideElement; 0 where that is
	// not known.
	ElementOf(id uint32, b *heap.Block) uint8
	// IsNewCode reports whether a live block is known to be of a call stack that first allocated in the running
	// iteration.
	IsNewCode(b *heap.Block) bool
	// Passing takes in that a live block is the gradient of an activation: the backward pass that made it would have
	// freed it, and has been given up. AtRefusal of the same refusal comes later.
	Passing(id uint32)
	// OOMEnded is called for each event when it is over; number counts from 1.
	OOMEnded(number int, outcome string, state any)
}

// Tracker turns refusals into OOM events. Attempts belong together if one thread makes them for one device within a
// short time: an allocator asks, gives back what it has cached, asks again and tells its caller. An allocation that is
// granted in between ends the matter only if nothing is refused after it, since expandable segments ask piece by piece.
type Tracker struct {
	report.OOM
	Resolver *profile.Resolver
	Heap     *heap.Heap
	Devices  *device.State
	Replay   Replay
	// Divide divides the place that holds most of a level; nil: it is not divided
	Divide func(level string, list []profile.Held) *report.Division
	open   []*incident            // in the order in which they began
	Ended  func(*report.OOMEvent) // takes each event instead of the list, if not nil
	Places bool                   // divide by places of the program, too
	// Links leads from a step of a backward pass to its forward operator. nil: none is known
	Links *callstack.LinkedStacks
	// OriginOf tells where a block comes from, with what is known beside its stack, as its name. nil: the stack is all.
	OriginOf func(id uint32, b *heap.Block) profile.Origin
	Info     func() trace.Info
	since    *report.OOMGrowth // the latest step or mark, without its bytes
	sinceSeq uint64
	stepped  stepSpan
	ByPhase  CategoryByPhase // categories where there are no rules
	steps    [][]uint64      // live bytes at the latest beginnings of steps, by device slot

	failed, recovered int // detailed events so far
	pictures          int
	lastPicture       int64
	number            int // of the event that was told last, from 1

	retrying retrying
	Settled  func(report.OOMRetries) // takes what came after failures once no more is waited for, if not nil
}

// stepSpan is where the program's or an optimizer's first and latest step stand, as order numbers; 0: none.
type stepSpan struct{ first, last uint64 }

func (s *stepSpan) add(seq uint64) {
	if s.first == 0 {
		s.first = seq
	}
	s.last = max(s.last, seq)
}

// incident is an OOM event that may go on.
type incident struct {
	event   report.OOMEvent
	thread  trace.ThreadID
	device  int16
	last    int64  // time of the latest attempt
	first   uint64 // driver bytes of the device at the first attempt
	decided bool   // nothing that comes can change the outcome
	granted bool   // since the last refusal, as much was granted
	state   any    // of the replay, at the last refusal
}

// outOfMemory reports whether a refused allocation was refused for want of memory.
func outOfMemory(e *trace.Event) bool {
	return e.Kind == trace.EventAlloc && e.Status == StatusOutOfMemory && e.Level == cuda.LevelDriver &&
		e.Mem != cuda.MemoryAddress
}

// shortDevice is the device whose memory ran out: none for host memory.
func shortDevice(e *trace.Event) int16 {
	if e.Mem == cuda.MemoryHost || e.Mem == cuda.MemoryRegistered {
		return -1
	}
	return e.Device
}

// Event lets the tracker see an event, after the heap. It costs next to nothing while memory does not run out.
func (t *Tracker) Event(e *trace.Event) {
	if len(t.open) > 0 && e.Flags&trace.FlagLate == 0 {
		t.givenBack(e)
		t.expire(e.Time)
	}
	switch e.Kind {
	case trace.EventAlloc:
		if outOfMemory(e) {
			t.refusedForMemory(e)
		}
	case trace.EventOOM:
		t.frameworkOOM(e)
	case trace.EventStep:
		t.stepped.add(e.Seq)
		t.stepBegan(e)
	case trace.EventName:
		if e.Category == trace.CategoryStep {
			t.stepped.add(e.Seq)
		}
	case trace.EventMark:
		t.since, t.sinceSeq = &report.OOMGrowth{What: "mark " + t.Resolver.Tables.String(e.Name), TimeNS: e.Time}, e.Seq
	case trace.EventSample:
		t.sampled(e)
	}
	if len(t.open) > 0 && e.Kind == trace.EventAlloc && e.Status == 0 {
		t.granted(e)
	}
	if t.retrying.waiting {
		t.retried(e)
	}
}

// refusedForMemory takes in one refused driver call.
func (t *Tracker) refusedForMemory(e *trace.Event) {
	if !t.Replay.Watches(e.Device) {
		return
	}
	t.RefusedCount++
	o := t.incidentOf(e)
	o.last, o.granted = e.Time, false
	o.event.Attempts++
	o.event.Level = e.Level.String()
	o.event.Memory, o.event.DriverRequestedBytes, o.event.RequestedBytes = e.Mem.String(), e.Size, e.Size
	o.event.Site = t.placeOf(e)
	o.event.Call, o.event.Library, o.event.Caller = heap.CallOf(e).String(),
		t.Resolver.Libraries.Name(t.Resolver.Libraries.Of(e.Stack)), t.callerOf(e.Stack)
	t.describe(o, e, false)
}

// frameworkOOM takes in a framework's own report.
func (t *Tracker) frameworkOOM(e *trace.Event) {
	if !t.Replay.Watches(e.Device) {
		return
	}
	o := t.incidentOf(e)
	o.last, o.decided, o.granted = e.Time, true, false
	o.event.Level, o.event.RequestedBytes = e.Level.String(), e.Size
	o.event.AllocatedBytes, o.event.ReservedBytes = e.Allocated, e.Reserved
	if place := t.backwardOf(e); place != "" {
		o.event.Site = place
	} else if o.event.Site == "" {
		o.event.Site = t.placeOf(e)
	}
	if o.event.Memory == "" {
		o.event.Memory = cuda.MemoryDevice.String()
	}
	if o.event.Library == "" {
		o.event.Library, o.event.Caller = t.Resolver.Libraries.Name(t.Resolver.Libraries.Of(e.Stack)),
			t.callerOf(e.Stack)
	}
	t.describe(o, e, true)
	t.failedAgain(e, o.event.Composition)
}

func (t *Tracker) find(thread trace.ThreadID, device int16) *incident {
	for _, o := range t.open {
		if o.thread == thread && o.device == device {
			return o
		}
	}
	return nil
}

// incidentOf returns the incident that an attempt belongs to, which may be a new one.
func (t *Tracker) incidentOf(e *trace.Event) *incident {
	o := t.find(e.Thread, shortDevice(e))
	if o != nil && !o.decided {
		return o
	}
	if o != nil {
		t.close(o)
	}
	return t.beginIncident(e)
}

func (t *Tracker) beginIncident(e *trace.Event) *incident {
	if len(t.open) == maxOpen {
		t.close(t.open[0])
	}
	index := shortDevice(e)
	o := &incident{thread: e.Thread, device: index, first: t.Devices.Holdings.DriverBytes(index)}
	o.event = report.OOMEvent{Device: index, FirstTimeNS: e.Time,
		Thread: profile.ThreadKey(t.Resolver, uint64(e.Thread)), Ledgers: []report.Ledger{}, StepBytes: []uint64{},
		Advice: []report.Advice{}}
	t.open = append(t.open, o)
	return o
}

// givenBack lets a case wait on where its thread gives memory back: it is about to ask again, however long that takes
// on a busy machine.
func (t *Tracker) givenBack(e *trace.Event) {
	if e.Level != cuda.LevelDriver || e.Kind != trace.EventFree && e.Kind != trace.EventUnmap {
		return
	}
	for _, o := range t.open { // of any device: a call that gives back names none
		if o.thread == e.Thread && !o.decided {
			o.last = e.Time
		}
	}
}

// expire ends the cases that nothing was added to for long.
func (t *Tracker) expire(now int64) {
	for _, o := range slices.Clone(t.open) {
		if now > o.last+window {
			t.close(o)
		}
	}
}

// granted looks whether somebody who was refused got what it wanted after all.
func (t *Tracker) granted(e *trace.Event) {
	o := t.find(e.Thread, shortDevice(e))
	if o == nil || o.decided {
		return
	}
	switch {
	case e.Level == cuda.LevelFramework: // the allocator handed out a block
		o.decided = o.granted
	case e.Level == cuda.LevelDriver && e.Size >= o.event.DriverRequestedBytes:
		o.granted = true
		now := t.Devices.Holdings.DriverBytes(o.device)
		before := now - min(now, e.Size)
		o.event.ReleasedBytes = o.first - min(o.first, before)
	}
}

// close ends a case, and before it those that began earlier and whose outcome is certain: the list is in order of time.
func (t *Tracker) close(o *incident) {
	ready := func(other *incident) bool { return other == o || other.decided }
	if first := t.open[slices.IndexFunc(t.open, ready)]; first != o {
		t.close(first)
		t.close(o)
		return
	}
	t.open = slices.DeleteFunc(t.open, func(other *incident) bool { return other == o })
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
	t.Replay.OOMEnded(t.number, e.Outcome, o.state)
	if e.Detailed && *detailed >= MaxDetailed {
		e.DropDetails()
	}
	if e.Detailed {
		t.sizeUp(e)
	}
	if e.Detailed || e.Device < 0 && *detailed < MaxDetailed {
		*detailed++
		e.Advice = Advise(e, t.facts(e))
	}
	if t.Ended != nil {
		t.Ended(e)
		return
	}
	if len(t.Events) < MaxEvents {
		t.Events = append(t.Events, *e)
	}
}

// sizeUp takes the device's size, which the recorder may have found out only after the event.
func (t *Tracker) sizeUp(e *report.OOMEvent) {
	for _, d := range t.Resolver.Tables.Devices() {
		if d.Index == e.Device {
			e.TotalBytes = d.TotalBytes + e.KeptBytes()
		}
	}
	e.Balance()
}

// Finish ends every event: nothing more will come.
func (t *Tracker) Finish() {
	for len(t.open) > 0 {
		t.close(t.open[0])
	}
}

// FinishForNow ends every event as if nothing more came, and returns what takes that back: a trace that grows may say
// more.
func (t *Tracker) FinishForNow() (undo func()) {
	before := *t
	t.Events = slices.Clip(t.Events)
	t.open, t.Retries = nil, slices.Clone(t.Retries)
	for _, o := range before.open {
		copied := *o
		t.open = append(t.open, &copied)
	}
	t.Finish()
	return func() { *t = before }
}

// stepBegan remembers what is live, so that growth from step to step can be seen.
func (t *Tracker) stepBegan(e *trace.Event) {
	t.since, t.sinceSeq = &report.OOMGrowth{What: "step " + report.Number(e.Count), TimeNS: e.Time}, e.Seq
	for slot := range t.Devices.Holdings.Devices {
		d := &t.Devices.Holdings.Devices[slot]
		live := d.Blocks
		if !d.Counted {
			live = d.DriverBytes()
		}
		kept := heap.Slot(&t.steps, slot)
		if len(*kept) == maxSteps {
			*kept = slices.Delete(*kept, 0, 1)
		}
		*kept = append(*kept, live)
	}
}

// sampled completes the open cases with the device's word. It is asked for when memory runs out, or when the program
// ends over that. What it says beyond what was tracked then is taken to have been there at the refusal.
func (t *Tracker) sampled(e *trace.Event) {
	for _, o := range t.open {
		if o.device == e.Device && o.event.Detailed {
			o.event.Sample = t.Devices.Samples.Last(e.Device)
			o.event.Balance()
		}
	}
}

func (t *Tracker) facts(e *report.OOMEvent) AdviceFacts {
	f := AdviceFacts{Followed: FollowedBy(t.Resolver.Tables)}
	f.Nameless = len(e.Through) == 0
	if t.Info != nil {
		f.Info = t.Info()
	}
	return f
}

// Pending reports whether an event waits for what comes next. Where nothing comes for long, Finish ends it.
func (t *Tracker) Pending() bool { return len(t.open) > 0 }

// Watching reports whether events must be seen that have nothing to do with memory running out: an event waits for what
// comes next, or an attempt may succeed.
func (t *Tracker) Watching() bool { return len(t.open) > 0 || t.retrying.waiting }

// Number is how many events are over, those that were granted in the end among them.
func (t *Tracker) Number() int { return t.number }
