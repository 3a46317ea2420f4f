package analyzer

import (
	"memtrace/cuda"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// frameworkRun replays columns of a framework's allocations and frees, as nearly all events of a training program are,
// without making rows of them. It counts them as replayer.event does, by accounts.open and accounts.close, without
// looking for what none of them is. Events that are something else after all, such as a free of nothing, go there.
type frameworkRun struct {
	r       *replayer
	columns *trace.Columns
	d       *profile.AccountStats
	row     trace.Event // of an event that goes the other way
	block   heap.Block  // that begins or ends

	seq, time, thread, api, runtime, device, addr, size, flags trace.Column
	stack, pystack, tag, allocated, reserved, op, opThread     trace.Column
	rest, stream, pool                                         trace.Column
	mem                                                        cuda.MemoryKind
}

// batch replays events that came column by column.
func (r *replayer) batch(b *trace.Batch) {
	runs := b.Runs()
	if len(runs) == 0 {
		r.rows(b.Rows())
		return
	}
	for i := range runs {
		if columns := &runs[i]; r.byColumns(columns) {
			r.frameworkRun(columns)
		} else {
			heap.Slot(&r.rowRoom, columns.Len()-1)
			rows := r.rowRoom[:columns.Len()]
			columns.Rows(rows)
			r.rows(rows)
		}
	}
}

func (r *replayer) rows(events []trace.Event) {
	r.figures.sort()
	for i := range events {
		r.event(&events[i])
	}
}

// byColumns reports whether a run of columns has framework blocks only, and nothing needs their rows: no figure, no
// moment, no window, nothing that was lost or left out.
func (r *replayer) byColumns(columns *trace.Columns) bool {
	a := &r.accounts
	if r.figures.sort(); r.figures.plain || r.moments.needRows() || r.window != nil || r.losses.begun || a.thin ||
		a.kept == nil {
		return false
	}
	if t := a.iterations; t != nil && (t.FromAllocations() || t.Account != heap.AccountFramework) {
		return false
	}
	return heap.FastRun(columns)
}

func (r *replayer) frameworkRun(columns *trace.Columns) {
	run := &r.run
	run.begin(r, columns)
	last := r.lastTime
	for i, kind := range columns.Kinds() {
		done := false
		if trace.Flags(run.flags.At(i))&^trace.FlagBackward == 0 {
			epoch := run.d.Total.Epoch
			switch kind {
			case trace.EventAlloc:
				done = run.open(i)
			case trace.EventFree:
				done = run.close(i)
			}
			if done {
				run.report(i, epoch)
				r.idle.look(r, run.seq.At(i), int16(run.device.At(i)))
				last = max(last, int64(run.time.At(i)))
				continue
			}
		}
		r.lastTime = last
		columns.Row(i, &run.row)
		r.event(&run.row)
		last = r.lastTime
	}
	r.lastTime = last
}

func (f *frameworkRun) begin(r *replayer, columns *trace.Columns) {
	f.r, f.columns, f.d, f.block.Account = r, columns, r.accounts.details[heap.AccountFramework], heap.AccountFramework
	for _, column := range [...]struct {
		to *trace.Column
		of trace.Field
	}{{&f.seq, trace.FieldSeq}, {&f.time, trace.FieldTime}, {&f.thread, trace.FieldThread}, {&f.api, trace.FieldAPI},
		{&f.runtime, trace.FieldRuntime},
		{&f.device, trace.FieldDevice}, {&f.addr, trace.FieldAddr}, {&f.size, trace.FieldSize},
		{&f.flags, trace.FieldFlags}, {&f.stack, trace.FieldStack},
		{&f.pystack, trace.FieldPyStack}, {&f.tag, trace.FieldTag}, {&f.allocated, trace.FieldAllocated},
		{&f.reserved, trace.FieldReserved},
		{&f.op, trace.FieldOp}, {&f.opThread, trace.FieldOpThread}, {&f.rest, trace.FieldRest},
		{&f.stream, trace.FieldStream}, {&f.pool, trace.FieldPool}} {
		*column.to = columns.Column(column.of)
	}
	mem, _ := columns.Fixed(trace.FieldMem)
	f.mem = cuda.MemoryKind(mem)
}

// open replays an allocation, and does nothing but return false if it is not a plain one.
func (f *frameworkRun) open(i int) bool {
	addr, size := f.addr.At(i), f.size.At(i)
	if addr == 0 || size > heap.MaxBlockBytes {
		return false
	}
	r, d := f.r, f.d
	id, ok := r.heap.Framework.Open(addr)
	if !ok {
		return false
	}
	b := &f.block
	b.Addr = addr
	f.fill(i, id, b, size)
	r.device.Holdings.Device(profile.DeviceSlot(b.Device)).Blocks += size
	pool, a := uint32(f.pool.At(i)), &r.accounts
	r.device.Pools.Opened(b, pool)
	n := a.cell(&d.Cells, b, a.resolver.Places.Of(f.stream.At(i), pool), d.Total.Epoch)
	if b.Hidden = d.Cells.List[n].Hidden; !b.Hidden {
		a.open(id, b, f.rest.At(i), d, n)
	}
	r.heap.Framework.Keep(id, b, &d.Cells.List[n].Alike)
	return true
}

// fill gives a new block what its allocation recorded.
func (f *frameworkRun) fill(i int, id uint32, b *heap.Block, size uint64) {
	thread, device, pystack := trace.ThreadID(f.thread.At(i)), int16(f.device.At(i)), trace.StackID(f.pystack.At(i))
	if op := uint32(f.op.At(i)); op != 0 {
		pystack = f.r.accounts.links.StackOf(&callstack.Asker{PyStack: pystack, Op: op,
			OpThread: uint16(f.opThread.At(i)), Device: device, Thread: thread, Backward: f.flags.At(i) != 0})
	}
	call := cuda.API(f.runtime.At(i))
	if call == cuda.APINone {
		call = cuda.API(f.api.At(i))
	}
	// One by one: a whole block would be put together elsewhere and copied in wide pieces, for which the processor
	// waits.
	b.Size, b.Seq, b.Time = size, f.seq.At(i), int64(f.time.At(i))
	b.Stack, b.PyStack, b.Tag = trace.StackID(f.stack.At(i)), pystack, trace.StringID(f.tag.At(i))
	b.Thread, b.Call, b.Device, b.Mem = thread, call, device, f.mem
	*f.r.latestOf(thread) = id + 1
}

// close replays a free, and does nothing but return false if it is not a plain one.
func (f *frameworkRun) close(i int) bool {
	addr := f.addr.At(i)
	if addr == 0 {
		return false
	}
	r, d := f.r, f.d
	b := &f.block
	id, ok := r.heap.Framework.Close(addr, f.seq.At(i), b)
	if !ok {
		return false
	}
	thread := trace.ThreadID(f.thread.At(i))
	latest := r.latestOf(thread)
	previous := *latest
	*latest = 0
	r.device.Holdings.Device(profile.DeviceSlot(b.Device)).Blocks -= b.Size
	if !b.Hidden {
		time := int64(f.time.At(i))
		r.endLife(d, id, b, f.seq.At(i), time)
		r.accounts.close(id, b, d, time, thread == b.Thread && previous == id+1)
	}
	r.heap.Framework.Recycle(id)
	return true
}

// report takes in the counters that come with an event; epoch is that of the framework's total before it.
func (f *frameworkRun) report(i int, epoch uint64) {
	r := f.r
	if r.device.Holdings.Library == callstack.UnknownLibrary {
		r.device.ReportFrom(trace.StackID(f.stack.At(i)), r.accounts.resolver.Libraries)
	}
	device, reserved := int16(f.device.At(i)), f.reserved.At(i)
	r.device.Holdings.Report(device, f.seq.At(i), f.allocated.At(i), reserved, epoch)
	if r.accounts.iterations != nil {
		r.accounts.iterations.Reserved(device, reserved)
	}
}
