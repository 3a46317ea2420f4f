package importer

import (
	"encoding/binary"
	"fmt"

	"memtrace/trace"
)

// BuilderFrame is a frame of a call stack as tools print it.
type BuilderFrame struct {
	File, Function string
	Line           int32
	Native         bool   // else it is Python's
	Module         string // of native frames: the object file, as far as that is known
}

// Builder writes one trace. Its memory is bounded by distinct names, frames and stacks. It is not safe for use by
// several goroutines. The first failed write is kept and returned by Close.
type Builder struct {
	out     *trace.Writer
	err     error
	nextID  uint32
	seq     uint64
	last    int64
	strings map[string]trace.StringID
	codes   map[BuilderFrame]trace.CodeID
	stacks  map[string]trace.StackID
	native  nativeCode
	key     []byte
}

// NewBuilder begins a trace with what is known about the run.
func NewBuilder(out *trace.Writer, info trace.Info) *Builder {
	b := &Builder{out: out, strings: map[string]trace.StringID{}, codes: map[BuilderFrame]trace.CodeID{},
		stacks: map[string]trace.StackID{}}
	b.keep(out.WriteInfo(info))
	return b
}

// Info adds facts about the run that were found out only later; they override earlier ones of the same key.
func (b *Builder) Info(info trace.Info) { b.keep(b.out.WriteInfo(info)) }

// Device defines a device by its number in the run.
func (b *Builder) Device(d trace.Device) {
	d.Name, d.UUID = clip(d.Name), clip(d.UUID)
	b.keep(b.out.WriteDevice(d))
}

// Until extends the run at least up to a time, in nanoseconds.
func (b *Builder) Until(time int64) { b.last = max(b.last, time) }

func (b *Builder) keep(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *Builder) id() uint32 {
	b.nextID++
	return b.nextID
}

// clip cuts a text to what the format holds.
func clip(s string) string { return s[:min(len(s), trace.MaxString)] }

// String interns a text; the empty one has id 0.
func (b *Builder) String(s string) trace.StringID {
	s = clip(s)
	if s == "" {
		return 0
	}
	id, ok := b.strings[s]
	if !ok {
		id = trace.StringID(b.id())
		b.strings[s] = id
		b.keep(b.out.WriteString(id, s))
	}
	return id
}

func (b *Builder) code(f BuilderFrame) trace.CodeID {
	f.File, f.Function = clip(f.File), clip(f.Function)
	id, ok := b.codes[f]
	if !ok {
		id = trace.CodeID(b.id())
		b.codes[f] = id
		b.keep(b.out.WriteCode(trace.Code{ID: id, Name: f.Function, QualName: f.Function, File: f.File,
			FirstLine: f.Line}))
	}
	return id
}

// Stack interns a call stack, innermost frame first, as what its native and what its Python frames are; empty ones have
// id 0. Frames beyond what the format holds are left out at the outer end.
func (b *Builder) Stack(frames []BuilderFrame) (native, python trace.StackID) {
	addresses := b.addresses(frames)
	var list []trace.PyFrame
	for i, f := range frames {
		if !f.Native {
			list = append(list, trace.PyFrame{Code: b.code(f), Offset: trace.LineNotBegun,
				Entry: addresses != nil && (i+1 == len(frames) || frames[i+1].Native)})
		}
	}
	return b.nativeStack(addresses), b.pyStack(list)
}

func (b *Builder) pyStack(list []trace.PyFrame) trace.StackID {
	if len(list) == 0 {
		return 0
	}
	stack := trace.PyStack{Frames: list}
	if len(list) > trace.MaxFrames {
		stack.Frames, stack.End = list[:trace.MaxFrames], trace.StackDepth
	}
	b.key = append(b.key[:0], 'p')
	for _, f := range stack.Frames {
		b.key = binary.AppendUvarint(b.key, uint64(f.Code)<<1|entryBit(f))
	}
	id, known := b.stack()
	if !known {
		stack.ID = id
		b.keep(b.out.WritePyStack(stack))
	}
	return id
}

func entryBit(f trace.PyFrame) uint64 {
	if f.Entry {
		return 1
	}
	return 0
}

// stack returns the id of the stack that key identifies.
func (b *Builder) stack() (id trace.StackID, known bool) {
	if id, known = b.stacks[string(b.key)]; !known {
		id = trace.StackID(b.id())
		b.stacks[string(b.key)] = id
	}
	return id, known
}

// Thread defines a thread by its name.
func (b *Builder) Thread(name string) trace.ThreadID {
	id := trace.ThreadID(b.id())
	b.keep(b.out.WriteThread(trace.Thread{ID: id, Name: clip(name)}))
	return id
}

// ThreadOf defines a thread by the kernel's number.
func (b *Builder) ThreadOf(tid int32) trace.ThreadID {
	id := trace.ThreadID(b.id())
	b.keep(b.out.WriteThread(trace.Thread{ID: id, TID: tid}))
	return id
}

// Event appends an event and gives it the next order number.
func (b *Builder) Event(e trace.Event) {
	b.seq++
	e.Seq, b.last = b.seq, max(b.last, e.Time)
	b.keep(b.out.WriteEvents([]trace.Event{e}))
}

// Err returns the first failure so far.
func (b *Builder) Err() error { return b.err }

// Close ends the trace. It does not close the file.
func (b *Builder) Close() error {
	if b.err == nil {
		b.err = b.out.WriteSymbols(b.native.symbols)
	}
	if b.err == nil {
		b.err = b.out.Flush(b.seq + 1)
	}
	if b.err == nil {
		b.err = b.out.Close(trace.End{Reason: "import", Time: b.last})
	}
	if b.err != nil {
		return fmt.Errorf("write imported trace: %w", b.err)
	}
	return nil
}
