package importer

import (
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strings"

	"memtrace/trace"
	"memtrace/trace/build"
)

// What a snapshot's dictionaries and lists become as soon as they are whole.
type (
	// stackRef is a list of frames.
	stackRef trace.StackID
	// pair is a tuple of two numbers, such as the id of a pool.
	pair [2]int64

	// frame is a Python frame, or a native one, which has no address and is left out of stacks.
	frame struct {
		build.Frame
		id     uint32
		native bool
	}
	// entry is one record of a history.
	entry struct {
		action             action
		addr, size, stream uint64
		block              uint64 // bytes of the block, where memtrace wrote the snapshot; 0 unknown
		time               int64  // microseconds
		order              int64  // among those of all devices at one time, where memtrace wrote the snapshot
		beside             bool   // its segment says all of it
		stack              trace.StackID
		tag                trace.StringID // of a mark: its name
	}
	// block is one of a segment's.
	block struct {
		addr, size, request uint64
		stack               trace.StackID
		active, allocated   bool // active without allocated: waiting for a stream
		beside              bool // its segment says all of it
	}
	segment struct {
		device             int64
		addr, size, stream uint64
		small, expandable  bool
		virtual            bool // there is none, but its blocks are
		stack              trace.StackID
		tag                trace.StringID
		blocks             []block
	}
)

type action uint8

// The actions of a history.
const (
	actionUnknown action = iota
	actionAlloc
	actionFreeRequested
	actionFreeCompleted
	actionSegmentAlloc
	actionSegmentFree
	actionSegmentMap
	actionSegmentUnmap
	actionOOM
	actionMark
)

var actions = map[string]action{"alloc": actionAlloc, "free_requested": actionFreeRequested,
	"free_completed": actionFreeCompleted,
	"segment_alloc":  actionSegmentAlloc, "segment_free": actionSegmentFree, "segment_map": actionSegmentMap,
	"segment_unmap": actionSegmentUnmap,
	"oom":           actionOOM, "snapshot": actionMark, "workspace_snapshot": actionMark, "user_defined": actionMark,
	"annotate": actionMark}

// torchValues turns what an unpickler reads into facts. Memory is bounded by distinct frames, stacks and texts.
type torchValues struct {
	u      *unpickler
	out    *build.Builder
	codes  map[build.Frame]uint32
	frames []*frame
	stacks map[string]trace.StackID
	key    []byte
}

// maxKeys bounds the pairs of a dictionary that are looked at. Records of PyTorch have about twenty.
const maxKeys = 512

func integer(v any) int64 {
	n, _ := v.(int64)
	return n
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// stackOf is the stack that a list of frames has become.
func stackOf(v any) trace.StackID {
	ref, _ := v.(stackRef)
	return trace.StackID(ref)
}

// fields yields the values of a dictionary with their keys, "" for a key that is no text.
func (d *dict) fields(yield func(key string, v any) bool) {
	for i := 0; i < len(d.pairs); i += 2 {
		if !yield(text(d.pairs[i]), d.pairs[i+1]) {
			return
		}
	}
}

// finish implements taker.
func (t *torchValues) finish(v any) any {
	switch v := v.(type) {
	case *dict:
		return t.dict(v)
	case *list:
		if len(v.items) != 2 || v.taken > 0 {
			return v
		}
		a, ok1 := v.items[0].(int64)
		b, ok2 := v.items[1].(int64)
		if ok1 && ok2 {
			t.u.memo.become(v.number, pair{a, b})
			return pair{a, b}
		}
	}
	return v
}

// dict recognizes a dictionary by its keys.
func (t *torchValues) dict(d *dict) any {
	if len(d.pairs) > 2*maxKeys {
		return d
	}
	var has struct{ action, state, blocks, stage, filename bool }
	for i := 0; i < len(d.pairs); i += 2 {
		switch text(d.pairs[i]) {
		case "frames":
			if l, ok := d.pairs[i+1].(*list); ok {
				d.pairs[i+1] = t.stack(l)
			}
		case "action":
			has.action = true
		case "state":
			has.state = true
		case "blocks":
			has.blocks = true
		case "stage":
			has.stage = true
		case "filename":
			has.filename = true
		}
	}
	var made any
	switch {
	case has.action:
		made = t.entry(d)
	case has.state:
		made = t.block(d)
	case has.blocks:
		made = t.segment(d)
	case has.stage:
		made = t.annotation(d)
	case has.filename:
		f := t.frame(d)
		t.u.memo.become(d.number, f)
		return f
	default:
		return d
	}
	t.u.memo.become(d.number, nil)
	return made
}

func (t *torchValues) entry(d *dict) *entry {
	e := &entry{}
	var name, said, context string
	var pool pair
	for key, v := range d.fields {
		switch key {
		case "action":
			name = text(v)
			e.action = actions[name]
		case "addr":
			e.addr = uint64(integer(v))
		case "size":
			e.size = uint64(integer(v))
		case "stream":
			e.stream = uint64(integer(v))
		case "time_us":
			e.time = integer(v)
		case blockSizeKey:
			e.block = uint64(integer(v))
		case orderKey:
			e.order = integer(v)
		case besideKey:
			e.beside, _ = v.(bool)
		case "user_metadata":
			said = text(v)
		case "compile_context":
			context = text(v)
		case "pool_id":
			pool, _ = v.(pair)
		case "frames":
			e.stack = stackOf(v)
		}
	}
	if e.action == actionMark {
		if said != "" {
			name += ": " + said
		}
		e.tag = t.out.String(name)
		return e
	}
	e.tag = t.tag(pool, said, context)
	return e
}

// tag is the path of a private pool, what the program noted down, and which compilation asked.
func (t *torchValues) tag(pool pair, said, context string) trace.StringID {
	var parts []string
	if pool != (pair{}) {
		parts = append(parts, fmt.Sprintf("private pool %d:%d", pool[0], pool[1]))
	}
	if context != "" && context != "N/A" {
		parts = append(parts, "compiled "+context)
	}
	if said != "" {
		parts = append(parts, said)
	}
	return t.out.String(strings.Join(parts, "."))
}

func (t *torchValues) block(d *dict) *block {
	b := &block{}
	for key, v := range d.fields {
		switch key {
		case "address":
			b.addr = uint64(integer(v))
		case "size":
			b.size = uint64(integer(v))
		case "requested_size":
			b.request = uint64(integer(v))
		case besideKey:
			b.beside, _ = v.(bool)
		case "state":
			b.active, b.allocated = strings.HasPrefix(text(v), "active"), text(v) == "active_allocated"
		case "frames":
			b.stack = stackOf(v)
		}
	}
	return b
}

func (t *torchValues) segment(d *dict) *segment {
	s := &segment{}
	for key, v := range d.fields {
		switch key {
		case "device":
			s.device = integer(v)
		case "address":
			s.addr = uint64(integer(v))
		case "total_size":
			s.size = uint64(integer(v))
		case "stream":
			s.stream = uint64(integer(v))
		case "segment_type":
			s.small = text(v) == "small"
		case "is_expandable":
			s.expandable, _ = v.(bool)
		case virtualKey:
			s.virtual, _ = v.(bool)
		case "segment_pool_id":
			pool, _ := v.(pair)
			s.tag = t.tag(pool, "", "")
		case "frames":
			s.stack = stackOf(v)
		case "blocks":
			if l, ok := v.(*list); ok {
				s.blocks = t.blocks(l)
			}
		}
	}
	return s
}

// blocks takes a list of blocks in. A block without an address lies behind the one before.
func (t *torchValues) blocks(l *list) []block {
	var found []block
	for _, v := range l.items {
		if b, ok := v.(*block); ok && b.active && !b.beside {
			found = append(found, *b)
		} else if ok {
			found = append(found, block{addr: b.addr, size: b.size})
		}
	}
	t.u.memo.become(l.number, nil)
	l.items = nil
	return found
}

// annotation is a range that torch.profiler.record_function named, at its begin or end.
func (t *torchValues) annotation(d *dict) *entry {
	e := &entry{action: actionMark}
	var stage, name string
	for key, v := range d.fields {
		switch key {
		case "stage":
			stage = text(v)
		case "name":
			name = text(v)
		case "time_us":
			e.time = integer(v)
		}
	}
	if stage == "END" {
		name = "end of " + name
	}
	e.tag = t.out.String(name)
	return e
}

var nativeSources = []string{"", ".c", ".cc", ".cpp", ".cxx", ".cu", ".h", ".hpp", ".S"}

func (t *torchValues) frame(d *dict) *frame {
	var f build.Frame
	var line int64
	for key, v := range d.fields {
		switch key {
		case "filename":
			f.File = text(v)
		case "name":
			f.Function = text(v)
		case "line":
			line = integer(v)
		}
	}
	native := line <= 0 || line > 1<<30 || !strings.HasPrefix(f.File, "<") &&
		slices.Contains(nativeSources, path.Ext(f.File))
	f.Line = int32(min(max(line, 0), 1<<30))
	if id, known := t.codes[f]; known {
		return t.frames[id]
	}
	made := &frame{f, uint32(len(t.frames)), native}
	t.codes[f] = made.id
	t.frames = append(t.frames, made)
	return made
}

// stack interns the Python frames of a list, which is not needed any more.
func (t *torchValues) stack(l *list) stackRef {
	t.key = t.key[:0]
	for _, v := range l.items {
		if f, ok := v.(*frame); ok && !f.native {
			t.key = binary.LittleEndian.AppendUint32(t.key, f.id)
		}
	}
	id, known := t.stacks[string(t.key)]
	if !known {
		var frames []build.Frame
		for _, v := range l.items {
			if f, ok := v.(*frame); ok && !f.native {
				frames = append(frames, f.Frame)
			}
		}
		id = t.out.PyStack(frames)
		t.stacks[string(t.key)] = id
	}
	t.u.memo.become(l.number, stackRef(id))
	return stackRef(id)
}
