package importer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"

	"memtrace/cuda"
	"memtrace/trace"
)

const torchKind = "PyTorch memory snapshot"

// ErrNotSnapshot is returned for a pickle, or JSON, that is not a memory snapshot of PyTorch.
var ErrNotSnapshot = errors.New("the file is no memory snapshot of PyTorch (it has no segments and device_traces)")

func isTorch(file *io.SectionReader) bool { return isPickle(file) || isJSON(file) }

// isPickle checks the first instructions: a protocol, or of protocols 0 and 1 an empty dictionary with a number.
func isPickle(file *io.SectionReader) bool {
	first, _ := bufio.NewReaderSize(file, 16).Peek(3)
	return len(first) > 0 && first[0] == 0x80 || string(first) == "(dp" || len(first) > 1 && string(first[:2]) == "}q"
}

// mostSegments bounds the ranges that a device's memory may be cut into at one moment, since they are kept in order: at
// worst, an insertion moves all others. An allocator that held 256 GiB in its smallest segments would have as many.
// Tests lower it.
var mostSegments = 1 << 17

var errSegments = errors.New("the snapshot has more segments on one device than a device has room for")

// hostDevice is the device number of pinned host memory.
const hostDevice = -1

// torchImport reads a snapshot once, keeps its records in a Spill, and replays them in the order of their time. Memory
// is bounded by what was live at one moment and by distinct stacks, texts and addresses; besides, each thing that the
// pickle numbers takes 4 bytes.
type torchImport struct {
	torchValues
	spills   spills
	thread   trace.ThreadID
	base     int64 // microseconds
	devices  map[int16]*torchDevice
	notes    *spill // ranges that the program named
	taken    int    // segments
	settings allocatorSettings
	events   int

	inexact, unknown, older int
	stateless, far          int  // blocks of unknown state; records and segments of devices that a trace does not have
	backwards, differing    int  // records that are older than those before; blocks that the end of the snapshot denies
	recorded, timeless      bool // there is a history; its records have no times
	last                    int64
	hosted, ours            bool
	apart                   bool // devices have separate address spaces
}

// torchDevice is the state of one device while its history is replayed.
type torchDevice struct {
	index    int16
	history  *spill
	before   torchBefore
	blocks   *blocks
	live     map[uint64]uint64 // block -> size
	segments pieces            // what the driver gave
	records  uint64            // replayed

	allocated, reserved uint64
}

// readTorch imports what torch.cuda.memory._dump_snapshot writes, or the list that torch.cuda.memory_snapshot()
// returns,
// as a pickle or as JSON.
func readTorch(out *trace.Writer, file *io.SectionReader, o Options) (Result, error) {
	t := &torchImport{spills: spills{file: o.Spill}, base: math.MaxInt64, devices: map[int16]*torchDevice{}}
	if t.spills.file == nil {
		t.spills.file = &memorySpill{}
	}
	t.out = NewBuilder(out, trace.Info{KindKey: torchKind, "framework.torch": "(memory snapshot)"})
	t.thread = t.out.Thread("PyTorch (threads are not in a snapshot)")
	t.notes = &spill{to: &t.spills}
	t.u, t.codes, t.stacks = newUnpickler(file), map[BuilderFrame]uint32{}, map[string]stackRef{}
	t.u.to = t
	read := t.u.read
	if isJSON(file) {
		read = newJSON(io.NewSectionReader(file, 0, file.Size()), t).read
	}
	v, err := read()
	if err != nil {
		return Result{}, err
	}
	switch root := v.(type) {
	case *list: // what torch.cuda.memory_snapshot() returns
		if t.taken == 0 {
			return Result{}, ErrNotSnapshot
		}
	case *dict:
		_, ok1 := root.get("segments").(*list)
		_, ok2 := root.get("device_traces").(*list)
		if !ok1 || !ok2 {
			return Result{}, ErrNotSnapshot
		}
		t.ours = root.get(writerKey) != nil
		if d, ok := root.get("allocator_settings").(*dict); ok {
			t.settings = readSettings(d)
		}
	default:
		return Result{}, ErrNotSnapshot
	}
	t.u = nil // nothing is needed of it any more
	return t.replay()
}

// get returns the value of a key; nil without the key or a dictionary.
func (d *dict) get(key string) any {
	if d == nil {
		return nil
	}
	for i := len(d.pairs) - 2; i >= max(0, len(d.pairs)-2*maxKeys); i -= 2 {
		if text(d.pairs[i]) == key {
			return d.pairs[i+1]
		}
	}
	return nil
}

// filled implements taker: items of the snapshot's own lists are taken in and dropped.
func (t *torchImport) filled(stack []any, l *list) error {
	key, outer, nested := place(stack)
	if key == "" {
		return nil
	}
	device := int16(hostDevice)
	switch key {
	case "segments", "host_segments", "host_traces", "external_annotations":
		if nested != 0 {
			return nil
		}
	case "device_traces":
		if nested == 0 { // the devices
			return nil
		}
		device = int16(min(outer.taken+len(outer.items)+nested-1, math.MaxInt16))
	default:
		if nested == 0 { // of no interest
			drop(l)
		}
		return nil
	}
	for _, v := range l.items {
		if err := t.take(key, device, v); err != nil {
			return err
		}
	}
	drop(l)
	return nil
}

func drop(l *list) {
	l.taken += len(l.items)
	clear(l.items)
	l.items = l.items[:0]
}

// place returns where the list on the top of a stack belongs: the key of the outermost dictionary, and whether the list
// is that key's value (nested is 0) or how deeply it is nested in it.
func place(stack []any) (key string, outer *list, nested int) {
	switch root := stack[0].(type) {
	case *dict:
	case *list: // of segments, unless this is one inside of them
		if len(stack) == 1 {
			return "segments", root, 0
		}
		return "", nil, 0
	default:
		return "", nil, 0
	}
	at := 1
	if len(stack) > at && stack[at] == any(mark{}) {
		at++
	}
	for ; at+1 < len(stack); at += 2 {
		key, _ = stack[at].(string)
		if at+2 == len(stack) {
			break
		}
		if _, more := stack[at+2].(string); !more {
			break
		}
	}
	if at+1 >= len(stack) || key == "" {
		return "", nil, 0
	}
	outer, ok := stack[at+1].(*list)
	if !ok {
		return "", nil, 0
	}
	for _, v := range stack[at+2:] {
		switch v.(type) {
		case mark:
		case *list:
			nested++
		default: // inside of a record
			return "", nil, 0
		}
	}
	return key, outer, nested
}

// take takes in an item of one of the snapshot's lists.
func (t *torchImport) take(key string, device int16, v any) error {
	switch v := v.(type) {
	case *segment:
		if v.wrong != "" {
			return damaged(v.wrong)
		}
		t.taken++
		t.stateless += v.unknown
		switch {
		case key == "segments" && (v.device < 0 || v.device >= maxDevices):
			t.far++
		case key == "segments":
			t.device(int16(v.device)).before.ended(v)
		case key == "host_segments":
			t.hosted = true
			t.device(hostDevice).before.ended(v)
		}
		return nil
	case *entry:
		switch {
		case v.wrong != "":
			return damaged(v.wrong)
		case v.beside:
			return nil
		case device >= maxDevices:
			t.far++
			return nil
		}
		return t.entry(key, device, v)
	}
	t.unknown++
	return nil
}

func (t *torchImport) entry(key string, device int16, e *entry) error {
	if e.time != 0 {
		t.base = min(t.base, e.time)
	}
	switch key {
	case "external_annotations":
		return t.notes.add(e)
	case "device_traces", "host_traces":
		t.hosted = t.hosted || device == hostDevice
		d := t.device(device)
		if d.before.observe(e); len(d.before.covered) > mostSegments {
			return errSegments
		}
		return d.history.add(e)
	}
	return nil
}

func (t *torchImport) device(index int16) *torchDevice {
	d := t.devices[index]
	if d == nil {
		d = &torchDevice{index: index, history: &spill{to: &t.spills}, before: newTorchBefore(), blocks: newBlocks(),
			live: map[uint64]uint64{}}
		t.devices[index] = d
	}
	return d
}

// lacks returns what the trace does not hold.
func (t *torchImport) lacks() []string {
	lacks := []string{
		"The snapshot was exported from a trace of memtrace: it holds device memory, its blocks and Python frames, no other memory, no tags, no threads."}
	if !t.ours {
		lacks[0] =
			"The snapshot holds what PyTorch's caching allocator did: no memory of CUDA contexts, libraries or other allocators, no threads."
	}
	if !t.recorded {
		lacks = append(lacks,
			"It holds no history: figures are those of its one moment (call torch.cuda.memory._record_memory_history() first).")
	} else if t.older > 0 {
		lacks = append(lacks,
			fmt.Sprintf("The history begins late: of blocks that are older (%d), those freed in it have no call stack.",
				t.older))
	}
	if t.hosted {
		lacks = append(lacks, "Pinned host memory is what PyTorch pinned, not what it handed out of that.")
	}
	if t.inexact > 0 {
		lacks = append(lacks,
			fmt.Sprintf(
				"Of blocks cut from segments older than the history (%d), the size is the request, rounded up to %d bytes.", t.inexact, blockUnit))
	}
	lacks = append(lacks, sentences(
		counted{t.stateless, "Blocks of an unknown state were left out: %d."},
		counted{t.far, "Records and segments of devices that are not numbered from 0 to 255 were left out: %d."},
		counted{t.backwards, "Records whose time is before that of the one above: %d; they count at the time of the latest one."},
		counted{t.differing, "Blocks of which the history and the segments say different things: %d; the figures are the history's."})...)
	if t.timeless {
		lacks = append(lacks, "Its records have no times: all are taken to be of one moment, in their order.")
	}
	if t.unknown > 0 {
		lacks = append(lacks, fmt.Sprintf("Records of unknown kind were left out: %d.", t.unknown))
	}
	return lacks
}

// emit writes an event of a device or of pinned host memory.
func (t *torchImport) emit(d *torchDevice, kind trace.EventKind, level cuda.Level, addr, size uint64, e *entry) {
	event := trace.Event{Kind: kind, Level: level, Mem: cuda.MemoryDevice, Device: d.index, Addr: addr, Size: size,
		Stream: e.stream, Thread: t.thread, Time: t.time(e), Stack: e.stack.native, PyStack: e.stack.python,
		Tag: e.tag}
	if d.index == hostDevice {
		event.Mem = cuda.MemoryHost
	}
	if t.apart {
		event.Addr += uint64(d.index-hostDevice) * deviceRoom
	}
	if level == cuda.LevelFramework {
		event.Allocated, event.Reserved = d.allocated, d.reserved
		if kind == trace.EventAlloc && e.size > 0 && e.size <= size {
			event.Rest = 1 + size - e.size
		}
	}
	t.out.Event(event)
	t.events++
}

// time returns nanoseconds since the first record. It never runs backwards.
func (t *torchImport) time(e *entry) int64 {
	if e.time > t.base {
		if at := min(e.time-t.base, math.MaxInt64/1000) * 1000; at >= t.last {
			t.last = at
		} else {
			t.backwards++
		}
	} else if e.time != 0 && t.last > 0 {
		t.backwards++
	}
	return t.last
}
