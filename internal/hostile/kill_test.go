package hostile

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/spool"
	"memtrace/trace"
)

// kills is how often a program is killed: KILLS, or few.
func kills(few int) int {
	if n, err := strconv.Atoi(os.Getenv("KILLS")); err == nil && n > 0 {
		return n
	}
	return few
}

// busy is a program that allocates in threads until it is killed or its input is closed.
type busy struct {
	cmd     *exec.Cmd
	dir     string
	threads int
	input   *os.File
}

// startBusy starts one, by the words before it if there are any, and returns once every thread has allocated.
func startBusy(t *testing.T, threads, pause int, env []string, before ...string) *busy {
	t.Helper()
	program := compile(t, "busy", []string{"testdata/guest/busy.c"}, withDriver(t)...)
	in, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	args := append(before, program, strconv.Itoa(threads), strconv.Itoa(pause))
	b := &busy{cmd: exec.Command(args[0], args[1:]...), dir: t.TempDir(), threads: threads, input: input}
	how := run{env: env}
	if len(before) == 0 {
		how.preload = []string{""}
	}
	// a runner that is killed leaves its list of traces
	b.cmd.Env = append(append(os.Environ(), how.environment(t)...), "TMPDIR="+b.dir)
	b.cmd.Dir, b.cmd.Stdin, b.cmd.Stderr = b.dir, in, os.Stderr
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		input.Close()
		syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
		b.cmd.Wait()
	})
	if !await(b.cmd.Process.Pid, func() bool { counts := b.counts(); return counts != nil && slices.Min(counts) > 0 }) {
		t.Fatal("the program ends before it allocates")
	}
	return b
}

// goOn returns once the first thread has allocated so many times more.
func (b *busy) goOn(t *testing.T, pid, times int) {
	t.Helper()
	before := b.counts()[0]
	if !await(pid, func() bool { return b.counts()[0] >= before+times }) {
		t.Fatal("the program ends")
	}
}

// counts returns what each thread had made when it was last heard of.
func (b *busy) counts() []int {
	text, err := os.ReadFile(filepath.Join(b.dir, "count"))
	if err != nil || len(text) < 8*b.threads {
		return nil
	}
	counts := make([]int, b.threads)
	for i := range counts {
		counts[i] = int(binary.LittleEndian.Uint64(text[8*i:]))
	}
	return counts
}

// check compares a trace with the counts. Each thread may have been between its call and its count.
func (b *busy) check(t *testing.T, path, ended string) {
	t.Helper()
	counts, r := b.counts(), read(t, path)
	if r.ended != ended || r.lost != 0 {
		t.Errorf("ended %s, want %s; %d lost", r.ended, ended, r.lost)
	}
	if h := r.health; h.Gaps != 0 || h.Truncated {
		t.Errorf("%d gaps, truncated at %d: %s; %d calls in flight", h.Gaps, h.TruncatedAt, h.Reason, h.InFlight)
	}
	have := make([]int, b.threads)
	var last uint64
	for _, e := range r.events {
		if e.Flags&trace.FlagLate == 0 && e.Kind != trace.EventLost {
			if e.Seq <= last {
				t.Fatalf("event %d stands after %d", e.Seq, last)
			}
			last = e.Seq
		}
		if e.Kind == trace.EventAlloc && e.Size >= 1000 && e.Size < 1000+uint64(b.threads) {
			have[e.Size-1000]++
		}
	}
	for i := range have {
		if have[i] < counts[i] || have[i] > counts[i]+1 {
			t.Errorf("thread %d: %d allocations in the trace, %d were counted", i, have[i], counts[i])
		}
	}
}

// Killed at any moment under full load, so often in the middle of a flush: what was committed is there, for two readers
// at once, and still when the spool was merged into the trace.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	for round := range kills(8) {
		// A full spool would count losses instead: pause a little, and have space.
		b := startBusy(t, 1+round%4, 1000, []string{"MEMTRACE_SPOOL_MAX=1G"})
		b.goOn(t, b.cmd.Process.Pid, int(rand.Float64()*rand.Float64()*60000))
		b.cmd.Process.Kill()
		b.cmd.Wait()
		path := traceIn(t, b.dir)
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() { b.check(t, path, spool.EndedKilled) })
		}
		readers.Wait()
		if err := spool.Finalize(path); err != nil {
			t.Error(err)
		}
		b.check(t, path, spool.EndedKilled)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

// The drainer's write ends in the middle of a section, at any byte: what the file lacks, the spool has.
const cutAllocations = 100 + 10 + 3*20000

func TestCutWhileDraining(t *testing.T) {
	t.Parallel()
	for round := range 6 {
		limit := 20000 + 2237*round
		got := run{program: endings(t), args: []string{"fsize-later"},
			env: []string{"FSIZE=" + strconv.Itoa(limit)}}.both(t, "file too large")
		path := traceIn(t, got.dir)
		if st, err := os.Stat(path); err != nil || st.Size() != int64(limit) {
			t.Errorf("the trace was not cut at %d: %v", limit, err)
		}
		for _, when := range []string{"beside its spool", "merged"} {
			r := read(t, path)
			allocs := r.count(func(e trace.Event) bool { return e.Kind == trace.EventAlloc && e.Size != 500 })
			if allocs != cutAllocations || r.lost != 0 || r.ended != spool.EndedClean {
				t.Errorf("cut at %d, %s: %d allocations of %d, %d lost, ended %s", limit, when, allocs, cutAllocations,
					r.lost, r.ended)
			}
			if err := spool.Finalize(path); err != nil {
				t.Error(err)
			}
		}
	}
}

// `memtrace run` is killed: the program goes on, ends when it would, and its trace is whole.
func TestRunnerKilled(t *testing.T) {
	t.Parallel()
	b := startBusy(t, 2, 1000, nil, command(t), "run", "-q", "-o", "memtrace.%p.bin", "--")
	pid := childOf(t, b.cmd.Process.Pid)
	b.cmd.Process.Kill()
	b.cmd.Wait()
	b.goOn(t, pid, 1000)
	path := traceIn(t, b.dir)
	if r := read(t, path); r.ended != spool.EndedRunning {
		t.Errorf("ended %s while the program goes on", r.ended)
	}
	b.input.Close()
	awaitEnd(pid)
	b.check(t, path, spool.EndedClean)
}

// Runner and program are killed together, as a job manager does it.
func TestGroupKilled(t *testing.T) {
	t.Parallel()
	b := startBusy(t, 3, 1000, nil, command(t), "run", "-q", "-o", "memtrace.%p.bin", "--")
	pid := childOf(t, b.cmd.Process.Pid)
	b.goOn(t, pid, 1000)
	syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
	b.cmd.Wait()
	awaitEnd(pid)
	path := traceIn(t, b.dir)
	b.check(t, path, spool.EndedKilled)
	if text, err := exec.Command(command(t), "report", path).CombinedOutput(); err != nil ||
		!strings.Contains(string(text), "killed") {
		t.Errorf("%v\n%s", err, text)
	}
}

// The program is killed under its runner, which reports that, merges, writes a profile of all that was recorded, and
// ends with the status of a shell.
func TestKilledUnderRunner(t *testing.T) {
	t.Parallel()
	b := startBusy(t, 2, 1000, nil, command(t), "run", "-q", "--profile", "-o", "memtrace.%p.bin", "--")
	syscall.Kill(childOf(t, b.cmd.Process.Pid), syscall.SIGKILL)
	if b.cmd.Wait(); b.cmd.ProcessState.ExitCode() != 128+9 {
		t.Errorf("the runner ended with %s", b.cmd.ProcessState)
	}
	path := traceIn(t, b.dir)
	if _, err := os.Lstat(path + spool.Extension); err == nil {
		t.Error("the spool was not merged")
	}
	b.check(t, path, spool.EndedKilled)
	profile := strings.TrimSuffix(path, ".bin") + ".mtp"
	for _, file := range []string{path, profile} {
		text, err := exec.Command(command(t), "report", "--json", file).CombinedOutput()
		var s report.Summary
		if err := errors.Join(err, json.Unmarshal(text, &s)); err != nil {
			t.Fatalf("%s: %v\n%s", file, err, text)
		}
		if p, h := s.Process, s.Health; p.Ended != report.EndedKilled || p.Signal != "SIGKILL" || !h.Complete ||
			h.Events != uint64(len(read(t, path).events)) {
			t.Errorf("%s: %+v, %+v", file, p, h)
		}
	}
}

// childOf returns the one child of a process.
func childOf(t *testing.T, pid int) int {
	t.Helper()
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		if child, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return child
		}
	}
	t.Fatalf("process %d has no child", pid)
	return 0
}
