package hostile

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer"
	"memtrace/analyzer/heap"
	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/guest"
	"memtrace/trace"
	"memtrace/trace/spool"
)

// change is one block that came or went.
type change struct {
	alloc      bool
	addr, size uint64
}

func (c change) String() string {
	if c.alloc {
		return fmt.Sprintf("alloc %#x, %d bytes", c.addr, c.size)
	}
	return fmt.Sprintf("free %#x, %d bytes", c.addr, c.size)
}

// account is what happened, in order, to each kind of memory in the null driver's words. Blocks that go at once, as a
// context's do, go in order of address.
type account map[string][]change

func (a account) add(kind string, c change) {
	list := append(a[kind], c)
	for i := len(list) - 1; i > 0 && !c.alloc && !list[i-1].alloc && list[i-1].addr > list[i].addr; i-- {
		list[i-1], list[i] = list[i], list[i-1]
	}
	a[kind] = list
}

// live returns how many blocks and bytes are there at the end.
func (a account) live(kind string) total {
	var t total
	for _, c := range a[kind] {
		if c.alloc {
			t = total{t.count + 1, t.bytes + c.size}
		} else {
			t = total{t.count - 1, t.bytes - c.size}
		}
	}
	return t
}

// driverLine is one change in the null driver's words.
type driverLine struct {
	device          int
	kind, op        string
	addr, requested uint64
}

// readDriverLog reads the null driver's log.
func readDriverLog(t *testing.T, path string) (log []driverLine) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var seq, ns uint64
		var l driverLine
		if _, err := fmt.Sscan(lines.Text(), &seq, &ns, &l.device, &l.kind, &l.op, &l.addr, &l.requested); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		log = append(log, l)
	}
	return log
}

// driverAccount makes an account of the null driver's log.
func driverAccount(t *testing.T, path string) account {
	t.Helper()
	a := account{}
	for _, l := range readDriverLog(t, path) {
		if l.op != "oom" {
			a.add(l.kind, change{l.op == "alloc", l.addr, l.requested})
		}
	}
	return a
}

// replayed is what the analyzer makes of a trace.
type replayed struct {
	account
	reserves map[[2]uint64]uint64 // bytes held, by object and handle
	nodes    map[uint64][]uint64  // graph nodes: bytes by address
	contexts map[uint64]bool      // live ones; true: made by the program
	refused  int
}

// context is what each live context costs on the device.
const contextBytes = 10 << 20

// kindOf names a block as the null driver does.
func kindOf(b *heap.Block) string {
	switch {
	case b.Mem == cuda.MemoryVMM && b.Device < 0, b.Mem == cuda.MemoryRegistered:
		return "host"
	case b.Mem == cuda.MemoryForeign, b.Mem == cuda.MemoryImported:
		return "ipc"
	case b.Mem == cuda.MemoryArray && b.Size == 0:
		return "sparse"
	}
	return b.Mem.String()
}

func (r *replayed) Opened(_ uint32, b *heap.Block, _ *trace.Event) {
	if b.Mem == cuda.MemoryGraph {
		r.nodes[b.Addr] = append(r.nodes[b.Addr], b.Size)
	}
	r.add(kindOf(b), change{true, b.Addr, b.Size})
}
func (r *replayed) Closed(_ uint32, b *heap.Block, _ *trace.Event) {
	r.add(kindOf(b), change{false, b.Addr, b.Size})
}
func (r *replayed) LateAlloc(*heap.Block, *trace.Event) {}
func (r *replayed) Refused(*trace.Event)                { r.refused++ }

// context takes in the beginning or the end of a context; without a handle it is the primary one of the only device.
func (r *replayed) context(e *trace.Event) {
	switch {
	case e.Object != cuda.ObjectContext || e.Status != 0 || e.Flags&trace.FlagReference != 0:
	case e.Kind == trace.EventCreate:
		r.contexts[e.Addr] = strings.HasPrefix(e.API.String(), "cuCtxCreate")
		r.add("context", change{true, e.Addr, contextBytes})
	case e.Kind == trace.EventDestroy:
		for handle, made := range r.contexts {
			if handle == e.Addr || e.Addr == 0 && !made {
				delete(r.contexts, handle)
				r.add("context", change{false, handle, contextBytes})
			}
		}
	}
}

func replay(events []trace.Event) *replayed {
	r := &replayed{account: account{}, reserves: map[[2]uint64]uint64{}, nodes: map[uint64][]uint64{},
		contexts: map[uint64]bool{}}
	heap := heap.NewHeap(r)
	for i := range events {
		e := &events[i]
		heap.Apply(e)
		r.context(e)
		switch {
		case e.Kind == trace.EventReserve:
			r.reserves[[2]uint64{uint64(e.Object), e.Addr}] = e.Size
		case e.Kind == trace.EventDestroy && e.Object == cuda.ObjectPool && e.Status == 0:
			delete(r.reserves, [2]uint64{uint64(cuda.ObjectPool), e.Addr})
		}
	}
	return r
}

// compareAccounts compares every change of every kind whose events the driver logs. The memory of a graph's nodes is
// logged when a launch needs it, which the trace does not claim to know; what is logged must be a node of that size.
func compareAccounts(t *testing.T, driver account, r *replayed) {
	t.Helper()
	var async []change
	launched := 0
	for _, c := range driver["async"] {
		if slices.Contains(r.nodes[c.addr], c.size) {
			launched++
		} else {
			async = append(async, c)
		}
	}
	if len(r.nodes) > 0 && launched < 2*len(r.nodes) {
		t.Errorf("the driver says %d changes of graph memory for %d nodes that were launched and freed", launched,
			len(r.nodes))
	}
	driver["async"] = async
	for _, kind := range []string{"device", "managed", "host", "async", "vmm", "array", "sparse", "module", "ipc",
		"multicast", "context"} {
		want, have := driver[kind], r.account[kind]
		if kind == "sparse" { // without memory: the driver tells their extent, the trace has none
			for i := range want {
				want[i].size = 0
			}
		}
		for i := range max(len(want), len(have)) {
			switch {
			case i >= len(want):
				t.Errorf("%s: the trace has more: %v", kind, have[i])
			case i >= len(have):
				t.Errorf("%s: the trace lacks: %v", kind, want[i])
			case want[i] != have[i]:
				t.Errorf("%s, change %d: the driver says %v, the trace %v", kind, i, want[i], have[i])
			default:
				continue
			}
			break
		}
		if d, h := driver.live(kind), r.live(kind); d != h {
			t.Errorf("%s: the driver has %+v at the end, the trace %+v", kind, d, h)
		}
	}
	var held uint64
	for _, size := range r.reserves {
		held += size
	}
	if want := driver.live("pool").bytes; held != want {
		t.Errorf("pools hold %d bytes at the end, the trace says %d: %v", want, held, r.reserves)
	}
}

// checkHealth asks that the analyzer had nothing to repair.
func checkHealth(t *testing.T, path string) *report.Summary {
	t.Helper()
	source, err := spool.OpenRun(path)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	s, err := analyzer.Summarize(source, analyzer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := s.Health
	if !h.Complete || h.UnmatchedFrees+h.UnmatchedMaps+h.DisplacedBlocks+h.UnmatchedReferences+h.FailedFrees+
		h.SequenceGaps+h.ImplausibleSizes != 0 {
		t.Errorf("%s: %+v", filepath.Base(path), h)
	}
	return s
}

var pidOf = regexp.MustCompile(`\.(\d+)\.bin$`)

// checkCover compares each process's trace with its driver's log and returns the process that has more events.
func checkCover(t *testing.T, got result) recorded {
	t.Helper()
	paths := got.traces(t)
	if len(paths) != 2 {
		t.Fatalf("%d traces, want those of two processes\n%s%s", len(paths), got.stdout, got.stderr)
	}
	var largest recorded
	refusals := 0
	for _, path := range paths {
		s := checkHealth(t, path)
		r := read(t, path)
		if r.ended != spool.EndedClean || r.lost != 0 {
			t.Errorf("%s ended as %s, %d events lost", filepath.Base(path), r.ended, r.lost)
		}
		log := driverAccount(t, filepath.Join(got.dir, "null."+pidOf.FindStringSubmatch(path)[1]+".log"))
		have := replay(r.events)
		compareAccounts(t, log, have)
		compareTotals(t, log, have, s)
		refusals += have.refused
		if len(r.events) > len(largest.events) {
			largest = r
		}
	}
	if want := len(refusedCall.FindAllString(got.stdout, -1)); refusals != want || want == 0 {
		t.Errorf("%d allocations were refused, %d calls failed for want of memory", refusals, want)
	}
	return largest
}

var refusedCall = regexp.MustCompile(`(?m)^cu\w* 2$`)

// compareTotals compares what the summary says is live at the end: what occupies the device in one account, everything
// else apart.
func compareTotals(t *testing.T, driver account, r *replayed, s *report.Summary) {
	t.Helper()
	want := map[string]uint64{
		"driver": driver.live("device").bytes + driver.live("async").bytes + driver.live("vmm").bytes +
			driver.live("array").bytes + driver.live("module").bytes,
		"managed": driver.live("managed").bytes, "host": driver.live("host").bytes, "foreign": driver.live("ipc").bytes,
		"multicast": driver.live("multicast").bytes,
		"address":   r.live("address").bytes, "graph": r.live("graph").bytes,
	}
	have := map[string]uint64{"driver": s.Driver.LiveBytes}
	for name, level := range s.Other {
		if name == "registered" {
			name = "host"
		}
		have[name] += level.LiveBytes
	}
	for name, bytes := range want {
		if have[name] != bytes {
			t.Errorf("account %s: %d bytes at the end, want %d", name, have[name], bytes)
		}
	}
	for name := range have {
		if _, known := want[name]; !known {
			t.Errorf("account %s: %d bytes that nobody asked for", name, have[name])
		}
	}
}

var hookRow = regexp.MustCompile(`(?m)^MT_(?:HOOK|CUSTOM)\(\d+, (DRIVER|RUNTIME), (\w+), "(\w*)", (\d+), (\d)`)

// hookedNames lists the hooked functions of a level.
func hookedNames(t *testing.T, level string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(guest.Root(), "cshim/hooks.def"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range hookRow.FindAllStringSubmatch(string(text), -1) {
		if row[1] == level {
			names = append(names, row[2])
		}
	}
	if len(names) < 30 {
		t.Fatalf("hooks.def has %d functions at level %s", len(names), level)
	}
	return names
}

// isMarker tells hooks that make no event: they tell the others when streams are captured, and which contexts are
// green.
func isMarker(name string) bool {
	return strings.HasPrefix(name, "cuStreamBeginCapture") || strings.HasPrefix(name, "cuStreamEndCapture") ||
		name == "cuCtxFromGreenCtx"
}

var coverSources = []string{"cover", "cover_peer", "cover_memory", "cover_mapped", "cover_graph", "cover_context",
	"cover_runtime"}

func coverProgram(t *testing.T, name string, flags ...string) string {
	t.Helper()
	var sources []string
	for _, source := range coverSources {
		sources = append(sources, "testdata/guest/"+source+".c")
	}
	return compile(t, name, sources, flags...)
}

func runtimePath(t *testing.T, version string) string {
	return filepath.Join(nullGPU(t), map[string]string{"11": "libcudart.so.11.0", "12": "libcudart.so.12",
		"13": "libcudart.so.13"}[version])
}

// Without samples of the device, which would fill in what calls left out.
func coverRun(t *testing.T, level, route, version string) run {
	r := run{args: []string{level, route}, env: []string{"MEMTRACE_NVML=0", "NULLCUDA_LOG=null.%p.log",
		"NULLCUDA_DRIVER_VERSION=13050", fmt.Sprint("NULLCUDA_CONTEXT=", contextBytes)}}
	if version != "" {
		r.env = append(r.env, "COVER_RUNTIME="+runtimePath(t, version))
	}
	return r
}

// Every hooked driver function by every route: the program cannot tell, and the trace agrees with the driver, change by
// change.
func TestCoverDriver(t *testing.T) {
	t.Parallel()
	loaded := coverProgram(t, "cover")
	linked := coverProgram(t, "cover-linked", append([]string{"-DCOVER_LINKED_DRIVER", "-Wl,--no-as-needed"},
		withDriver(t)...)...)
	for _, c := range []struct{ route, runtime string }{
		{"linked", ""}, {"dlsym", ""}, {"default", ""}, {"next", ""}, {"proc1", ""}, {"proc2", ""}, {"legacy", ""},
		{"entry", "11"}, {"entry", "12"}, {"entry", "13"}, {"by-version", "12"}, {"by-version", "13"},
	} {
		t.Run(c.route+c.runtime, func(t *testing.T) {
			r := coverRun(t, "driver", c.route, c.runtime)
			r.program = loaded
			if c.route == "linked" {
				r.program = linked
			}
			got := r.both(t, "")
			if got.exit != 0 {
				t.Fatalf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
			}
			seen := map[string]bool{}
			for _, e := range checkCover(t, got).events {
				seen[e.API.String()] = true
			}
			for _, name := range hookedNames(t, "DRIVER") {
				if !seen[name] && !isMarker(name) {
					t.Errorf("%s is called and makes no event", name)
				}
			}
		})
	}
}

// Every hooked function of each runtime: its name is on the driver's event, and nothing counts twice.
func TestCoverRuntime(t *testing.T) {
	t.Parallel()
	loaded := coverProgram(t, "cover")
	for _, version := range []string{"11", "12", "13"} {
		for _, route := range []string{"linked", "static", "dlsym", "default", "next", "versioned"} {
			t.Run(version+" "+route, func(t *testing.T) {
				r := coverRun(t, "runtime", route, version)
				r.program = loaded
				switch route {
				case "linked":
					r.program = coverProgram(t, "cover-linked"+version, "-DCOVER_LINKED_RUNTIME",
						runtimePath(t, version))
				case "static":
					archive := filepath.Join(nullGPU(t), "static"+version, "libcudart_static.a")
					r.program = coverProgram(t, "cover-static"+version, "-DCOVER_LINKED_RUNTIME", "-Wl,--whole-archive",
						archive, "-Wl,--no-whole-archive")
					r.args[1], r.env = "linked", slices.Delete(r.env, len(r.env)-1, len(r.env))
				}
				got := r.both(t, "")
				if got.exit != 0 {
					t.Fatalf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
				}
				checkRuntimeNames(t, checkCover(t, got), version, route == "static" || route == "versioned")
			})
		}
	}
}

// namelessOn says where a runtime call leaves no event with its name, and why.
func namelessOn(name, version string) string {
	switch name {
	case "cudaGetSymbolAddress":
		return "the null runtime keeps such variables in host memory"
	case "cudaMemPoolTrimTo", "cudaDeviceGraphMemTrim":
		return "what a pool holds has no room for the name"
	case "cudaEventRecord", "cudaEventRecord_ptsz", "cudaEventQuery", "cudaEventSynchronize":
		return "an event makes one only where PyTorch's allocator waits for it"
	case "cudaThreadExit":
		return map[string]string{"13": "gone"}[version]
	case "cudaGraphAddNode":
		return map[string]string{"11": "not there yet"}[version]
	case "cudaGraphAddNode_v2":
		return map[string]string{"11": "not there yet", "13": "gone"}[version]
	}
	return ""
}

// checkRuntimeNames asks that every runtime call is named by an event. A runtime that is built in, or whose functions
// were asked for with dlvsym, does not lead through the hooks: then only the driver's calls are seen, and they are all
// that counts.
func checkRuntimeNames(t *testing.T, r recorded, version string, unseen bool) {
	t.Helper()
	seen := map[string]bool{}
	for _, e := range r.events {
		seen[e.Runtime.String()] = true
		if e.Flags&trace.FlagRuntimeOnly != 0 {
			t.Errorf("event %d, %s: its driver call was not seen", e.Seq, e.API)
		}
		if unseen && e.Runtime != cuda.APINone {
			t.Errorf("event %d has the name %s, which cannot be known", e.Seq, e.Runtime)
		}
	}
	for _, name := range hookedNames(t, "RUNTIME") {
		if why := namelessOn(name, version); !unseen && seen[name] != (why == "") {
			t.Errorf("%s: seen %v, though: %q", name, seen[name], why)
		}
	}
}
