package importer

import (
	"fmt"
	"strings"

	"memtrace/trace"
)

// Decoded forms of a snapshot's dictionaries and lists.
type (
	// stackRef is a list of frames.
	stackRef struct{ native, python trace.StackID }
	// pair is a tuple of two numbers, such as the id of a pool.
	pair [2]int64

	frame struct {
		BuilderFrame
		id uint32
	}
	// entry is one record of a history.
	entry struct {
		action             action
		addr, size, stream uint64
		block              uint64 // bytes of the block, where memtrace wrote the snapshot; 0 unknown
		time               int64  // microseconds
		order              int64  // among those of all devices at one time, where memtrace wrote the snapshot
		beside             bool   // its segment holds all of it
		wrong              wrong
		stack              stackRef
		tag                trace.StringID // of a mark: its name
	}
	// block is one of a segment's.
	block struct {
		addr, size, request uint64
		stack               stackRef
		state               state
		rounded             bool // the size is the request, rounded up
		beside              bool // its segment holds all of it
		wrong               wrong
	}
	segment struct {
		device             int64
		addr, size, stream uint64
		small, expandable  bool
		virtual            bool // not in the snapshot, but its blocks are
		stack              stackRef
		tag                trace.StringID
		blocks             []block
		unknown            int // blocks of a state that PyTorch does not have
		wrong              wrong
	}
)

type state uint8

// The states of a block.
const (
	stateUnknown state = iota
	stateInactive
	statePending // freed, and waiting for a stream
	stateAllocated
)

var states = map[string]state{"inactive": stateInactive, "active_pending_free": statePending,
	"active_awaiting_free": statePending, "active_allocated": stateAllocated}

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
	out    *Builder
	codes  map[BuilderFrame]uint32
	frames []*frame
	stacks map[string]stackRef
	key    []byte
}

// maxKeys bounds the pairs of a dictionary that are read. Records of PyTorch have about twenty.
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
func stackOf(v any) stackRef {
	ref, _ := v.(stackRef)
	return ref
}

// fields yields the values of a dictionary with their keys, "" for a key that is not a text.
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
	var addr, size bool
	for key, v := range d.fields {
		switch key {
		case "action":
			name = text(v)
			e.action = actions[name]
		case "addr":
			e.addr, addr = e.wrong.address("address", v), true
		case "size":
			e.size, size = e.wrong.bytes("size", v), true
		case "stream":
			e.stream = e.wrong.address("stream", v)
		case "time_us":
			e.time = int64(e.wrong.address("time", v))
		case blockSizeKey:
			e.block = e.wrong.bytes("size of the block", v)
		case orderKey:
			e.order = int64(e.wrong.address("order", v))
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
	e.wrong.missing("address", addr || e.action == actionOOM || e.action == actionUnknown)
	e.wrong.missing("size", size || e.action == actionUnknown)
	e.wrong.end(e.addr, e.size)
	e.tag = t.tag(pool, said, context)
	return e
}

// tag is the path of a private pool, what the program noted down, and the compilation that requested it.
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
	size := false
	for key, v := range d.fields {
		switch key {
		case "address":
			b.addr = b.wrong.address("address of a block", v)
		case "size":
			b.size, size = b.wrong.bytes("size of a block", v), true
		case "requested_size":
			b.request = b.wrong.bytes("requested size of a block", v)
		case besideKey:
			b.beside, _ = v.(bool)
		case "state":
			b.state = states[text(v)]
		case "frames":
			b.stack = stackOf(v)
		}
	}
	b.wrong.missing("size of a block", size)
	b.wrong.end(b.addr, b.size)
	return b
}

func (t *torchValues) segment(d *dict) *segment {
	s := &segment{}
	var device, addr, size bool
	for key, v := range d.fields {
		switch key {
		case "device":
			s.device, device = int64(s.wrong.address("device of a segment", v)), true
		case "address":
			s.addr, addr = s.wrong.address("address of a segment", v), true
		case "total_size":
			s.size, size = s.wrong.bytes("size of a segment", v), true
		case "stream":
			s.stream = s.wrong.address("stream of a segment", v)
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
				t.blocks(s, l)
			} else {
				s.wrong.set("the blocks of a segment are no list")
			}
		}
	}
	s.wrong.missing("device of a segment", device)
	s.wrong.missing("address of a segment", addr)
	s.wrong.missing("size of a segment", size)
	s.wrong.end(s.addr, s.size)
	return s
}

// blocks takes a list of blocks in. A block without an address follows the one before.
func (t *torchValues) blocks(s *segment, l *list) {
	for _, v := range l.items {
		b, ok := v.(*block)
		if !ok {
			s.unknown++
			continue
		}
		s.wrong.set(string(b.wrong))
		if b.state == stateUnknown {
			s.unknown++
		}
		if b.beside {
			b.state = stateInactive
		}
		s.blocks = append(s.blocks, *b)
	}
	t.u.memo.become(l.number, nil)
	l.items = nil
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
			e.time = int64(e.wrong.address("time", v))
		}
	}
	if stage == "END" {
		name = "end of " + name
	}
	e.tag = t.out.String(name)
	return e
}
