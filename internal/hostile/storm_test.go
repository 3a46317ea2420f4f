package hostile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"memtrace/internal/spool"
	"memtrace/trace"
)

// stormEvents is how many events a storm has; STORM_EVENTS is for the long form.
func stormEvents(t *testing.T) int {
	text := os.Getenv("STORM_EVENTS")
	if text == "" {
		return 400_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// storm returns how a storm is run under the library, with the trace's path.
func storm(t *testing.T, settings []string, args ...string) (*exec.Cmd, string) {
	t.Helper()
	return stormGuest(t, "storm", settings, args...)
}

// stormGuest compiles a guest and the driver that returns only numbers, and returns how the guest is run under the
// library, with the trace's path.
func stormGuest(t *testing.T, name string, settings []string, args ...string) (*exec.Cmd, string) {
	t.Helper()
	driver := numbersDriver(t)
	program := compile(t, name, []string{"testdata/guest/" + name + ".c"}, driver)
	path := filepath.Join(t.TempDir(), "t.bin")
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(driver), "LD_PRELOAD="+library(t),
		"MEMTRACE_OUTPUT="+path)
	cmd.Env = append(cmd.Env, settings...)
	cmd.Stderr = os.Stderr
	return cmd, path
}

// numbersDriver is the driver that returns only numbers, alone in its folder.
func numbersDriver(t *testing.T) string {
	t.Helper()
	return compile(t, "libcuda.so.1", []string{"testdata/guest/numbers_driver.c"}, "-shared", "-fPIC",
		"-Wl,-soname,libcuda.so.1")
}

// stormResult is what a trace holds of a storm.
type stormResult struct {
	allocs, frees, lost uint64
	whole               bool
	info                trace.Info
}

func runStorm(t *testing.T, settings []string, args ...string) stormResult {
	t.Helper()
	cmd, path := storm(t, settings, args...)
	if out, err := cmd.Output(); err != nil {
		t.Fatalf("storm %v: %v\n%s", args, err, out)
	}
	run, err := spool.OpenRun(path)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	var r stormResult
	for {
		events, err := run.ReadBatch()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			switch events[i].Kind {
			case trace.EventAlloc:
				r.allocs++
			case trace.EventFree:
				r.frees++
			}
		}
	}
	r.lost, _, _ = run.Lost()
	health := run.Health()
	r.whole = run.Ended() == spool.EndedClean && !health.Truncated && health.Gaps == 0 && !run.HasSpool()
	r.info = run.Info()
	return r
}

// Threads that keep all processors busy recorded faster than the drainer, with its lower priority, drained: with the
// usual settings a fifth of their records were lost, with a thousand threads nearly half, some threads had no ring, and
// lost frees made the peak too high.
func TestStormsLoseNothing(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{1, 4, 64, 1000} {
		for _, spin := range []int{0, 600} {
			t.Run(fmt.Sprintf("%d threads, spin %d", threads, spin), func(t *testing.T) {
				events := stormEvents(t) / threads / 2 * threads * 2
				r := runStorm(t, []string{fmt.Sprintf("SPIN=%d", spin), "MEMTRACE_SPOOL_MAX=4M"}, strconv.Itoa(threads),
					strconv.Itoa(events))
				if r.lost != 0 || r.allocs != uint64(events/2) || r.frees != uint64(events/2) || !r.whole {
					t.Errorf("%d allocations, %d frees of %d each; %d lost, whole %v, %v", r.allocs, r.frees, events/2,
						r.lost, r.whole, r.info)
				}
			})
		}
	}
}

// When the spool is full, threads wait for a moment, for a bounded time in all; what is lost then is counted, and frees
// are kept as long as there is any space.
func TestStormInASmallSpool(t *testing.T) {
	t.Parallel()
	const events = 400_000
	small := []string{"MEMTRACE_SPOOL_MAX=1M", "MEMTRACE_SPOOL_HARD_MAX=1M"}
	for _, c := range []struct {
		name   string
		drop   bool
		ending string
	}{{"wait", false, ""}, {"drop", true, ""}, {"in signal handlers", false, "handler"}} {
		t.Run(c.name, func(t *testing.T) {
			settings := small
			if c.drop {
				settings = append(settings[:2:2], "MEMTRACE_OVERFLOW=drop")
			}
			r := runStorm(t, settings, "4", strconv.Itoa(events), "16", c.ending)
			if c.ending == "" && r.allocs+r.frees+r.lost != events {
				t.Errorf("%d allocations, %d frees and %d lost of %d", r.allocs, r.frees, r.lost, events)
			}
			if r.allocs > r.frees {
				t.Errorf("%d allocations and %d frees were kept, %d lost: frees go last", r.allocs, r.frees, r.lost)
			}
			waits, _ := strconv.Atoi(r.info["overflow.waits"])
			if c.drop != (waits == 0) {
				t.Errorf("waited for %d records", waits)
			}
		})
	}
}

// A process whose first thread leaves early ends with its last thread, by itself.
func TestStormOutlivesItsFirstThread(t *testing.T) {
	t.Parallel()
	r := runStorm(t, nil, "4", "100000", "16", "pthread_exit")
	if !r.whole || r.lost != 0 {
		t.Errorf("whole %v, %d lost", r.whole, r.lost)
	}
}
