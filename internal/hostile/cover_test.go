package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/account"
	"memtrace/internal/guest"
	"memtrace/internal/spool"
	"memtrace/trace"
)

// driverAccount reads the null driver's log.
func driverAccount(t *testing.T, path string) account.Account {
	t.Helper()
	log, err := account.Log(path)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func replay(events []trace.Event) *account.Replay {
	r := account.NewReplay()
	for i := range events {
		r.Apply(&events[i])
	}
	return r
}

// compareAccounts compares every change of every kind whose events the driver logs. The memory of a graph's nodes is
// logged when a launch needs it, which the trace does not claim to know; what is logged must be a node of that size.
func compareAccounts(t *testing.T, driver account.Account, r *account.Replay) {
	t.Helper()
	launched := 0
	driver = slices.DeleteFunc(slices.Clone(driver), func(c account.Change) bool {
		node := c.Kind == "async" && slices.Contains(r.Nodes[c.Addr], c.Size)
		if node {
			launched++
		}
		return node
	})
	if len(r.Nodes) > 0 && launched < 2*len(r.Nodes) {
		t.Errorf("the driver says %d changes of graph memory for %d nodes that were launched and freed", launched,
			len(r.Nodes))
	}
	for i := range driver {
		if driver[i].Kind == "sparse" { // without memory: the driver logs their extent, the trace has none
			driver[i].Size = 0
		}
	}
	for _, kind := range []string{"device", "managed", "host", "async", "vmm", "array", "sparse", "module", "ipc",
		"multicast", "context"} {
		if words := driver.Of(kind).Differs(r.Of(kind)); words != "" {
			t.Errorf("%s: %s", kind, words)
		}
	}
	var held uint64
	for _, size := range r.Reserves {
		held += size
	}
	if want := driver.Live("pool").Bytes; held != want {
		t.Errorf("pools hold %d bytes at the end, the trace says %d: %v", want, held, r.Reserves)
	}
}

// checkHealth requires that the analyzer had nothing to repair but what scheduling does: of a thread that does not run
// for half a second within a free, the drainer passes the record over (stuckAfter in interpose/drain.go), and it comes
// late. Then the block had given way to the next one at its address, once for each such free.
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
	if !h.Complete || h.DisplacedBlocks > h.LateFrees || h.UnmatchedFrees+h.UnmatchedMaps+h.UnmatchedReferences+
		h.FailedFrees+h.SequenceGaps+h.ImplausibleSizes != 0 {
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
		refusals += have.Refused
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

// compareTotals compares the summary's live memory at the end: what occupies the device in one account, everything else
// apart.
func compareTotals(t *testing.T, driver account.Account, r *account.Replay, s *report.Summary) {
	t.Helper()
	want := map[string]uint64{
		"driver":  driver.Live("device", "async", "vmm", "array", "module").Bytes,
		"managed": driver.Live("managed").Bytes, "host": driver.Live("host").Bytes, "foreign": driver.Live("ipc").Bytes,
		"multicast": driver.Live("multicast").Bytes,
		"address":   r.Live("address").Bytes, "graph": r.Live("graph").Bytes,
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

// isMarker reports whether a hook makes no event: such hooks tell the others when streams are captured, and which
// contexts are green.
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
		"NULLCUDA_DRIVER_VERSION=13050", fmt.Sprint("NULLCUDA_CONTEXT=", account.ContextBytes)}}
	if version != "" {
		r.env = append(r.env, "COVER_RUNTIME="+runtimePath(t, version))
	}
	return r
}

// Every hooked driver function by every route: the program behaves the same, and the trace agrees with the driver,
// change by change.
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

// namelessOn returns the routes on which a runtime call leaves no event with its name, and why.
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

// checkRuntimeNames requires that every runtime call is named by an event. A runtime that is linked statically, or
// whose functions were looked up with dlvsym, bypasses the hooks: then only the driver's calls are seen, and they are
// all that counts.
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
