//go:build e2e

package e2e

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"memtrace/cuda"
	"memtrace/trace"
	"memtrace/trace/spool"
)

// change is one step of a device's account: memory of a kind came or went.
type change struct {
	device int
	kind   string // device, async, vmm, array, managed, host
	op     string // alloc or free
	addr   uint64 // for vmm the handle
	size   uint64
}

// driverLog reads what the null driver wrote about itself, without what no hooked call asks for: pools' reserves,
// contexts, globals, refused requests.
func driverLog(t *testing.T, path string) []change {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var changes []change
	for lines := bufio.NewScanner(file); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) != 10 {
			t.Fatalf("%s: line %q", path, lines.Text())
		}
		switch f[3] {
		case "pool", "context", "module", "ipc":
			continue
		}
		if f[4] == "oom" {
			continue
		}
		device, _ := strconv.Atoi(f[2])
		addr, err1 := strconv.ParseUint(f[5], 0, 64)
		size, err2 := strconv.ParseUint(f[6], 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if f[3] == "host" {
			device = -1
		}
		changes = append(changes, change{device, f[3], f[4], addr, size})
	}
	return changes
}

// account replays a trace's driver level into the changes of the device's account: for VMM memory the end is the later
// of release and last unmap.
type account struct {
	t       *testing.T
	changes []change
	blocks  map[string]map[uint64]change // per address space
	mapped  map[uint64][]uint64          // handle -> addresses
	at      map[uint64]uint64            // address -> handle
	gone    map[uint64]bool              // released handles that are still mapped
}

// traceAccount returns the driver account of a trace and how often each number occurs wrongly is left to health.
func traceAccount(t *testing.T, path string) []change {
	t.Helper()
	run, err := spool.OpenRun(path)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	a := account{t: t, blocks: map[string]map[uint64]change{"gpu": {}, "host": {}, "vmm": {}},
		mapped: map[uint64][]uint64{}, at: map[uint64]uint64{}, gone: map[uint64]bool{}}
	for {
		events, err := run.ReadBatch()
		if errors.Is(err, io.EOF) {
			return a.changes
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			// reserved addresses are no memory
			if e := &events[i]; e.Level == cuda.LevelDriver && e.Status == 0 && e.Mem != cuda.MemoryAddress {
				a.apply(e)
			}
		}
	}
}

func kindOf(m cuda.MemoryKind) (kind, space string) {
	switch m {
	case cuda.MemoryHost, cuda.MemoryRegistered:
		return "host", "host"
	case cuda.MemoryVMM:
		return "vmm", "vmm"
	}
	return m.String(), "gpu"
}

func (a *account) apply(e *trace.Event) {
	kind, space := kindOf(e.Mem)
	switch e.Kind {
	case trace.EventAlloc:
		c := change{int(e.Device), kind, "alloc", e.Addr, e.Size}
		a.blocks[space][e.Addr] = c
		a.changes = append(a.changes, c)
	case trace.EventFree:
		if kind == "vmm" && len(a.mapped[e.Addr]) > 0 {
			a.gone[e.Addr] = true
			return
		}
		a.end(space, e.Addr)
	case trace.EventMap:
		a.at[e.Addr] = e.Handle
		a.mapped[e.Handle] = append(a.mapped[e.Handle], e.Addr)
	case trace.EventUnmap:
		a.unmap(e.Addr, e.Size)
	}
}

func (a *account) unmap(addr, size uint64) {
	for va, handle := range a.at {
		if va < addr || va >= addr+size {
			continue
		}
		delete(a.at, va)
		left := a.mapped[handle][:0]
		for _, other := range a.mapped[handle] {
			if other != va {
				left = append(left, other)
			}
		}
		a.mapped[handle] = left
		if len(left) == 0 && a.gone[handle] {
			delete(a.gone, handle)
			a.end("vmm", handle)
		}
	}
}

func (a *account) end(space string, addr uint64) {
	c, ok := a.blocks[space][addr]
	if !ok {
		a.t.Errorf("a free of %#x that nothing allocated", addr)
		return
	}
	delete(a.blocks[space], addr)
	c.op = "free"
	a.changes = append(a.changes, c)
}

// compareAccounts demands that trace and driver agree about every change, in order: then their totals agree at every
// moment.
func compareAccounts(t *testing.T, r *result) {
	t.Helper()
	want, got := driverLog(t, r.log), traceAccount(t, r.trace)
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Fatalf("change %d: the driver did %+v, the trace says %+v", i, want[i], got[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("the driver made %d changes, the trace has %d", len(want), len(got))
	}
	if len(want) == 0 {
		t.Error("the driver's log is empty: nothing was compared")
	}
}
