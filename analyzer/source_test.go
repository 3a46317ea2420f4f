package analyzer

import (
	"io"

	"memtrace/trace"
)

// memorySource is a trace in memory.
type memorySource struct {
	tables trace.Tables
	info   trace.Info
	end    *trace.End
	health trace.Health
	lost   [3]uint64
	events []trace.Event
	batch  int // 0: 4096
	next   int
}

func (m *memorySource) ReadBatch() ([]trace.Event, error) {
	if m.next == len(m.events) {
		return nil, io.EOF
	}
	size := m.batch
	if size == 0 {
		size = 4096
	}
	from := m.next
	m.next = min(from+size, len(m.events))
	return m.events[from:m.next], nil
}

func (m *memorySource) Tables() *trace.Tables { return &m.tables }
func (m *memorySource) Info() trace.Info      { return m.info }
func (m *memorySource) Health() trace.Health  { return m.health }

func (m *memorySource) End() (trace.End, bool) {
	if m.end == nil || m.next < len(m.events) {
		return trace.End{}, false
	}
	return *m.end, true
}

func (m *memorySource) Lost() (records, rings, dict uint64) { return m.lost[0], m.lost[1], m.lost[2] }

// Code addresses of the test libraries; a stack's id is the number of the library whose call it is.
const (
	stackAllocator trace.StackID = 1 // libc10_cuda.so
	stackBLAS      trace.StackID = 2 // libcublas.so.12
	stackProgram   trace.StackID = 3 // train
	stackNowhere   trace.StackID = 4 // in no module
	stackUndefined trace.StackID = 5 // its dictionary entry was lost
)

// fillTables gives a source the dictionary that the tests' events refer to.
func fillTables(t *trace.Tables) {
	for i, path := range []string{"/venv/lib/libc10_cuda.so", "/usr/lib/libcublas.so.12", "/opt/app/train"} {
		base := uint64(i+1) << 20
		t.AddModule(trace.Module{ID: trace.ModuleID(i + 1), Start: base, End: base + 1<<16, Base: base, Path: path})
		t.AddStack(trace.Stack{ID: trace.StackID(i + 1), Frames: []uint64{base + 0x100, 3<<20 + 0x500}})
	}
	t.AddStack(trace.Stack{ID: stackNowhere, Frames: []uint64{0x10}})
	for i, tag := range []string{"model", "model.encoder", "model.encoder.0", "optimizer"} {
		t.AddString(trace.StringID(10+i), tag)
	}
	t.AddString(20, "loaded")
	t.AddString(21, "stats")
	t.AddThread(trace.Thread{ID: 1, TID: 4711, Name: "python3"})
	t.AddThread(trace.Thread{ID: 2, TID: 4712, Name: "pt_autograd_0"})
	t.AddThread(trace.Thread{ID: 3, TID: 4713})
	t.AddThread(trace.Thread{ID: 5, TID: 4712, Name: "pt_autograd_0"}) // the same thread under a second id
	t.AddDevice(trace.Device{Index: 0, Name: "Test GPU", UUID: "GPU-0", TotalBytes: 8 << 30})
	t.AddDevice(trace.Device{Index: 1, Name: "Test GPU", UUID: "GPU-1", TotalBytes: 8 << 30})
}
