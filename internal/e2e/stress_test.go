//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"memtrace/internal/guest"
)

var stressStacks = []string{"native:64,python:128", "full", "native:16,python:256", "nofrees"}

// Threads that fork, load and unload libraries, raise through C++, take signals on other stacks, run fibers,
// generators, coroutines and greenlets, and allocate all the while, compute what they compute without the library, and
// leave traces that are whole. There is a round for each way to take stacks; with STRESS_SECONDS as many as fit in.
// STRESS_SEED is where to begin.
func TestStress(t *testing.T) {
	t.Parallel()
	extended(t)
	seconds, seed := 0, 1
	for name, value := range map[string]*int{"STRESS_SECONDS": &seconds, "STRESS_SEED": &seed} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			*value = n
		}
	}
	c := combination{torch27, ""}
	needPackage(t, c, "greenlet")
	built := t.TempDir()
	build := exec.Command(filepath.Join(guest.Root(), "testdata", "stress", "build.sh"), built,
		filepath.Join(venv(t, c.framework, c.python), "nullcuda"))
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	rounds, events := 0, uint64(0)
	for ; !t.Failed() && (rounds < len(stressStacks) || time.Now().Before(end)); rounds++ {
		events += stressOnce(t, c, built, seed+rounds, rounds)
	}
	t.Logf("%d rounds, %d events", rounds, events)
}

// stressOnce runs the same actions with and without the library and returns how many events the traces have.
func stressOnce(t *testing.T, c combination, built string, seed, round int) (events uint64) {
	t.Helper()
	actions := "40"
	if round%5 == 4 {
		actions = "200" // a process that lives longer
	}
	env := []string{"MEMTRACE_STACKS=" + stressStacks[round%len(stressStacks)], "MEMTRACE_SPOOL_MAX=512M"}
	var got [2]outcome
	var dir string
	for i, plain := range []bool{true, false} {
		p := program{framework: c.framework, python: c.python, plain: plain, env: env,
			args: []string{"../stress/stress.py", "--library", filepath.Join(built, "libstress.so"), "--seed",
				strconv.Itoa(seed), "--actions", actions}}
		cmd, r := p.start(t)
		cmd.Env = append(cmd.Env, "MEMTRACE_OUTPUT="+filepath.Join(r.dir, "t.%p.bin"))
		got[i], dir = runOne(t, cmd), r.dir
		os.Remove(r.log)
	}
	if got[0].status != 0 {
		t.Errorf("seed %d: without the library %+v", seed, got[0])
	}
	if text := got[0].difference(got[1]); text != "" {
		t.Errorf("seed %d, %s: with the library it is unlike without it:%s", seed, env[0], text)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.bin"))
	if err != nil || len(paths) == 0 {
		t.Errorf("seed %d: no traces: %v", seed, err)
	}
	for _, path := range paths {
		rep := jsonReport(t, path)
		events += rep.Health.Events
		// A thread that a busy machine left inside a free for half a second delivers its events late, which the report
		// shows.
		whole := rep.Health.Complete || rep.LostRecords > 0 || rep.Health.LateEvents > 0
		if !whole || rep.Process.Ended == "killed" {
			t.Errorf("seed %d: %s: %s", seed, path, excerpt(rep))
		}
	}
	if t.Failed() {
		kept, _ := os.MkdirTemp("", "memtrace-stress")
		t.Logf("the traces are in %s", kept)
		for _, path := range paths {
			fmt.Fprintln(os.Stderr, strings.TrimSpace(path), os.Rename(path, filepath.Join(kept, filepath.Base(path))))
		}
	}
	os.RemoveAll(dir)
	return events
}
