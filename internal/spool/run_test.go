package spool_test

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"memtrace/internal/guest"
	"memtrace/internal/spool"
	"memtrace/trace"
)

const recorderSource = "testdata/guest/recorder.c"

// record starts the recorder with its output below a fresh folder and returns the command and the trace's path.
func record(t *testing.T, program string, env []string, args ...string) (*exec.Cmd, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.bin")
	cmd := exec.Command(program, args...)
	cmd.Env = append(append(os.Environ(), "MEMTRACE_OUTPUT="+path), env...)
	cmd.Stderr = os.Stderr
	return cmd, path
}

// readAll returns a run's events and the run, which the test closes.
func readAll(t *testing.T, path string) ([]trace.Event, *spool.Run) {
	t.Helper()
	run, err := spool.OpenRun(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	var events []trace.Event
	for {
		batch, err := run.ReadBatch()
		if errors.Is(err, io.EOF) {
			return events, run
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, batch...)
	}
}

// perThread checks that each recorder thread's events are there from the first on without a hole, and returns how many
// each has.
func perThread(t *testing.T, events []trace.Event) map[uint64]uint64 {
	t.Helper()
	have := map[uint64]uint64{}
	var last uint64
	for _, e := range events {
		if e.Seq <= last {
			t.Fatalf("event %d stands after %d", e.Seq, last)
		}
		last = e.Seq
		if e.Kind != trace.EventAlloc {
			continue
		}
		thread, number := e.Addr>>40, e.Addr&(1<<40-1)
		if number != have[thread]+1 {
			t.Fatalf("thread %d: event %d follows %d", thread, number, have[thread])
		}
		have[thread] = number
	}
	return have
}

func TestSpoolAlone(t *testing.T) {
	program := guest.Recorder(t, recorderSource)
	cmd, path := record(t, program, nil, "4", "10000")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, path + spool.Extension} {
		events, run := readAll(t, p)
		have := perThread(t, events)
		for thread := uint64(1); thread <= 4; thread++ {
			if have[thread] != 10000 {
				t.Errorf("thread %d: %d events of 10000", thread, have[thread])
			}
		}
		if run.Ended() != spool.EndedClean {
			t.Errorf("ended %q", run.Ended())
		}
		if info := run.Info(); info["process.command"] == "" || info["process.exe"] == "" ||
			!strings.HasPrefix(info["drain"], "off: ") {
			t.Errorf("info %v", info)
		}
		checkTags(t, events, run)
	}
}

func checkTags(t *testing.T, events []trace.Event, run *spool.Run) {
	t.Helper()
	want := []string{"outer.inner", "outer"}
	for i, tag := range want {
		if got := run.Tables().String(events[i].Tag); got != tag {
			t.Errorf("event %d has tag %q, want %q", i, got, tag)
		}
	}
	if e := events[2]; e.Kind != trace.EventMark || run.Tables().String(e.Name) != "begin" {
		t.Errorf("third event is %+v", e)
	}
	if e := events[3]; e.Kind != trace.EventStep || e.Count != 7 {
		t.Errorf("fourth event is %+v", e)
	}
	if _, ok := run.Tables().ModuleAt(run.Tables().Stack(events[0].Stack)[0] - 1); !ok {
		t.Error("the caller's module is not in the dictionary")
	}
}

// What the dead process had counted as committed must be there, whatever the moment of its death.
func TestKilledAtAnyMoment(t *testing.T) {
	program := guest.Recorder(t, recorderSource)
	for i := range 20 {
		counts := filepath.Join(t.TempDir(), "counts")
		cmd, path := record(t, program, []string{"COUNT=" + counts}, "3", "400000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for { // a moment that differs from round to round, by what the first thread has done
			b, err := os.ReadFile(counts)
			if err == nil && len(b) >= 16 && binary.LittleEndian.Uint64(b[8:]) > uint64(i*i*100) {
				break
			}
			time.Sleep(100 * time.Microsecond)
		}
		cmd.Process.Kill()
		cmd.Wait()
		b, err := os.ReadFile(counts)
		if err != nil {
			t.Fatal(err)
		}
		events, run := readAll(t, path)
		have := perThread(t, dropLostTail(events, run))
		for thread := uint64(1); thread <= 3; thread++ {
			counted := binary.LittleEndian.Uint64(b[8*thread:])
			if lost, _, _ := run.Lost(); have[thread]+lost < counted {
				t.Errorf("round %d, thread %d: %d events read, %d lost, %d were committed", i, thread, have[thread],
					lost, counted)
			}
		}
		if run.Ended() != spool.EndedKilled {
			t.Errorf("ended %q", run.Ended())
		}
	}
}

// dropLostTail keeps events as they are when nothing was lost; when the rings were full, later events of a thread are
// missing from some point on, which perThread accepts as a shorter run.
func dropLostTail(events []trace.Event, _ *spool.Run) []trace.Event { return events }

func TestOverflowIsCounted(t *testing.T) {
	program := guest.Recorder(t, recorderSource)
	cmd, path := record(t, program, []string{"MEMTRACE_SPOOL_MAX=1M", "MEMTRACE_SPOOL_HARD_MAX=1M"}, "2", "50000")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	events, run := readAll(t, path)
	records, _, _ := run.Lost()
	allocs := uint64(0)
	for _, e := range events {
		if e.Kind == trace.EventAlloc {
			allocs++
		}
	}
	if records == 0 || allocs+records != 100002 {
		t.Errorf("%d events and %d lost, together not the 100002 that happened", allocs, records)
	}
}

func TestForkedChildHasItsOwn(t *testing.T) {
	program := guest.Recorder(t, recorderSource)
	cmd, path := record(t, program, nil, "1", "10", "fork")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	parent, _ := readAll(t, path)
	child, run := readAll(t, strings.TrimSuffix(path, ".bin")+".1.bin")
	if len(parent) != 2+2+10 || len(child) != 1 {
		t.Errorf("parent has %d events, child %d", len(parent), len(child))
	}
	if child[0].Addr&0xffff != 101 || run.Info()["process.pid"] == "" {
		t.Errorf("child's event is %+v", child[0])
	}
}

func TestFinalize(t *testing.T) {
	program := guest.Recorder(t, recorderSource)
	spoolDir := filepath.Join(t.TempDir(), "spools")
	for _, env := range [][]string{nil, {"MEMTRACE_SPOOL_DIR=" + spoolDir}} {
		cmd, path := record(t, program, env, "2", "3000", "kill")
		cmd.Run()
		before, _ := readAll(t, path)
		if err := spool.Finalize(path); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(path + spool.Extension); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the spool is still there: %v", err)
		}
		after, run := readAll(t, path)
		if len(after) != len(before) || run.Ended() != spool.EndedKilled {
			t.Errorf("%d events before, %d after; ended %q", len(before), len(after), run.Ended())
		}
		for i := range after {
			if after[i] != before[i] {
				t.Fatalf("event %d was %+v and is %+v", i, before[i], after[i])
			}
		}
		checkTags(t, after, run)
	}
	if left, _ := os.ReadDir(spoolDir); len(left) != 0 {
		t.Errorf("%d spools left in MEMTRACE_SPOOL_DIR", len(left))
	}
}

// TestFinalizeRecordsTheSignal: a process's observer has the signal that ended it written into that process's trace,
// and into no other.
func TestFinalizeRecordsTheSignal(t *testing.T) {
	program := guest.Recorder(t, recorderSource)
	for _, test := range []struct {
		other int // added to the process's number
		want  string
	}{{0, "SIGFPE"}, {1, ""}} {
		cmd, path := record(t, program, nil, "2", "300", "kill")
		cmd.Run()
		if err := spool.FinalizeEnded(path, cmd.Process.Pid+test.other, "SIGFPE"); err != nil {
			t.Fatal(err)
		}
		if _, run := readAll(t, path); run.Info()[trace.SignalKey] != test.want || run.Ended() != spool.EndedKilled {
			t.Errorf("%q, ended %q, want %q", run.Info()[trace.SignalKey], run.Ended(), test.want)
		}
	}
}

func TestRunningProcess(t *testing.T) {
	program := guest.Recorder(t, recorderSource)
	cmd, path := record(t, program, nil, "2", "100", "linger")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	events, run := readAll(t, path)
	if len(events) != 204 || run.Ended() != spool.EndedRunning {
		t.Errorf("%d events, ended %q", len(events), run.Ended())
	}
	if err := spool.Finalize(path); !errors.Is(err, spool.ErrRunning) {
		t.Errorf("Finalize of a living process's spool: %v", err)
	}
	copyOfRunning(t, path)
	in.Close()
	cmd.Wait()
}

// copyOfRunning: a copy of a running program's trace lacks no event, and does not know how the program ended; it was
// said to be killed.
func copyOfRunning(t *testing.T, path string) {
	t.Helper()
	src, err := spool.OpenRun(path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	copied := filepath.Join(t.TempDir(), "copy.bin")
	file, err := os.Create(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := trace.NewWriter(file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Copy(w, src, trace.Unedited{}); err != nil {
		t.Fatal(err)
	}
	events, run := readAll(t, copied)
	if h := run.Health(); len(events) != 204 || run.Ended() != spool.EndedUnknown || h.NoEnd != "" || h.Gaps != 0 {
		t.Errorf("copy: %d events, ended %q, %+v", len(events), run.Ended(), h)
	}
}
