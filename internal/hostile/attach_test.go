package hostile

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"memtrace/trace"
)

// From the time that memtrace attach reports, every call is in the trace, by every route; earlier calls are not, nor
// those after stop. The program goes on and ends as without it.
func TestAttach(t *testing.T) {
	t.Parallel()
	late := runtimeUser(t, "13")
	for _, link := range []struct {
		name  string
		flags []string
	}{
		{"lazy", []string{"-Wl,-z,lazy", "-Wl,-z,norelro"}},
		{"now", []string{"-Wl,-z,now", "-Wl,-z,relro"}},
		{"fixed", []string{"-no-pie"}},
	} {
		t.Run(link.name, func(t *testing.T) {
			program := compile(t, "attached-"+link.name, []string{"testdata/guest/attached.c"},
				append(withDriver(t), link.flags...)...)
			a := startProgram(t, program, run{}, nil, "quiet", late)
			a.do(t, "alloc 10 5001")
			said := a.attach(t)
			if !strings.Contains(said, "recording process "+a.pid()) || !strings.Contains(said, "stood still for") {
				t.Errorf("%s", said)
			}
			a.do(t, "alloc 20 5002")
			a.do(t, "fetched 30 5003")
			a.do(t, "late 5004")
			a.refused(t, "is recorded already", "attach", a.pid())
			a.well(t, "ctl", a.pid(), "mark", "half way")
			a.do(t, "alloc 1 5005")
			a.well(t, "ctl", a.pid(), "stop")
			a.do(t, "alloc 40 5006")
			a.refused(t, "can be recorded once", "attach", a.pid())
			a.refused(t, "it is not recording", "ctl", a.pid(), "stop")
			a.end(t)
			r := a.sizes(t, map[uint64]int{4999: 0, 5001: 0, 5002: 20, 5003: 30, 5004: 1, 5005: 1, 5006: 0})
			if r.info[trace.StartKey] != trace.StartedLate || r.info[trace.StopKey] == "" ||
				r.info[trace.StartAfterKey] == "" {
				t.Errorf("%v", r.info)
			}
			if n := r.count(func(e trace.Event) bool {
				return e.Kind == trace.EventMark && r.tables.String(e.Name) == "half way"
			}); n != 1 {
				t.Errorf("%d marks", n)
			}
			if left := a.sockets(t); left != nil {
				t.Errorf("it leaves %v", left)
			}
		})
	}
}

// The thread that the library is loaded by goes on waiting, and sees nothing of it: no result, no error number, no
// time, no register is another one. No other thread waits, so it is that one.
func TestAttachLeavesTheThreadAsItWas(t *testing.T) {
	t.Parallel()
	for _, wait := range []string{"poll", "timed-poll", "epoll", "select", "read", "receive", "semaphore",
		"timed-semaphore", "sleep", "registers"} {
		t.Run(wait, func(t *testing.T) {
			a := startAttached(t, nil, wait)
			if wait == "sleep" {
				a = attachToSleeper(t, a)
			} else {
				a.attach(t)
			}
			a.do(t, "alloc 5 5001")
			a.end(t)
			a.sizes(t, map[uint64]int{5001: 5, 6000: 1})
		})
	}
}

// attachToSleeper attaches to a program while it sleeps: one that was over before slept too short for this machine.
func attachToSleeper(t *testing.T, a *attached) *attached {
	t.Helper()
	for seconds := 1; ; seconds *= 2 {
		if said, well := a.memtrace(t, "attach", "-v", "--timeout", "900ms", a.pid()); well {
			return a
		} else if !strings.Contains(said, "no thread of the process waits") || seconds > 1000 {
			t.Fatal(said)
		}
		a.end(t)
		a = startAttached(t, nil, "sleep", strconv.Itoa(2*seconds))
	}
}

// A program that allocates all the time, in threads that hold the allocator's lock half of it, hangs for ever if a
// library is loaded in one of those: 20 of 20 did. ATTACHES makes the campaign longer.
func TestAttachStorm(t *testing.T) {
	t.Parallel()
	rounds := 5
	if n, err := strconv.Atoi(os.Getenv("ATTACHES")); err == nil {
		rounds = n
	}
	var stood []time.Duration
	for range rounds {
		a := startAttached(t, nil, "storm")
		_, text, _ := strings.Cut(a.attach(t), "stood still for ")
		text, _, _ = strings.Cut(text, "\n")
		still, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		stood = append(stood, still)
		a.do(t, "alloc 10 5001")
		a.do(t, "fork 3 5002")
		a.well(t, "ctl", a.pid(), "stop")
		a.do(t, "alloc 10 5003")
		a.end(t)
		found := 0
		for _, path := range (result{dir: a.dir}).traces(t) {
			if r := read(t, path); r.allocations(5001) == 10 && r.allocations(5003) == 0 && r.lost == 0 {
				found++
			}
		}
		if found != 1 {
			t.Fatalf("%d traces have what it did", found)
		}
	}
	slices.Sort(stood)
	t.Logf("%d attaches; a thread stood still for %v in the median, %v in 99 of 100, %v at most", rounds,
		stood[len(stood)/2], stood[len(stood)*99/100], stood[len(stood)-1])
}

// A process that makes no CUDA call, or none so far, is recorded from its first one on, as ever.
func TestAttachBeforeCUDA(t *testing.T) {
	t.Parallel()
	a := startAttached(t, nil, "nocuda")
	a.attach(t)
	a.do(t, "alloc 7 5001")
	a.end(t)
	a.sizes(t, map[uint64]int{4999: 1, 5001: 7})
}

// A library that is loaded asleep records nothing, and the program has no trace, until a request by ctl or by attach.
func TestAsleep(t *testing.T) {
	t.Parallel()
	for _, verb := range [][]string{{"ctl", "PID", "start"}, {"attach", "PID"}} {
		t.Run(verb[0], func(t *testing.T) {
			program := compile(t, "attached", []string{"testdata/guest/attached.c"}, withDriver(t)...)
			a := startProgram(t, program, run{preload: []string{""}}, []string{"MEMTRACE_START=asleep"}, "quiet")
			a.do(t, "alloc 10 5001")
			if said := a.well(t, "ctl", a.pid(), "status"); !strings.Contains(said, "is not recorded") {
				t.Errorf("%s", said)
			}
			a.refused(t, "it is not recording", "ctl", a.pid(), "mark", "x")
			a.refused(t, "is not recorded", "ctl", a.pid(), "referrers")
			for i, word := range verb {
				if word == "PID" {
					verb[i] = a.pid()
				}
			}
			a.well(t, verb...)
			a.do(t, "alloc 20 5002")
			a.end(t)
			a.sizes(t, map[uint64]int{4999: 0, 5001: 0, 5002: 20})
		})
	}
	program := compile(t, "attached", []string{"testdata/guest/attached.c"}, withDriver(t)...)
	a := startProgram(t, program, run{preload: []string{""}}, []string{"MEMTRACE_START=asleep"}, "quiet")
	a.do(t, "alloc 10 5001")
	a.end(t)
	if paths := (result{dir: a.dir}).traces(t); len(paths) != 0 || len(a.sockets(t)) != 0 {
		t.Errorf("nobody asked, and it leaves %v %v", paths, a.sockets(t))
	}
}

// A program that records anyway gets requests for a snapshot, a report and its end.
func TestControl(t *testing.T) {
	t.Parallel()
	program := compile(t, "attached", []string{"testdata/guest/attached.c"}, withDriver(t)...)
	a := startProgram(t, program, run{preload: []string{""}}, nil, "quiet")
	a.do(t, "alloc 10 5001")
	if said := a.well(t, "ctl", a.pid(), "status"); !strings.Contains(said, "is recorded in memtrace.attached") {
		t.Errorf("%s", said)
	}
	a.well(t, "ctl", a.pid(), "snapshot", "-o", "live.bin")
	if r := read(t, a.dir+"/live.bin"); r.allocations(4999) != 1 || r.allocations(5001) != 0 ||
		r.info[trace.SnapshotKey] == "" {
		t.Errorf("the snapshot has %d and %d allocations, %v", r.allocations(4999), r.allocations(5001), r.info)
	}
	a.refused(t, "live.bin exists", "ctl", a.pid(), "snapshot", "-o", "live.bin")
	if said := a.well(t, "ctl", a.pid(), "report"); !strings.Contains(said, "Device memory peaked at 9.77 KiB") {
		t.Errorf("%s", said)
	}
	a.refused(t, "is recorded already", "ctl", a.pid(), "start")
	a.refused(t, "no Python runs there", "ctl", a.pid(), "referrers")
	a.well(t, "ctl", a.pid(), "stop")
	a.do(t, "alloc 10 5002")
	a.end(t)
	a.sizes(t, map[uint64]int{4999: 1, 5001: 10, 5002: 0})
}
