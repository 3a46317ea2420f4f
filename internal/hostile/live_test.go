package hostile

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"memtrace/internal/spool"
	"memtrace/trace"
)

// command returns the built command.
func command(t *testing.T) string { return built(t, "", "build/memtrace", "make cli") }

// start starts a program under the library and returns once it has written its first line, which is returned.
func start(t *testing.T, dir, program string, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), run{preload: []string{""}}.environment(t)...)
	_, err := cmd.StdinPipe() // open until the program is waited for
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	lines.Scan()
	return cmd, lines.Text()
}

// traceIn returns the one trace in a folder.
func traceIn(t *testing.T, dir string) string {
	t.Helper()
	paths := (result{dir: dir}).traces(t)
	if len(paths) != 1 {
		t.Fatalf("%d traces", len(paths))
	}
	return paths[0]
}

// A program that has replaced itself by another one has the same pid and start time, and records no more.
func TestReplacedProgramIsGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, _ := start(t, dir, endings(t), "exec-waits")
	exe := ""
	replaced := func() bool {
		exe, _ = os.Readlink(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "exe"))
		return exe != "" && filepath.Base(exe) != "endings"
	}
	if !await(cmd.Process.Pid, replaced) {
		t.Fatal("the program ends")
	}
	path := traceIn(t, dir)
	if r := read(t, path); r.ended != spool.EndedKilled || r.allocations(firstSize) != 100 {
		t.Errorf("now %s runs; ended %s, %d allocations of 100", exe, r.ended, r.allocations(firstSize))
	}
	if err := spool.Finalize(path); err != nil {
		t.Error(err)
	}
	if r := read(t, path); r.ended != spool.EndedKilled || r.allocations(firstSize) != 100 {
		t.Errorf("afterwards: ended %s, %d allocations of 100", r.ended, r.allocations(firstSize))
	}
}

// A process whose first thread has ended looks like a zombie, and goes on.
func TestWithoutFirstThread(t *testing.T) {
	t.Parallel()
	program := compile(t, "headless", []string{`#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "cuda.h"
static void *go_on(void *unused) {
  uint64_t p;
  void *context;
  char text[100] = "";
  while (!strstr(text, ") Z ")) { /* the first thread is still there */
    FILE *stat = fopen("/proc/self/stat", "r");
    if (!fgets(text, sizeof text, stat)) return unused;
    fclose(stat);
  }
  if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuMemAlloc_v2(&p, 1000)) return unused;
  puts("goes on");
  fflush(stdout);
  getchar();
  return unused;
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, go_on, 0);
  pthread_exit(0);
}
`}, withDriver(t)...)
	dir := t.TempDir()
	in, keep, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd := exec.Command(program)
	cmd.Stdin, cmd.Dir = in, dir
	cmd.Env = append(os.Environ(), run{preload: []string{""}}.environment(t)...)
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "goes on\n" {
		t.Fatalf("%q %v", line, err)
	}
	path := traceIn(t, dir)
	if r := read(t, path); r.ended != spool.EndedRunning || r.allocations(1000) != 1 {
		t.Errorf("ended %s, %d allocations of 1", r.ended, r.allocations(1000))
	}
	if err := spool.Finalize(path); !errors.Is(err, spool.ErrRunning) {
		t.Errorf("Finalize of a running process: %v", err)
	}
	keep.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if r := read(t, path); r.ended != spool.EndedClean || r.allocations(1000) != 1 {
		t.Errorf("ended %s, %d allocations of 1", r.ended, r.allocations(1000))
	}
}

// A report of a run that goes on, by several readers at once, again and again while the drainer flushes: each sees
// everything that was committed when it began, reports that the program still runs, and disturbs nothing.
func TestReadersOfARunningProgram(t *testing.T) {
	t.Parallel()
	b := startBusy(t, 1, 1000, nil)
	counted := func() int { return b.counts()[0] }
	path := traceIn(t, b.dir)
	var readers sync.WaitGroup
	for range 3 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for range 8 {
				before := counted()
				checkRunning(t, path, counted)
				await(b.cmd.Process.Pid, func() bool { return counted() > before+500 })
			}
		}()
	}
	readers.Wait()
	text, err := exec.Command(command(t), "report", path).CombinedOutput()
	if err != nil || !strings.Contains(string(text), "still running") {
		t.Errorf("the report of a running program: %v\n%s", err, text)
	}
	profileOfRunning(t, path)
	b.input.Close()
	if err := b.cmd.Wait(); err != nil {
		t.Error(err)
	}
	b.check(t, path, spool.EndedClean)
}

// profileOfRunning: a profile of a program that still runs is a snapshot, which is said then, and the tables call it
// incomplete. While the program allocated, no profile was written: its last allocation was never reached.
func profileOfRunning(t *testing.T, path string) {
	t.Helper()
	folder := t.TempDir()
	profile := filepath.Join(folder, "p.mtp")
	text, err := exec.Command(command(t), "profile", "-o", profile, path).CombinedOutput()
	if err != nil || !strings.Contains(string(text), "still runs, so its profile is a snapshot of the first ") {
		t.Errorf("the profile of a running program: %v\n%s", err, text)
	}
	text, err = exec.Command(command(t), "report", profile).CombinedOutput()
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(text)), " "),
		"still running; what came later is not counted") {
		t.Errorf("the report of that profile: %v\n%s", err, text)
	}
	text, err = exec.Command(command(t), "export", "parquet", "-o", folder, path).CombinedOutput()
	if err != nil || !strings.Contains(string(text), "1 trace is not whole: see the columns complete") {
		t.Errorf("the tables of a running program: %v\n%s", err, text)
	}
}

// checkRunning reads a trace beside its writer.
func checkRunning(t *testing.T, path string, counted func() int) {
	before := counted()
	source, err := spool.OpenRun(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer source.Close()
	allocations, last := 0, uint64(0)
	for {
		events, err := source.ReadBatch()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Error(err)
			return
		}
		for _, e := range events {
			if e.Seq <= last && e.Flags&trace.FlagLate == 0 {
				t.Errorf("event %d stands after %d", e.Seq, last)
				return
			}
			last = max(last, e.Seq)
			if e.Kind == trace.EventAlloc {
				allocations++
			}
		}
	}
	if after := counted(); allocations < before || allocations > after+1 || source.Ended() != spool.EndedRunning {
		t.Errorf("%d allocations read between counts of %d and %d, ended %s", allocations, before, after,
			source.Ended())
	}
	if h := source.Health(); h.Truncated || h.Gaps > 1 {
		t.Errorf("health %+v", h)
	}
}
