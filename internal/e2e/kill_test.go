//go:build e2e

package e2e

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// kills is how many children are killed: KILLS, or twenty.
func kills(t *testing.T) int {
	text := os.Getenv("KILLS")
	if text == "" {
		return 20
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("KILLS=%s is no number of kills", text)
	}
	return n
}

// A training process that is killed at any moment leaves everything that was committed until then, and the report shows
// that it was killed.
func TestKilledTraining(t *testing.T) {
	t.Parallel()
	p := program{framework: torch27, args: []string{"zygote.py"}}
	cmd, r := p.start(t)
	for i, v := range cmd.Env {
		if strings.HasPrefix(v, "MEMTRACE_OUTPUT=") {
			cmd.Env[i] = "MEMTRACE_OUTPUT=" + filepath.Join(r.dir, "%p.bin")
		}
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		cmd.Wait()
	}()
	out := bufio.NewScanner(pipe)
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	inFile := 0
	rounds := kills(t)
	for round := range rounds {
		if killOne(t, r.dir, in, out, random, round) {
			inFile++
		}
	}
	t.Logf("%d of %d kills came after the drainer had written a block", inFile, rounds)
}

// killOne starts a child, kills it some time after its first count, and compares. It reports whether the trace file
// itself held events already.
func killOne(t *testing.T, dir string, in io.Writer, out *bufio.Scanner, random *rand.Rand, round int) bool {
	t.Helper()
	counts := filepath.Join(dir, fmt.Sprintf("count%d", round))
	if err := os.WriteFile(counts, make([]byte, 8), 0o600); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, counts)
	if !out.Scan() {
		t.Fatal("the parent of the children has ended")
	}
	pid, err := strconv.Atoi(out.Text())
	if err != nil {
		t.Fatal(err)
	}
	counted := func() uint64 {
		b, err := os.ReadFile(counts)
		if err != nil {
			t.Fatal(err)
		}
		return binary.LittleEndian.Uint64(b)
	}
	until(t, "the child trains", func() bool { return counted() > 0 })
	// A moment by chance, up to two seconds, short ones more often: before the first flush, in the middle of one,
	// between two. Nothing is waited for.
	time.Sleep(time.Duration(random.Float64() * random.Float64() * float64(2*time.Second)))
	syscall.Kill(pid, syscall.SIGKILL)
	out.Scan()
	trace := filepath.Join(dir, fmt.Sprintf("%d.bin", pid))
	st, err := os.Stat(trace)
	if err != nil {
		t.Fatal(err)
	}
	rep := jsonReport(t, trace)
	if want := counted(); rep.Framework.AllocCount < want {
		t.Errorf("round %d: %d allocations were committed, the report has %d", round, want, rep.Framework.AllocCount)
	}
	if rep.Process.Ended != "killed" || rep.LostRecords != 0 || rep.Health.SequenceGaps > 1 {
		t.Errorf("round %d: ended %q, %d lost, %d missing", round, rep.Process.Ended, rep.LostRecords,
			rep.Health.SequenceGaps)
	}
	if text := memtrace(t, "report", trace); !strings.Contains(text, "killed") {
		t.Errorf("round %d: the report does not say that the run was killed:\n%s", round, text)
	}
	return st.Size() > 4096
}

// A program may use CUDA long before it loads its framework. While it runs, and should it be killed, its trace names
// the framework all the same.
func TestFrameworkLoadedLate(t *testing.T) {
	t.Parallel()
	extended(t)
	script := filepath.Join(t.TempDir(), "late.py")
	const text = `
import ctypes, os, sys, time
driver = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_uint64()
assert driver.cuInit(0) == driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == driver.cuCtxSetCurrent(context) == 0
assert driver.cuMemAlloc_v2(ctypes.byref(block), 1 << 20) == 0
while b"cuda.driver_version" not in open(os.environ["MEMTRACE_OUTPUT"], "rb").read():
    time.sleep(0.01)  # until the drainer has named what the program is made of
import torch
kept = torch.ones(1024, device="cuda")
print("ready", torch.cuda.memory_allocated(), flush=True)
sys.stdin.readline()
`
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g := startPaused(t, script, 0)
	g.waitReady(t)
	until(t, "the trace of the running program names PyTorch", func() bool {
		return jsonReport(t, g.trace).Versions["torch"] != ""
	})
	g.cmd.Process.Kill()
	g.cmd.Wait()
	if rep := jsonReport(t, g.trace); rep.Process.Ended != "killed" || rep.Versions["torch"] == "" {
		t.Errorf("ended %q, versions %v", rep.Process.Ended, rep.Versions)
	}
}
