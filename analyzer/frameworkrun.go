package analyzer

import (
	"memtrace/analyzer/callstack"
	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/moment"
	"memtrace/analyzer/profile"
	"memtrace/cuda"
	"memtrace/trace"
)

// frameworkRun replays columns of a framework's allocations and frees, as nearly all events of a training program are,
// without making rows of them. It does what collector.event does for each, without looking for what none of them is.
// Events that are something else after all, such as a free of nothing, go there.
type frameworkRun struct {
	c       *collector
	columns *trace.Columns
	d       *profile.AccountStats
	row     trace.Event // of an event that goes the other way

	seq, time, thread, api, runtime, device, addr, size, flags trace.Column
	stack, pystack, tag, allocated, reserved, op, opThread     trace.Column
	rest, stream, pool                                         trace.Column
	mem                                                        cuda.MemoryKind
}

// batch replays events that came column by column.
func (c *collector) batch(b *trace.Batch) {
	runs := b.Runs()
	if len(runs) == 0 {
		c.rows(b.Rows())
		return
	}
	for i := range runs {
		if columns := &runs[i]; c.onFastPath(columns) {
			c.frameworkRun(columns)
		} else {
			meter.Slot(&c.rowRoom, columns.Len()-1)
			rows := c.rowRoom[:columns.Len()]
			columns.Rows(rows)
			c.rows(rows)
		}
	}
}

func (c *collector) rows(events []trace.Event) {
	for i := range events {
		c.event(&events[i])
	}
}

// onFastPath reports whether nothing has to be looked for in events but what they do to the framework's blocks.
func (c *collector) onFastPath(columns *trace.Columns) bool {
	switch {
	case c.want.Kind == moment.Time && c.moment == nil || c.want.Kind == moment.Teardown || c.window != nil ||
		c.timeline != nil,
		c.kept == nil || c.past[heap.AccountFramework] != nil || c.losses.begun || c.ooms.Watching() || c.thin ||
			c.watcher != nil,
		c.iterations != nil && (c.iterations.FromAllocations() || c.iterations.Account != heap.AccountFramework):
		return false
	}
	return c.heap.HasFastPath() && heap.FastRun(columns)
}

func (c *collector) frameworkRun(columns *trace.Columns) {
	r := &c.run
	r.begin(c, columns)
	last := c.lastTime
	for i, kind := range columns.Kinds() {
		done := false
		if trace.Flags(r.flags.At(i))&^trace.FlagBackward == 0 {
			epoch := r.d.Total.Epoch
			switch kind {
			case trace.EventAlloc:
				done = r.open(i)
			case trace.EventFree:
				done = r.close(i)
			}
			if done {
				r.report(i, epoch)
				last = max(last, int64(r.time.At(i)))
				continue
			}
		}
		c.lastTime = last
		columns.Row(i, &r.row)
		c.event(&r.row)
		last = c.lastTime
	}
	c.lastTime = last
}

func (r *frameworkRun) begin(c *collector, columns *trace.Columns) {
	r.c, r.columns, r.d = c, columns, c.details[heap.AccountFramework]
	for _, column := range [...]struct {
		to *trace.Column
		of trace.Field
	}{{&r.seq, trace.FieldSeq}, {&r.time, trace.FieldTime}, {&r.thread, trace.FieldThread}, {&r.api, trace.FieldAPI},
		{&r.runtime, trace.FieldRuntime},
		{&r.device, trace.FieldDevice}, {&r.addr, trace.FieldAddr}, {&r.size, trace.FieldSize},
		{&r.flags, trace.FieldFlags}, {&r.stack, trace.FieldStack},
		{&r.pystack, trace.FieldPyStack}, {&r.tag, trace.FieldTag}, {&r.allocated, trace.FieldAllocated},
		{&r.reserved, trace.FieldReserved},
		{&r.op, trace.FieldOp}, {&r.opThread, trace.FieldOpThread}, {&r.rest, trace.FieldRest},
		{&r.stream, trace.FieldStream}, {&r.pool, trace.FieldPool}} {
		*column.to = columns.Column(column.of)
	}
	mem, _ := columns.Fixed(trace.FieldMem)
	r.mem = cuda.MemoryKind(mem)
}

// open replays an allocation, and does nothing but return false if it is not one that takes the fast path.
func (r *frameworkRun) open(i int) bool {
	addr, size := r.addr.At(i), r.size.At(i)
	if addr == 0 || size > heap.MaxBlockBytes {
		return false
	}
	id, b := r.c.heap.OpenFramework(addr)
	if b == nil {
		return false
	}
	c, d := r.c, r.d
	r.fill(i, b, size)
	c.device.Holdings.Device(profile.DeviceSlot(b.Device)).Blocks += size
	pool := uint32(r.pool.At(i))
	c.device.Pools.Opened(b, pool)
	n := c.cell(&d.Cells, b, c.resolver.Places.Of(r.stream.At(i), pool), d.Total.Epoch)
	v := &d.Cells.List[n]
	if b.Hidden = v.Hidden; b.Hidden {
		return true
	}
	c.requests.Opened(id, b, r.rest.At(i), d, v)
	d.Open(b, v, 0)
	h := c.held
	h.Opened(h.OwnerOf(v), size, b.Time)
	c.heights[heap.AccountFramework].Set(d.Total.Current, b.Time)
	*meter.Slot(&c.cellOf, int(id)), *meter.Slot(&c.openedAs, int(id)) = n, d.Total.Allocs
	if t := c.iterations; t != nil {
		t.Opened(id, b, v)
	}
	return true
}

// fill gives a new block what its allocation says.
func (r *frameworkRun) fill(i int, b *heap.Block, size uint64) {
	thread, device, pystack := trace.ThreadID(r.thread.At(i)), int16(r.device.At(i)), trace.StackID(r.pystack.At(i))
	if op := uint32(r.op.At(i)); op != 0 {
		pystack = r.c.links.StackOf(&callstack.Asker{PyStack: pystack, Op: op, OpThread: uint16(r.opThread.At(i)),
			Device: device, Thread: thread,
			Backward: r.flags.At(i) != 0})
	}
	call := cuda.API(r.runtime.At(i))
	if call == cuda.APINone {
		call = cuda.API(r.api.At(i))
	}
	// One by one: a whole block would be put together elsewhere and copied in wide pieces, for which the processor
	// waits.
	b.Size, b.Seq, b.Time = size, r.seq.At(i), int64(r.time.At(i))
	b.Stack, b.PyStack, b.Tag = trace.StackID(r.stack.At(i)), pystack, trace.StringID(r.tag.At(i))
	b.Thread, b.Ordinal, b.Call, b.Device, b.Mem = thread, r.c.nextOrdinal(thread), call, device, r.mem
}

// close replays a free, and does nothing but return false if it is not one that takes the fast path.
func (r *frameworkRun) close(i int) bool {
	addr := r.addr.At(i)
	if addr == 0 {
		return false
	}
	c, d := r.c, r.d
	id, b := c.heap.CloseFramework(addr, r.seq.At(i))
	if b == nil {
		return false
	}
	thread := trace.ThreadID(r.thread.At(i))
	ordinal := c.nextOrdinal(thread)
	c.device.Holdings.Device(profile.DeviceSlot(b.Device)).Blocks -= b.Size
	if !b.Hidden {
		time := int64(r.time.At(i))
		if t := c.iterations; t != nil {
			c.closeInIteration(t, d, id, r.seq.At(i), time)
		}
		v := &d.Cells.List[c.cellOf[id]]
		c.requests.Closed(id, b, d, v)
		d.Close(b, v, 0)
		h := c.held
		h.Closed(h.OwnerOf(v), b.Size, time)
		c.heights[heap.AccountFramework].Set(d.Total.Current, time)
		d.Life.Add(b.Size, time-b.Time, thread == b.Thread && ordinal == b.Ordinal+1)
	}
	c.heap.Recycle(id)
	return true
}

// report takes in the counters that come with an event; epoch is that of the framework's total before it.
func (r *frameworkRun) report(i int, epoch uint64) {
	c := r.c
	if c.device.Holdings.Library == callstack.UnknownLibrary {
		c.device.ReportFrom(trace.StackID(r.stack.At(i)), c.resolver.Libraries)
	}
	device, reserved := int16(r.device.At(i)), r.reserved.At(i)
	c.device.Holdings.Report(device, r.seq.At(i), r.allocated.At(i), reserved, epoch)
	if c.iterations != nil {
		c.iterations.Reserved(device, reserved)
	}
}
