package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"memtrace/cuda"
	"memtrace/trace"
)

// nsys export --type sqlite writes a table of CUDA's memory calls, if the profile was made with
// --cuda-memory-usage=true (docs.nvidia.com/nsight-systems, "SQLite Schema Reference"). Names and call stacks are in
// other tables.

const (
	nsysKind   = "SQLite export of Nsight Systems"
	nsysMemory = "CUDA_GPU_MEMORY_USAGE_EVENTS"
	nsysCalls  = "CUPTI_ACTIVITY_KIND_RUNTIME"
	nsysStacks = "CUDA_CALLCHAINS"
	nsysTexts  = "StringIds"
	nsysGPUs   = "TARGET_INFO_GPU"
	// mostNsys bounds the memory calls of a file, which are put in the order of their times.
	mostNsys = 1 << 23
)

func isNsys(file *io.SectionReader) bool {
	f, err := openSQLite(file, file.Size())
	return err == nil && (f.Table(nsysMemory) != nil || f.Table(nsysTexts) != nil && f.Table("EXPORT_META_DATA") != nil)
}

// nsysEvent is a row of the table of memory calls.
type nsysEvent struct {
	start, address, bytes, stream int64
	call                          nsysCall
	device, kind, operation       int64
	pooled                        bool
}

// nsysCall is what a call of CUDA's is known by: its number in its process.
type nsysCall struct{ process, number int64 }

// nsysCaller is who made a call: ids of its name and stack, and the thread.
type nsysCaller struct{ name, chain, thread int64 }

type nsysImport struct {
	out     *Builder
	file    *sqliteFile
	events  []nsysEvent
	callers map[nsysCall]nsysCaller
	chains  map[int64][]nsysFrame
	texts   map[int64]string
	stacks  map[int64]trace.StackID
	threads map[[2]int64]trace.ThreadID
	spaces  map[int64]uint64 // process -> number; processes have addresses of their own
	live    map[uint64]trace.Event
	result  Result

	unknown, odd, taken, resized, pageable, far int
}

type nsysFrame struct{ depth, symbol, module int64 }

func readNsys(out *trace.Writer, file *io.SectionReader, _ Options) (Result, error) {
	m := &nsysImport{callers: map[nsysCall]nsysCaller{}, chains: map[int64][]nsysFrame{}, texts: map[int64]string{},
		stacks: map[int64]trace.StackID{}, threads: map[[2]int64]trace.ThreadID{}, spaces: map[int64]uint64{},
		live:   map[uint64]trace.Event{},
		result: Result{Kind: nsysKind, Brief: "CUDA's memory calls; no blocks of frameworks"}}
	var err error
	if m.file, err = openSQLite(file, file.Size()); err != nil {
		return Result{}, err
	}
	m.out = NewBuilder(out, trace.Info{KindKey: nsysKind})
	for _, read := range []func() error{m.readEvents, m.readCalls, m.readStacks, m.readTexts, m.readDevices} {
		if err := read(); err != nil {
			return Result{}, err
		}
	}
	for i := range m.events {
		m.replay(&m.events[i])
	}
	m.result.Lacks = m.lacks()
	return finish(m.out, m.result)
}

// number is a value of a row that may be missing.
func number(v any) int64 {
	n, _ := v.(int64)
	return n
}

func (m *nsysImport) readEvents() error {
	t := m.file.Table(nsysMemory)
	if t == nil {
		return errors.New("the export holds no memory calls (" + nsysMemory +
			"); profile with nsys profile --cuda-memory-usage=true")
	}
	columns := []string{"start", "address", "bytes", "memKind", "memoryOperationType", "deviceId", "globalPid",
		"correlationId", "streamId", "localMemoryPoolAddress"}
	for _, c := range columns[:6] {
		if !t.Has(c) {
			return fmt.Errorf("the table %s has no column %s", nsysMemory, c)
		}
	}
	row := 0
	err := m.file.Rows(t, columns, func(v []any) error {
		if row++; row > mostNsys {
			return fmt.Errorf("more than %d memory calls", mostNsys)
		}
		for i, c := range columns[:6] {
			if _, ok := v[i].(int64); !ok {
				return fmt.Errorf("row %d of %s: %s is not a whole number", row, nsysMemory, c)
			}
		}
		e := nsysEvent{start: number(v[0]), address: number(v[1]), bytes: number(v[2]), kind: number(v[3]),
			operation: number(v[4]), device: number(v[5]), call: nsysCall{number(v[6]) >> 24, number(v[7])},
			stream: number(v[8]), pooled: number(v[9]) != 0}
		switch {
		case e.bytes < 0 || e.bytes > maxBlock:
			return fmt.Errorf("row %d of %s: bytes is not a size that a device has", row, nsysMemory)
		case e.start < 0:
			return fmt.Errorf("row %d of %s: start is negative", row, nsysMemory)
		}
		m.events = append(m.events, e)
		m.callers[e.call] = nsysCaller{}
		return nil
	})
	slices.SortStableFunc(m.events, func(a, b nsysEvent) int { return cmp.Compare(a.start, b.start) })
	if err == nil && len(m.events) == 0 {
		err = fmt.Errorf("the table %s is empty", nsysMemory)
	}
	return err
}

// readCalls finds who made the calls.
func (m *nsysImport) readCalls() error {
	t := m.file.Table(nsysCalls)
	if t == nil {
		return nil
	}
	return m.file.Rows(t, []string{"correlationId", "globalTid", "nameId", "callchainId"}, func(v []any) error {
		thread := number(v[1])
		call := nsysCall{thread >> 24, number(v[0])}
		if _, wanted := m.callers[call]; wanted {
			m.callers[call] = nsysCaller{number(v[2]), number(v[3]), thread & 0xffffff}
			m.texts[number(v[2])] = ""
			if v[3] != nil {
				m.chains[number(v[3])] = nil
			}
		}
		return nil
	})
}

func (m *nsysImport) readStacks() error {
	t := m.file.Table(nsysStacks)
	if t == nil || len(m.chains) == 0 {
		return nil
	}
	return m.file.Rows(t, []string{"id", "stackDepth", "symbol", "module"}, func(v []any) error {
		id := number(v[0])
		if chain, wanted := m.chains[id]; wanted && len(chain) < trace.MaxFrames {
			f := nsysFrame{number(v[1]), number(v[2]), number(v[3])}
			m.chains[id] = append(chain, f)
			m.texts[f.symbol], m.texts[f.module] = "", ""
		}
		return nil
	})
}

func (m *nsysImport) readTexts() error {
	t := m.file.Table(nsysTexts)
	if t == nil || len(m.texts) == 0 {
		return nil
	}
	return m.file.Rows(t, []string{"id", "value"}, func(v []any) error {
		if _, wanted := m.texts[number(v[0])]; wanted {
			m.texts[number(v[0])], _ = v[1].(string)
		}
		return nil
	})
}

func (m *nsysImport) readDevices() error {
	t := m.file.Table(nsysGPUs)
	if t == nil {
		return nil
	}
	return m.file.Rows(t, []string{"id", "name", "totalMemory"}, func(v []any) error {
		if id := number(v[0]); id >= 0 && id < maxDevices {
			name, _ := v[1].(string)
			m.out.Device(trace.Device{Index: int16(id), Name: name, TotalBytes: uint64(max(number(v[2]), 0))})
		}
		return nil
	})
}

// nsysKinds are kinds of memory by their numbers in ENUM_CUDA_MEM_KIND; 0 is pageable memory.
var nsysKinds = [...]cuda.MemoryKind{1: cuda.MemoryHost, 2: cuda.MemoryDevice, 3: cuda.MemoryArray,
	4: cuda.MemoryManaged, 5: cuda.MemoryModule, 6: cuda.MemoryManaged}

// replay writes a call.
func (m *nsysImport) replay(e *nsysEvent) {
	switch {
	case e.kind == 0:
		m.pageable++
		return
	case e.kind < 0 || e.kind >= int64(len(nsysKinds)) || e.operation != 0 && e.operation != 1:
		m.odd++
		return
	case e.device < 0 || e.device >= maxDevices:
		m.far++
		return
	case e.bytes == 0 && e.operation == 0:
		return
	}
	space, known := m.spaces[e.call.process]
	if !known {
		space = uint64(len(m.spaces))
		m.spaces[e.call.process] = space
	}
	event := trace.Event{Level: cuda.LevelDriver, Mem: nsysKinds[e.kind], Device: int16(e.device),
		Addr: uint64(e.address) ^ space<<57, Size: uint64(e.bytes), Stream: uint64(e.stream), Time: e.start}
	if event.Mem == cuda.MemoryHost {
		event.Device = -1
	}
	if e.pooled && event.Mem == cuda.MemoryDevice {
		event.Mem = cuda.MemoryAsync
	}
	m.describe(&event, e.call)
	before, there := m.live[event.Addr]
	switch {
	case e.operation == 1 && !there:
		m.unknown++
		return
	case e.operation == 1:
		if event.Size != 0 && event.Size != before.Size {
			m.resized++
		}
		m.free(event, before)
		return
	case there: // its free is missing
		m.taken++
		m.free(event, before)
	}
	event.Kind = trace.EventAlloc
	m.live[event.Addr] = event
	m.write(event)
}

func (m *nsysImport) free(by, block trace.Event) {
	by.Kind, by.Size, by.Mem, by.Device = trace.EventFree, block.Size, block.Mem, block.Device
	delete(m.live, by.Addr)
	m.write(by)
}

func (m *nsysImport) write(e trace.Event) {
	m.out.Event(e)
	m.result.Events++
}

// version is the suffix of the names of CUDA's runtime functions.
var version = regexp.MustCompile(`(_ptsz|_ptds)?_v[0-9]{4,}$`)

// describe returns the caller of a call, as far as it is known.
func (m *nsysImport) describe(e *trace.Event, call nsysCall) {
	caller := m.callers[call]
	key := [2]int64{call.process, caller.thread}
	thread, known := m.threads[key]
	if !known {
		if caller.thread == 0 {
			thread = m.out.Thread("(threads are unknown)")
		} else {
			thread = m.out.ThreadOf(int32(caller.thread))
		}
		m.threads[key] = thread
	}
	e.Thread = thread
	name := m.texts[caller.name]
	for _, name := range []string{name, version.ReplaceAllString(name, "$1")} {
		if api, ok := cuda.ParseAPI(name); ok && api.Level() == cuda.LevelRuntime {
			e.Runtime = api
		} else if ok {
			e.API = api
		}
	}
	chain := m.chains[caller.chain]
	if len(chain) == 0 {
		return
	}
	stack, known := m.stacks[caller.chain]
	if !known {
		slices.SortStableFunc(chain, func(a, b nsysFrame) int { return cmp.Compare(a.depth, b.depth) })
		frames := make([]BuilderFrame, len(chain))
		for i, f := range chain {
			frames[i] = BuilderFrame{Function: withoutParameters(m.texts[f.symbol]), Module: m.texts[f.module],
				Native: true}
		}
		stack, _ = m.out.Stack(frames)
		m.stacks[caller.chain] = stack
	}
	e.Stack = stack
}

func (m *nsysImport) lacks() []string {
	lacks := []string{"The export lists calls of CUDA that allocate and free memory: no memory of contexts and libraries, no blocks that frameworks cut from what they hold, no Python frames, no tags."}
	if len(m.stacks) == 0 {
		lacks[0] += " It has no call stacks of them (--cudabacktrace=memory)."
	}
	if n := len(m.spaces); n > 1 {
		lacks = append(lacks, strconv.Itoa(n)+" processes were profiled; all are in this trace.")
	}
	lacks = append(lacks, sentences(
		counted{m.unknown, "Frees of blocks that it does not allocate were left out: %d; profiling began later."},
		counted{m.resized, "Frees with another size than the allocation: %d; the allocation's counts."},
		counted{m.taken, "Allocations at addresses whose free is missing: %d; the block before counts as freed then."},
		counted{m.pageable, "Calls for pageable host memory were left out: %d."},
		counted{m.odd, "Calls of an unknown kind were left out: %d."},
		counted{m.far, "Calls for devices that are not numbered from 0 to 255 were left out: %d."})...)
	return lacks
}
