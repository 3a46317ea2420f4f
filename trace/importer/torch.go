// Package importer turns what other tools recorded into traces. Each kind of file has a file of its own here.
package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"memtrace/cuda"
	"memtrace/trace"
	"memtrace/trace/build"
)

// Keys of facts about an imported trace.
const (
	KindKey  = "import.kind"  // what the trace was made from
	LacksKey = "import.lacks" // what that does not hold, as a sentence
)

// ErrNotSnapshot is returned for a pickle that is no memory snapshot of PyTorch.
var ErrNotSnapshot = errors.New("the pickle is no memory snapshot of PyTorch (it has no segments and device_traces)")

// Result says what an import found.
type Result struct {
	Events int
	Lacks  []string // sentences
}

// entry is one record of a device's history.
type entry struct {
	action             string
	addr, size, stream uint64
	time               int64 // microseconds
	device             int16
	fields             *dict
}

type torchImport struct {
	out     *build.Builder
	thread  trace.ThreadID
	base    int64 // microseconds
	stacks  map[*list]trace.StackID
	devices map[int16]*torchDevice
	result  Result

	inexact, native, unknown int
}

// torchDevice is the state of one device while its history is replayed.
type torchDevice struct {
	index    int16
	blocks   *blocks
	live     map[uint64]uint64 // block -> size
	end      map[uint64]liveBlock
	segments map[uint64]uint64 // what the driver gave: address -> size

	allocated, reserved uint64
}

type liveBlock struct {
	size, request, stream uint64
	frames                any
	allocated             bool // in use by the program, not only waiting for a stream
}

// Torch imports a pickle written by torch.cuda.memory._dump_snapshot. The snapshot is held in memory while it is
// replayed.
func Torch(out *trace.Writer, r io.Reader) (Result, error) {
	v, err := unpickle(r)
	if err != nil {
		return Result{}, err
	}
	root, _ := v.(*dict)
	segments, ok1 := root.get("segments").(*list)
	traces, ok2 := root.get("device_traces").(*list)
	if !ok1 || !ok2 {
		return Result{}, ErrNotSnapshot
	}
	t := &torchImport{stacks: map[*list]trace.StackID{}, devices: map[int16]*torchDevice{}}
	history := t.history(traces)
	if len(history) > 0 {
		t.base = history[0].time
	}
	lacks := t.lacks(root, history)
	t.out = build.New(out, trace.Info{KindKey: "PyTorch memory snapshot", "framework.torch": "(memory snapshot)", "adapter.torch.streams": "on", LacksKey: strings.Join(lacks, " "), "clock.base_unix_ns": fmt.Sprint(t.base * 1000)})
	t.thread = t.out.Thread("PyTorch (threads are not in a snapshot)")
	ended := t.endState(segments)
	t.begin(history, ended)
	for i := range history {
		t.replay(&history[i])
	}
	t.result.Lacks = lacks
	if t.inexact > 0 {
		t.result.Lacks = append(t.result.Lacks, fmt.Sprintf("%d blocks were cut from segments older than the history: their sizes are the requests, rounded up to %d bytes.", t.inexact, blockUnit))
	}
	if t.unknown > 0 {
		t.result.Lacks = append(t.result.Lacks, fmt.Sprintf("%d records of unknown kind were left out.", t.unknown))
	}
	return t.result, t.out.Close()
}

func (t *torchImport) lacks(root *dict, history []entry) []string {
	lacks := []string{"The snapshot holds what PyTorch's caching allocator did: no memory of CUDA contexts, libraries or other allocators, no threads, no native frames."}
	if len(history) == 0 {
		lacks = append(lacks, "It holds no history: figures are those of its one moment (call torch.cuda.memory._record_memory_history() first).")
	}
	if host, _ := root.get("host_traces").(*list); host != nil && len(host.items) > 0 {
		lacks = append(lacks, "Its pinned host memory was left out.")
	}
	return lacks
}

func integer(v any) int64 {
	n, _ := v.(int64)
	return n
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// history puts the records of all devices in the order of their time.
func (t *torchImport) history(traces *list) []entry {
	var all []entry
	for i, v := range traces.items {
		records, _ := v.(*list)
		if records == nil || i > 255 {
			continue
		}
		for _, v := range records.items {
			d, _ := v.(*dict)
			if d == nil {
				continue
			}
			addr := d.get("addr")
			all = append(all, entry{text(d.get("action")), uint64(integer(addr)), uint64(integer(d.get("size"))), uint64(integer(d.get("stream"))),
				integer(d.get("time_us")), int16(i), d})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.time, b.time) })
	return all
}

func (t *torchImport) device(index int16) *torchDevice {
	d := t.devices[index]
	if d == nil {
		d = &torchDevice{index: index, blocks: newBlocks(), live: map[uint64]uint64{}, end: map[uint64]liveBlock{}, segments: map[uint64]uint64{}}
		t.devices[index] = d
	}
	return d
}

// endState reads what stood when the snapshot was taken.
func (t *torchImport) endState(segments *list) map[int16][]blockSegment {
	found := map[int16][]blockSegment{}
	seen := map[*list]bool{}
	for _, v := range segments.items {
		s, _ := v.(*dict)
		if s == nil {
			continue
		}
		index := integer(s.get("device"))
		if index < 0 || index > 255 {
			continue
		}
		d := t.device(int16(index))
		start, size := uint64(integer(s.get("address"))), uint64(integer(s.get("total_size")))
		expandable, _ := s.get("is_expandable").(bool)
		found[d.index] = append(found[d.index], blockSegment{start: start, end: start + size, small: text(s.get("segment_type")) == "small", expandable: expandable})
		list, _ := s.get("blocks").(*list)
		if list != nil && seen[list] { // PyTorch's segments share none; a file that lets them would take quadratic time
			t.unknown++
			continue
		}
		seen[list] = true
		at := start
		for _, v := range items(list) {
			b, _ := v.(*dict)
			if n := uint64(integer(b.get("address"))); n != 0 {
				at = n
			}
			size, state := uint64(integer(b.get("size"))), text(b.get("state"))
			if strings.HasPrefix(state, "active") {
				d.end[at] = liveBlock{size, uint64(integer(b.get("requested_size"))), uint64(integer(s.get("stream"))), b.get("frames"), state == "active_allocated"}
			}
			at += size
		}
	}
	return found
}

func items(l *list) []any {
	if l == nil {
		return nil
	}
	return l.items
}

// begin writes what stood before the history: its end, with the history taken back.
func (t *torchImport) begin(history []entry, ended map[int16][]blockSegment) {
	before := map[int16]map[uint64]liveBlock{}
	for index, d := range t.devices {
		before[index] = map[uint64]liveBlock{}
		for addr, b := range d.end {
			if b.allocated {
				before[index][addr] = b
			}
		}
		for _, s := range ended[index] {
			d.segments[s.start] = s.end - s.start
		}
	}
	for i := len(history) - 1; i >= 0; i-- {
		e := &history[i]
		d := t.device(e.device)
		if before[e.device] == nil {
			before[e.device] = map[uint64]liveBlock{}
		}
		switch e.action {
		case "alloc":
			delete(before[e.device], e.addr)
		case "free_requested":
			before[e.device][e.addr] = liveBlock{size: round(e.size), request: e.size, stream: e.stream}
		case "segment_alloc":
			delete(d.segments, e.addr)
		case "segment_free":
			d.segments[e.addr] = e.size
		case "segment_map":
			d.unmap(e.addr, e.size)
		case "segment_unmap":
			d.segments[e.addr] = e.size
		}
	}
	for _, index := range sorted(t.devices) {
		d := t.devices[index]
		for _, addr := range sorted(d.segments) {
			size := d.segments[addr]
			d.reserved += size
			t.emit(d, trace.EventAlloc, cuda.LevelDriver, addr, size, entry{}, 0)
			d.blocks.addSegment(blockSegment{start: addr, end: addr + size, small: size == smallSeg})
		}
		for _, addr := range sorted(before[index]) {
			b := before[index][addr]
			d.blocks.taken[addr] = b.size
			d.live[addr] = b.size
			d.allocated += b.size
			t.emit(d, trace.EventAlloc, cuda.LevelFramework, addr, b.size, entry{size: b.request, stream: b.stream}, t.stack(b.frames))
		}
	}
}

func sorted[K interface{ ~int16 | ~uint64 }, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// unmap takes a range of an expandable segment away, with what of the mapping lies beside it kept.
func (d *torchDevice) unmap(addr, size uint64) (at, whole uint64) {
	for start, n := range d.segments {
		if start <= addr && addr+size <= start+n {
			delete(d.segments, start)
			if addr > start {
				d.segments[start] = addr - start
			}
			if end := start + n; end > addr+size {
				d.segments[addr+size] = end - addr - size
			}
			return start, n
		}
	}
	return 0, 0
}

func (t *torchImport) emit(d *torchDevice, kind trace.EventKind, level cuda.Level, addr, size uint64, e entry, stack trace.StackID) {
	event := trace.Event{Kind: kind, Level: level, Mem: cuda.MemoryDevice, Device: d.index, Addr: addr, Size: size, Stream: e.stream, Thread: t.thread, PyStack: stack}
	if e.time != 0 {
		event.Time = (e.time - t.base) * 1000
	}
	if level == cuda.LevelFramework {
		event.Allocated, event.Reserved = d.allocated, d.reserved
		if kind == trace.EventAlloc && e.size > 0 && e.size <= size {
			event.Rest = 1 + size - e.size
		}
	}
	t.out.Event(event)
	t.result.Events++
}

func (t *torchImport) replay(e *entry) {
	d := t.device(e.device)
	stack := t.stack(e.fields.get("frames"))
	switch e.action {
	case "alloc":
		size, exact := d.blocks.alloc(e.addr, e.size)
		if !exact {
			t.inexact++
		}
		d.live[e.addr] = size
		d.allocated += size
		t.emit(d, trace.EventAlloc, cuda.LevelFramework, e.addr, size, *e, stack)
	case "free_requested":
		size, ok := d.live[e.addr]
		if !ok {
			return
		}
		delete(d.live, e.addr)
		d.allocated -= size
		t.emit(d, trace.EventFree, cuda.LevelFramework, e.addr, size, *e, stack)
	case "free_completed":
		d.blocks.release(e.addr)
	case "segment_alloc", "segment_map":
		d.segments[e.addr] = e.size
		d.reserved += e.size
		d.blocks.addSegment(blockSegment{start: e.addr, end: e.addr + e.size, small: e.size == smallSeg, known: e.action == "segment_alloc"})
		t.emit(d, trace.EventAlloc, cuda.LevelDriver, e.addr, e.size, *e, stack)
	case "segment_free":
		delete(d.segments, e.addr)
		d.reserved -= min(d.reserved, e.size)
		d.blocks.removeSegment(e.addr)
		t.emit(d, trace.EventFree, cuda.LevelDriver, e.addr, e.size, *e, stack)
	case "segment_unmap":
		t.unmapped(d, e, stack)
	case "oom":
		t.out.Event(trace.Event{Kind: trace.EventOOM, Level: cuda.LevelFramework, Device: d.index, Size: e.size, Time: (e.time - t.base) * 1000, Thread: t.thread, PyStack: stack,
			Allocated: d.allocated, Reserved: d.reserved})
		t.result.Events++
	default:
		t.moment(e)
	}
}

// unmapped gives a mapping back and what is left of it out again, since a trace's blocks end whole.
func (t *torchImport) unmapped(d *torchDevice, e *entry, stack trace.StackID) {
	start, whole := d.unmap(e.addr, e.size)
	if whole == 0 {
		return
	}
	d.reserved -= min(d.reserved, e.size)
	t.emit(d, trace.EventFree, cuda.LevelDriver, start, whole, *e, stack)
	for _, part := range [][2]uint64{{start, e.addr - start}, {e.addr + e.size, start + whole - e.addr - e.size}} {
		if part[1] > 0 {
			t.emit(d, trace.EventAlloc, cuda.LevelDriver, part[0], part[1], *e, stack)
		}
	}
}

// moment turns records that move no memory into marks.
func (t *torchImport) moment(e *entry) {
	switch e.action {
	case "snapshot", "workspace_snapshot", "user_defined", "annotate":
	default:
		t.unknown++
		return
	}
	name := e.action
	if said := text(e.fields.get("user_metadata")); said != "" {
		name += ": " + said
	}
	t.out.Event(trace.Event{Kind: trace.EventMark, Time: (e.time - t.base) * 1000, Thread: t.thread, Name: t.out.String(name)})
	t.result.Events++
}

var nativeSources = []string{"", ".c", ".cc", ".cpp", ".cxx", ".cu", ".h", ".hpp", ".S"}

// stack interns the Python frames of a record; native ones have no addresses there and are left out.
func (t *torchImport) stack(v any) trace.StackID {
	l, _ := v.(*list)
	if l == nil {
		return 0
	}
	if id, ok := t.stacks[l]; ok {
		return id
	}
	var frames []build.Frame
	for _, v := range l.items {
		f, _ := v.(*dict)
		file, line := text(f.get("filename")), integer(f.get("line"))
		if line <= 0 || line > 1<<30 || !strings.HasPrefix(file, "<") && slices.Contains(nativeSources, path.Ext(file)) {
			t.native++
			continue
		}
		frames = append(frames, build.Frame{File: file, Function: text(f.get("name")), Line: int32(line)})
	}
	id := t.out.PyStack(frames)
	t.stacks[l] = id
	return id
}
