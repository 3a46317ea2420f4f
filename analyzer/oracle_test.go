package analyzer

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/trace"
)

// oracle is the slow and obvious way to a summary: a list of live blocks, added up again after every event.
type oracle struct {
	src      *memorySource
	opts     Options
	by       []string
	live     []*oracleBlock
	mappings []oracleMapping
	lateFree []trace.Event // unmatched frees
	awaited  []trace.Event // displaced allocations whose free has not come
	ordinal  map[trace.ThreadID]int
	s        *report.Summary
	deviceOf map[int16]*report.Device
	rows     map[string]*report.Row // by level, grouping and key
	peaks    map[string]oracleState
	hist     map[heap.Account]map[int]*report.LifetimeBucket
	lib      string // the framework's
	holdPeak map[string]uint64
	at       *oracleState
	last     int64

	oracleObjects
}

type oracleBlock struct {
	e        trace.Event
	account  heap.Account
	ordinal  int
	mapped   int
	extra    int  // references beyond the first
	unsized  bool // an imported handle that was never mapped
	released bool
	visible  bool
}

type oracleMapping struct {
	e trace.Event
	b *oracleBlock
}

// oracleState is what is live at a moment, and the framework's reserved counters.
type oracleState struct {
	time     int64
	blocks   []*oracleBlock
	reported map[int16]uint64
}

func (o *oracle) library(e trace.Event) string {
	frames := o.src.tables.Stack(e.Stack)
	if len(frames) == 0 {
		return "(unknown)"
	}
	m, ok := o.src.tables.ModuleAt(frames[0] - 1)
	if !ok {
		return "(unknown)"
	}
	return path.Base(m.Path)
}

// sites are where the stacks of fillTables lead: to the program itself, which has no names, or to code outside of every
// library.
var sites = map[trace.StackID]string{stackAllocator: "train+0x4ff", stackBLAS: "train+0x4ff",
	stackProgram: "train+0xff", stackNowhere: "[jit]"}

func (o *oracle) key(e trace.Event, by string) string {
	switch by {
	case "tag":
		if e.Tag == 0 {
			return "(untagged)"
		}
		return o.src.tables.String(e.Tag)
	case "api":
		if e.Runtime != 0 {
			return e.Runtime.String()
		}
		return e.API.String()
	case "library":
		return o.library(e)
	case "device":
		return fmt.Sprint(e.Device)
	case "name":
		if e.Category != trace.CategoryNone && e.Category != trace.CategoryFree {
			return o.src.tables.String(e.Name) + " (" + e.Category.String() + ")"
		}
		return "(unnamed)"
	case "module":
		if e.Category != trace.CategoryNone {
			name := o.src.tables.String(e.Name)
			_, parameter, _ := strings.Cut(":"+name, ":")
			if i := strings.LastIndex(parameter, "."); i > 0 {
				return parameter[strings.LastIndex(parameter, ":")+1 : i]
			}
		}
		return "(no module)"
	case "phase": // no frame of these streams speaks for one
		if th, _ := o.src.tables.Thread(e.Thread); strings.HasPrefix(th.Name, "pt_autograd") {
			return "backward"
		}
		return "other"
	case "stream", "pool":
		return placeKey(e, by)
	case "operator": // nor for an operator
		return report.NoOperator
	case "site", "function", "line", "inner":
		return cmp.Or(sites[e.Stack], report.NoStack)
	case "file":
		place, _, _ := strings.Cut(cmp.Or(sites[e.Stack], report.NoStack), "+")
		return place
	}
	th, ok := o.src.tables.Thread(e.Thread)
	if !ok {
		return "(unknown)"
	}
	name := th.Name
	if name == "" {
		name = "thread"
	}
	return fmt.Sprintf("%s (%d)", name, th.TID)
}

// placeKey is the stream or the pool of a block, of which there are few: see withPlaces.
func placeKey(e trace.Event, by string) string {
	framework := e.Level == cuda.LevelFramework
	switch {
	case framework && by == "stream" && e.Stream == 0, framework && by == "pool" && e.Pool == 0:
		return "(not recorded)"
	case by == "stream" && !framework && e.Mem != cuda.MemoryAsync:
		return "(no stream)"
	case by == "stream" && e.Stream == 0:
		return "default stream"
	case by == "stream":
		return "stream 1"
	case !framework:
		return "(no pool)"
	}
	return map[uint32]string{6: "private pool (3, 0), of graphs", 7: "private pool (0, 3)"}[e.Pool]
}

// withPlaces gives allocations streams, and the framework's blocks pools.
func withPlaces(events []trace.Event) []trace.Event {
	for i := range events {
		e := &events[i]
		if e.Kind != trace.EventAlloc || e.Level != cuda.LevelFramework && e.Mem != cuda.MemoryAsync {
			continue
		}
		e.Stream = e.Seq % 2 * 0x1000
		if e.Level == cuda.LevelFramework {
			e.Pool = []uint32{0, 6, 7, 0, 0}[e.Seq%5]
		}
	}
	return events
}

func (o *oracle) label(by, key string) string {
	if by == "stream" && key == "stream 1" {
		return "stream 1 (0x1000)"
	}
	if by != "device" {
		return ""
	}
	if key == "-1" {
		return "(unknown device)"
	}
	return key + " Test GPU"
}

func (o *oracle) visible(e trace.Event) bool {
	if len(o.opts.Devices) > 0 && !slices.Contains(o.opts.Devices, e.Device) {
		return false
	}
	tag := o.key(e, "tag")
	if t := o.opts.Tag; t != "" && tag != t && !strings.HasPrefix(tag, t+".") {
		return false
	}
	if !strings.Contains(o.library(e), o.opts.Library) {
		return false
	}
	texts := []string{tag, o.key(e, "api"), o.library(e), o.key(e, "thread")}
	if o.opts.Ignore != nil && slices.ContainsFunc(texts, o.opts.Ignore.MatchString) {
		return false
	}
	return o.opts.Focus == nil || slices.ContainsFunc(texts, o.opts.Focus.MatchString)
}

func oracleAccount(e trace.Event) heap.Account {
	if e.Level == cuda.LevelFramework {
		if e.Mem == cuda.MemoryHost {
			return heap.AccountOther
		}
		return heap.AccountFramework
	}
	if e.Level != cuda.LevelDriver {
		return heap.AccountNone
	}
	return map[cuda.MemoryKind]heap.Account{cuda.MemoryDevice: heap.AccountDriver, cuda.MemoryAsync: heap.AccountDriver,
		cuda.MemoryVMM:   heap.AccountDriver,
		cuda.MemoryArray: heap.AccountDriver, cuda.MemoryManaged: heap.AccountManaged,
		cuda.MemoryHost: heap.AccountHost, cuda.MemoryRegistered: heap.AccountRegistered,
		cuda.MemoryForeign: heap.AccountForeign, cuda.MemoryUnknown: heap.AccountOther,
		cuda.MemoryModule: heap.AccountDriver, cuda.MemoryImported: heap.AccountForeign,
		cuda.MemoryGraph: heap.AccountGraph, cuda.MemoryAddress: heap.AccountAddress,
		cuda.MemoryMulticast: heap.AccountMulticast}[e.Mem]
}

// sameSpace says whether two events' addresses may collide.
func sameSpace(a, b trace.Event) bool {
	class := func(e trace.Event) string {
		switch {
		case e.Level == cuda.LevelFramework:
			return "framework"
		case e.Mem == cuda.MemoryVMM || e.Mem == cuda.MemoryImported || e.Mem == cuda.MemoryMulticast:
			return "handle"
		case e.Mem == cuda.MemoryGraph || e.Mem == cuda.MemoryAddress:
			return e.Mem.String()
		case e.Mem == cuda.MemoryHost || e.Mem == cuda.MemoryRegistered:
			return "host"
		}
		return "device"
	}
	return class(a) == class(b)
}

// at returns the block that an address leads to.
func (o *oracle) find(e trace.Event) *oracleBlock {
	for _, b := range o.live {
		if !b.released && b.e.Addr == e.Addr && sameSpace(b.e, e) {
			return b
		}
	}
	return nil
}

// level returns the level of an account on all devices and on one.
func (o *oracle) levels(a heap.Account, device int16) []*report.Level {
	switch a {
	case heap.AccountDriver:
		return []*report.Level{&o.s.Driver, &o.device(device).Driver}
	case heap.AccountFramework:
		return []*report.Level{&o.s.Framework, &o.device(device).Framework}
	}
	return nil
}

func (o *oracle) device(index int16) *report.Device {
	if o.deviceOf[index] == nil {
		o.deviceOf[index] = &report.Device{Index: index}
	}
	return o.deviceOf[index]
}

// total changes the counts of everything that a block belongs to.
func (o *oracle) total(e trace.Event, a heap.Account, change func(*report.Level), row func(*report.Row)) {
	if !o.visible(e) {
		return
	}
	if a != heap.AccountDriver && a != heap.AccountFramework {
		l := o.s.Other[a.String()]
		change(&l)
		o.s.Other[a.String()] = l
		return
	}
	for _, l := range o.levels(a, e.Device) {
		change(l)
	}
	for _, by := range o.by {
		name := a.String() + "|" + by + "|" + o.key(e, by)
		if row != nil && o.rows[name] == nil {
			o.rows[name] = &report.Row{Key: o.key(e, by), Label: o.label(by, o.key(e, by))}
		}
		if row != nil {
			row(o.rows[name])
		}
	}
}

func (o *oracle) countAlloc(e trace.Event, a heap.Account) {
	o.total(e, a, func(l *report.Level) { l.AllocCount++; l.AllocBytes += e.Size },
		func(r *report.Row) { r.AllocCount++; r.AllocBytes += e.Size })
	if o.visible(e) && e.Flags&trace.FlagEstimated != 0 {
		o.s.Health.EstimatedSizes++
	}
	if o.visible(e) && e.Flags&trace.FlagRuntimeOnly != 0 {
		o.s.Health.RuntimeOnly++
	}
}

func (o *oracle) countFree(e trace.Event, a heap.Account) {
	o.total(e, a, func(l *report.Level) { l.FreeCount++ }, func(r *report.Row) { r.FreeCount++ })
}

func (o *oracle) alloc(e trace.Event) {
	a := oracleAccount(e)
	if a == heap.AccountNone {
		return
	}
	if e.Flags&trace.FlagReference != 0 {
		o.refer(e)
		return
	}
	if e.Status != 0 {
		o.total(e, a, func(l *report.Level) { l.FailedCount++ }, nil)
		return
	}
	if e.Size > heap.MaxBlockBytes {
		o.s.Health.ImplausibleSizes++
		return
	}
	old := o.find(e)
	if old != nil && o.again(old, e) {
		return
	}
	passed := o.hasPassed(old, e)
	if e.Mem == cuda.MemoryGraph {
		o.addNode(e)
	}
	if passed {
		o.pass(e, a)
		return
	}
	if old != nil {
		o.s.Health.DisplacedBlocks++
		o.awaited = append(o.awaited, old.e)
		o.close(old, e)
	}
	b := &oracleBlock{e: e, account: a, ordinal: o.ordinal[e.Thread], visible: o.visible(e),
		unsized: e.Mem == cuda.MemoryImported && e.Size == 0}
	o.live = append(o.live, b)
	if !b.unsized {
		o.countAlloc(e, a)
	}
}

// pass counts an allocation that came after its end.
func (o *oracle) pass(e trace.Event, a heap.Account) {
	o.s.Health.LateAllocs++
	o.countAlloc(e, a)
	o.countFree(e, a)
}

// hasPassed says whether an allocation that comes late had ended before, and matches the free that ended it.
func (o *oracle) hasPassed(old *oracleBlock, e trace.Event) bool {
	late := e.Flags&trace.FlagLate != 0
	asFree := e
	if !o.hasLaterFree(e) && e.Mem == cuda.MemoryGraph {
		asFree.Mem = cuda.MemoryDevice // programs free nodes as they free other memory
	}
	switch {
	case old != nil && old.e.Seq > e.Seq, old == nil && late && o.hasLaterFree(asFree):
		o.takeLaterFree(asFree)
		return true
	}
	return late && o.ownerEndedAfter(e)
}

func (o *oracle) hasLaterFree(e trace.Event) bool {
	return slices.ContainsFunc(o.lateFree, func(f trace.Event) bool {
		return f.Addr == e.Addr && sameSpace(f, e) && f.Seq >= e.Seq
	})
}

// takeLaterFree matches one of the address's unmatched frees. The one that is left last is the highest one.
func (o *oracle) takeLaterFree(e trace.Event) {
	if !o.hasLaterFree(e) {
		return
	}
	lowest := -1
	for i, f := range o.lateFree {
		if f.Addr == e.Addr && sameSpace(f, e) && (lowest < 0 || f.Seq < o.lateFree[lowest].Seq) {
			lowest = i
		}
	}
	o.lateFree = slices.Delete(o.lateFree, lowest, lowest+1)
}

func (o *oracle) close(b *oracleBlock, e trace.Event) {
	b.extra = 0
	if b.mapped > 0 {
		b.released = true
		o.lingering[b.e.Addr] = b
		return
	}
	o.live = slices.DeleteFunc(o.live, func(x *oracleBlock) bool { return x == b })
	if b.unsized {
		return
	}
	o.countFree(b.e, b.account)
	if !b.visible || b.account != heap.AccountDriver && b.account != heap.AccountFramework {
		return
	}
	digits := len(fmt.Sprint(max(e.Time-b.e.Time, 0)))
	if o.hist[b.account][digits] == nil {
		o.hist[b.account][digits] = &report.LifetimeBucket{BelowNS: uint64(math.Pow10(digits))}
	}
	o.hist[b.account][digits].Count++
	o.hist[b.account][digits].Bytes += b.e.Size
	h := o.s.Lifetimes[b.account.String()]
	h.FreedCount++
	if e.Kind == trace.EventFree && e.Thread == b.e.Thread && o.ordinal[e.Thread] == b.ordinal+1 {
		h.TemporaryCount++
		h.TemporaryBytes += b.e.Size
	}
	o.s.Lifetimes[b.account.String()] = h
}

func (o *oracle) free(e trace.Event) {
	b := o.find(e)
	asNode := e
	if e.Level == cuda.LevelDriver && sameSpace(e, trace.Event{Level: cuda.LevelDriver, Mem: cuda.MemoryDevice}) {
		asNode.Mem = cuda.MemoryGraph
	}
	if b == nil {
		b = o.find(asNode)
	}
	awaited := slices.IndexFunc(o.awaited, func(x trace.Event) bool { return x.Addr == e.Addr && sameSpace(x, e) })
	if awaited < 0 || b != nil && b.e.Mem == cuda.MemoryGraph {
		awaited = slices.IndexFunc(o.awaited, func(x trace.Event) bool {
			return x.Addr == e.Addr && sameSpace(x, asNode)
		})
	}
	switch {
	case oracleAccount(e) == heap.AccountNone || e.Addr == 0:
	case e.Status != 0:
		o.s.Health.FailedFrees++
	case b != nil && b.e.Seq > e.Seq || b == nil && awaited >= 0 && e.Flags&trace.FlagLate != 0:
		o.s.Health.LateFrees++
		if awaited >= 0 {
			o.awaited = slices.Delete(o.awaited, awaited, awaited+1)
		}
	case b == nil && o.nodes[e.Addr] && asNode.Mem == cuda.MemoryGraph && e.Level == cuda.LevelDriver:
	case b == nil:
		o.lateFree = append(o.lateFree, e)
	case b.extra > 0:
		b.extra--
	default:
		o.close(b, e)
	}
}

// sum adds up blocks that pass a test.
func sum(blocks []*oracleBlock, keep func(*oracleBlock) bool) (bytes uint64) {
	for _, b := range blocks {
		if keep(b) {
			bytes += b.e.Size
		}
	}
	return bytes
}

func (o *oracle) now(time int64) oracleState {
	st := oracleState{time: time, blocks: slices.Clone(o.live), reported: map[int16]uint64{}}
	for index, d := range o.deviceOf {
		if d.Reported != nil {
			st.reported[index] = d.Reported.ReservedBytes
		}
	}
	return st
}

// measure adds everything up after an event and keeps new maxima.
func (o *oracle) measure(e trace.Event) {
	raise := func(l *report.Level, name string, bytes uint64) {
		l.LiveBytes = bytes
		if bytes > l.PeakBytes {
			l.PeakBytes, l.PeakTimeNS = bytes, e.Time
			o.peaks[name] = o.now(e.Time)
		}
	}
	for index := range o.deviceOf {
		v := o.sizes(index)
		if d := o.device(index); v.RequestedBytes > d.Sizes.AtPeak.RequestedBytes {
			d.Sizes.AtPeak = v
		}
		o.device(index).Sizes.AtEnd = v
	}
	for a := heap.AccountDriver; a < heap.AccountCount; a++ {
		mine := func(b *oracleBlock) bool { return b.visible && b.account == a }
		if l, ok := o.s.Other[a.String()]; ok {
			raise(&l, a.String(), sum(o.live, mine))
			o.s.Other[a.String()] = l
		}
	}
	for _, a := range []heap.Account{heap.AccountDriver, heap.AccountFramework} {
		mine := func(b *oracleBlock) bool { return b.visible && b.account == a }
		raise(o.levels(a, 0)[0], a.String(), sum(o.live, mine))
		for index := range o.deviceOf {
			raise(o.levels(a, index)[1], fmt.Sprint(a, index), sum(o.live, func(b *oracleBlock) bool {
				return mine(b) && b.e.Device == index
			}))
		}
	}
	for index := range o.deviceOf {
		for _, lib := range []string{"libc10_cuda.so", "libcublas.so.12", "train", "(unknown)"} {
			if !o.reserves(e, lib, index) {
				continue
			}
			name := fmt.Sprint(lib, index)
			o.holdPeak[name] = max(o.holdPeak[name], o.heldBy(o.live, lib, index))
		}
	}
}

// reserves reports whether an event can raise what a library has reserved: it allocates memory that is no handle, or
// maps handles.
func (o *oracle) reserves(e trace.Event, lib string, device int16) bool {
	return e.Kind == trace.EventMap && e.Status == 0 || slices.ContainsFunc(o.live, func(b *oracleBlock) bool {
		return b.e.Seq == e.Seq && b.account == heap.AccountDriver && b.e.Mem != cuda.MemoryVMM &&
			b.e.Device == device && o.library(b.e) == lib
	})
}

// heldBy is the driver memory of a library on a device, whatever the filters are.
func (o *oracle) heldBy(blocks []*oracleBlock, lib string, device int16) uint64 {
	return sum(blocks, func(b *oracleBlock) bool {
		return b.account == heap.AccountDriver && b.e.Device == device && o.library(b.e) == lib
	})
}

// report checks the framework's counters.
func (o *oracle) report(e trace.Event) {
	if o.lib == "" && o.library(e) != "(unknown)" {
		o.lib = o.library(e)
	}
	if e.Allocated == 0 && e.Reserved == 0 || e.Flags&trace.FlagLate != 0 {
		return
	}
	d := o.device(e.Device)
	if d.Reported == nil {
		d.Reported = &report.Counter{}
	}
	d.Reported.AllocatedBytes, d.Reported.ReservedBytes = e.Allocated, e.Reserved
	d.Reported.AllocatedBytesPeak = max(d.Reported.AllocatedBytesPeak, e.Allocated)
	d.Reported.ReservedBytesPeak = max(d.Reported.ReservedBytesPeak, e.Reserved)
	if sum(o.live, func(b *oracleBlock) bool {
		return b.account == heap.AccountFramework && b.e.Device == e.Device
	}) != e.Allocated {
		o.s.Health.AllocatedMismatches++
	}
	if o.lib != "" && o.heldBy(o.live, o.lib, e.Device) != e.Reserved {
		o.s.Health.ReservedMismatches++
	}
}

// holding finds the live block of a level that holds an address; blocks that overlap are damage: the nearest beginning
// decides. -1: none.
func (o *oracle) holding(addr uint64, of func(b *oracleBlock) bool) int {
	i := -1
	for n, b := range o.live {
		if of(b) && b.e.Addr <= addr && (i < 0 || b.e.Addr > o.live[i].e.Addr) {
			i = n
		}
	}
	if i >= 0 && o.live[i].e.Addr != addr && addr >= o.live[i].e.Addr+o.live[i].e.Size {
		return -1
	}
	return i
}

// name gives a live block a name, which it had from its beginning on: one of the framework, else one of the driver. Of
// several the first of the first category counts; but a whole block of the driver has one after the other.
func (o *oracle) name(e trace.Event) {
	i := o.holding(e.Addr, func(b *oracleBlock) bool { return b.e.Level == cuda.LevelFramework })
	if i < 0 {
		i = o.holding(e.Addr, func(b *oracleBlock) bool { return heap.SpaceOf(&b.e) == heap.SpaceDevice })
	}
	if e.Addr == 0 || i < 0 || o.live[i].account != heap.AccountFramework && o.live[i].account != heap.AccountDriver ||
		o.live[i].e.Seq > e.Seq {
		return
	}
	b := o.live[i]
	old, whole := b.e.Category, b.account == heap.AccountDriver && b.e.Addr == e.Addr
	named := old != trace.CategoryNone && old != trace.CategoryFree
	if e.Category == trace.CategoryNone || e.Category == trace.CategoryFree && (!whole || old == trace.CategoryNone) ||
		!whole && named && old <= e.Category {
		return
	}
	from := map[string]string{"name": o.key(b.e, "name"), "module": o.key(b.e, "module")}
	if b.account == heap.AccountDriver && old != trace.CategoryNone { // what stood before keeps the old name
		copied := *b
		for m := range o.mappings {
			if o.mappings[m].b == b {
				o.mappings[m].b = &copied
			}
		}
		b = &copied
		o.live[i] = b
	}
	if b.e.Category, b.e.Name = e.Category, e.Name; e.Category == trace.CategoryFree {
		b.e.Name = 0
	}
	for by, from := range from {
		if b.visible && slices.Contains(o.by, by) {
			o.moveRow(b, by, from)
		}
	}
}

// moveRow takes a block's count from the row that it was in.
func (o *oracle) moveRow(b *oracleBlock, by, from string) {
	row := func(key string) *report.Row {
		name := b.account.String() + "|" + by + "|" + key
		if o.rows[name] == nil {
			o.rows[name] = &report.Row{Key: key}
		}
		return o.rows[name]
	}
	row(from).AllocCount--
	row(from).AllocBytes -= b.e.Size
	row(o.key(b.e, by)).AllocCount++
	row(o.key(b.e, by)).AllocBytes += b.e.Size
	if *row(from) == (report.Row{Key: from}) {
		delete(o.rows, b.account.String()+"|"+by+"|"+from)
	}
}

func (o *oracle) event(e trace.Event) {
	if at := o.opts.At; at.Kind == moment.Time && o.at == nil && e.Time > at.Time && e.Flags&trace.FlagLate == 0 {
		st := o.now(at.Time)
		o.at = &st
	}
	switch e.Kind {
	case trace.EventAlloc:
		o.ordinal[e.Thread]++
		o.alloc(e)
	case trace.EventFree:
		o.ordinal[e.Thread]++
		o.free(e)
	case trace.EventMap:
		o.mapHandle(e)
	case trace.EventUnmap:
		o.unmap(e)
	case trace.EventCreate:
		o.create(e)
	case trace.EventDestroy:
		o.destroy(e)
	case trace.EventReserve:
		o.reserve(e)
	case trace.EventName:
		o.name(e)
	}
	if (e.Kind == trace.EventAlloc || e.Kind == trace.EventFree) && oracleAccount(e) == heap.AccountFramework &&
		e.Status == 0 {
		o.report(e)
	}
	o.measure(e)
	o.announce(e)
	o.last = max(o.last, e.Time)
	if at := o.opts.At; at.Kind == moment.Mark && e.Kind == trace.EventMark && o.src.tables.String(e.Name) == at.Name ||
		at.Kind == moment.Step && e.Kind == trace.EventStep && e.Count == at.Step {
		st := o.now(e.Time)
		o.at = &st
	}
}

// announce keeps what the program said about itself.
func (o *oracle) announce(e trace.Event) {
	again := func(i *report.Iterations) {
		if i.Count == 0 {
			i.FirstNumber, i.FirstTimeNS = e.Count, e.Time
		}
		i.LastNumber, i.LastTimeNS = e.Count, e.Time
		i.Count++
	}
	switch e.Kind {
	case trace.EventMark:
		name := o.src.tables.String(e.Name)
		i := slices.IndexFunc(o.s.Marks, func(m report.Mark) bool { return m.Name == name })
		if i < 0 {
			i = len(o.s.Marks)
			o.s.Marks = append(o.s.Marks, report.Mark{Name: name, FirstTimeNS: e.Time})
		}
		m := &o.s.Marks[i]
		m.Count++
		m.LastTimeNS, m.DriverBytes, m.FrameworkBytes = e.Time, o.s.Driver.LiveBytes, o.s.Framework.LiveBytes
	case trace.EventStep:
		again(&o.s.Steps)
	case trace.EventEpoch:
		again(&o.s.Epochs)
	case trace.EventLaunch:
		o.s.Launches++
	case trace.EventLost:
		o.s.LostRecords += e.Count
	}
}

// newOracle returns an oracle that has seen nothing yet.
func newOracle(src *memorySource, opts Options) *oracle {
	o := &oracle{src: src, opts: opts, by: opts.Groupings,
		ordinal: map[trace.ThreadID]int{}, deviceOf: map[int16]*report.Device{}, rows: map[string]*report.Row{},
		peaks: map[string]oracleState{}, holdPeak: map[string]uint64{}, oracleObjects: newOracleObjects(),
		hist: map[heap.Account]map[int]*report.LifetimeBucket{heap.AccountDriver: {}, heap.AccountFramework: {}},
		s: &report.Summary{Other: map[string]report.Level{}, Health: report.Health{Unseen: []string{}},
			Implicit: map[string]report.ImplicitFrees{}, Objects: map[string]report.ObjectCount{},
			Lifetimes: map[string]report.LifetimeHist{}, Devices: []report.Device{}, Groups: []report.Group{},
			Ledgers: []report.Ledger{},
			Marks:   []report.Mark{}, OOM: report.OOM{Events: []report.OOMEvent{}}}}
	for _, index := range []int16{-1, 0, 1} {
		*o.device(index) = report.Device{Index: index}
		if index >= 0 {
			*o.device(index) = report.Device{Index: index, Name: "Test GPU", UUID: fmt.Sprint("GPU-", index),
				TotalBytes: 8 << 30}
		}
	}
	return o
}

// expected replays a source the slow way.
func expected(src *memorySource, opts Options) *report.Summary {
	o := newOracle(src, opts)
	for _, e := range src.events {
		o.event(e)
	}
	return o.finish()
}
