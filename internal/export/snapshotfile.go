package export

import (
	"bufio"
	"cmp"
	"slices"
	"strconv"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// Keys that PyTorch's snapshots do not have, and that their readers ignore. package importer reads them.
const (
	writerKey    = "memtrace"            // of the snapshot: its writer
	foreignKey   = "memtrace_driver"     // of blocks and entries: driver memory outside of the framework
	blockSizeKey = "memtrace_block_size" // of entries: bytes of the block; "size" is the requested size
	virtualKey   = "memtrace_no_segment" // of segments: there is none, but a block needs one
	orderKey     = "memtrace_order"      // of entries: the order of all devices' entries
)

// unmappedAddress is the address of handles that were never mapped: beyond all addresses, and exact in a browser's
// numbers.
const unmappedAddress = 1 << 51

// snapshotFile writes a watch as a pickle.
type snapshotFile struct {
	p        *pickler
	w        *snapshotWatch
	followed *analyzer.Followed
	full     bool
	writer   string

	library string               // of the framework's allocator
	stacks  map[stackFrom]uint32 // what was written: the number of its list
	devices int                  // how many have a list
	present map[int16]bool
	base    int64  // microseconds
	order   uint64 // of the entry that is being written
}

// stackFrom is a call stack; for memory outside of the framework the library that allocated it comes first.
type stackFrom struct {
	native, python trace.StackID
	foreign        bool
}

func newSnapshotFile(out *bufio.Writer, w *snapshotWatch, followed *analyzer.Followed, o *Options) *snapshotFile {
	f := &snapshotFile{p: newPickler(out), w: w, followed: followed, full: o.Full, writer: o.Writer,
		stacks: make(map[stackFrom]uint32), devices: 1, present: make(map[int16]bool)}
	if w.known {
		f.library = followed.Library(w.framework)
	}
	if ns, err := strconv.ParseInt(w.names.Info()["clock.base_unix_ns"], 10, 64); err == nil && ns > 0 {
		f.base = ns / 1000
	}
	for _, a := range []heap.Account{heap.AccountDriver, heap.AccountFramework} {
		for _, b := range w.blocks[a] {
			f.devices = max(f.devices, int(b.device)+1)
		}
	}
	w.each(func(e *snapshotEntry) {
		f.devices, f.present[e.block.device] = max(f.devices, int(e.block.device)+1), true
	})
	return f
}

// foreign reports whether driver memory is not the framework's allocator's.
func (f *snapshotFile) foreign(b *snapshotBlock) bool {
	return !f.w.known || f.followed.Library(b.stack) != f.library
}

func (f *snapshotFile) write() {
	segments := f.segments()
	f.p.dict(func() {
		f.p.words(writerKey, f.writer)
		f.p.word("segments")
		f.p.list(len(segments), func(i int) { f.segment(&segments[i]) })
		f.p.word("device_traces")
		f.p.list(f.devices, f.history)
		f.p.word("allocator_settings")
		f.p.dict(func() {
			f.p.word("expandable_segments")
			f.p.boolean(slices.ContainsFunc(segments, func(s snapshotSegment) bool { return s.handle && !s.foreign }))
		})
	})
	f.p.op(pickleStop)
}

// place returns the address of a block.
func (b *snapshotBlock) place() uint64 {
	if b.handle && !b.mapped {
		return unmappedAddress + b.addr%unmappedAddress
	}
	return b.addr
}

// history writes the entries of a device.
func (f *snapshotFile) history(device int) {
	f.p.op(pickleList)
	if f.order = 0; !f.present[int16(device)] {
		return
	}
	f.w.each(func(e *snapshotEntry) {
		f.order++
		if int(e.block.device) == device {
			f.entry(e)
		}
	})
}

var actionNames = [...][]string{
	actionAlloc: {"alloc"}, actionFree: {"free_requested", "free_completed"}, actionSegmentAlloc: {"segment_alloc"},
	actionSegmentFree: {"segment_free"},
	actionSegmentMap:  {"segment_map"}, actionSegmentUnmap: {"segment_unmap"}, actionOOM: {"oom"},
	actionMark: {"user_defined"},
}

// entry writes an event as PyTorch's actions. Memory outside of the framework appears and disappears as a segment with
// one block.
func (f *snapshotFile) entry(e *snapshotEntry) {
	b := &e.block
	framework := e.action == actionAlloc || e.action == actionFree
	segment := e.action >= actionSegmentAlloc && e.action <= actionSegmentUnmap
	foreign := segment && f.foreign(b)
	begins := e.action == actionSegmentAlloc || e.action == actionSegmentMap
	if foreign && !begins {
		f.record(e, "free_requested", true, true)
		f.record(e, "free_completed", true, true)
	}
	for _, name := range actionNames[e.action] {
		f.record(e, name, foreign, framework)
	}
	if foreign && begins {
		f.record(e, "alloc", true, true)
	}
}

// record writes one entry. Only blocks are marked as foreign: the segment is driver memory like any other.
func (f *snapshotFile) record(e *snapshotEntry, action string, foreign, block bool) {
	b := &e.block
	f.p.op(pickleMark)
	f.p.dict(func() {
		f.p.words("action", action)
		switch e.action {
		case actionOOM:
			f.p.field("device_free", 0)
		case actionMark:
			f.p.words("user_metadata", f.followed.Text(e.name))
		}
		f.p.field("addr", b.place())
		f.p.field("size", e.size)
		f.p.field("stream", b.stream)
		f.p.field("time_us", uint64(max(f.base+e.time/1000, 0)))
		f.frames("frames", b, foreign)
		if block {
			f.p.field(blockSizeKey, b.size)
		}
		if block && foreign {
			f.p.word(foreignKey)
			f.p.boolean(true)
		}
		if f.devices > 1 {
			f.p.field(orderKey, f.order)
		}
	})
	f.p.op(pickleAppends)
}

// frames writes a call stack, innermost frame first; equal stacks are written once.
func (f *snapshotFile) frames(key string, b *snapshotBlock, foreign bool) {
	f.p.word(key)
	from := stackFrom{b.stack, b.pystack, foreign}
	if n, known := f.stacks[from]; known {
		f.p.again(n)
		return
	}
	list := f.followed.Frames(b.stack, b.pystack, f.full)
	extra := 0
	if foreign {
		extra = 1
	}
	f.p.list(len(list)+extra, func(i int) {
		if i < extra {
			f.frame("[beside the framework's allocator]", cmp.Or(f.followed.Library(b.stack), report.UnknownLibrary), 0)
			return
		}
		frame := &list[i-extra]
		f.frame(frame.Name(), cmp.Or(frame.File, frame.Module), max(frame.Line, 0))
	})
	f.stacks[from] = f.p.remember()
}

func (f *snapshotFile) frame(name, file string, line int) {
	f.p.dict(func() {
		f.p.words("name", name)
		f.p.words("filename", file)
		f.p.field("line", uint64(line))
	})
}
