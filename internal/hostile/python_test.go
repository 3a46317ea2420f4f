package hostile

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"memtrace/internal/spool"
	"memtrace/trace"
)

// useCUDA are the lines by which a Python program allocates through ctypes, as CuPy and Numba do.
const useCUDA = `
import ctypes, os, sys
def use(size, times):
    cuda = ctypes.CDLL("libcuda.so.1")
    context, address = ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
    for _ in range(times):
        assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
`

func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Python's own way to leave at once, out of a handler, out of a thread.
func TestPythonExit(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{
		"_exit":   "os._exit(3)",
		"thread":  "import threading\nthreading.Thread(target=lambda: os._exit(3)).start()\nwhile True: pass",
		"handler": "import signal\nsignal.signal(signal.SIGALRM, lambda *_: os._exit(3))\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\nwhile True: pass",
		"exit":    "sys.exit(3)",
		"raise":   "raise SystemExit(3)",
	} {
		t.Run(name, func(t *testing.T) {
			got := run{program: python(t), args: []string{"-c", useCUDA + "use(4321, 50)\n" + end}}.both(t, "")
			if got.exit != 3 {
				t.Errorf("exit %d", got.exit)
			}
			if n := got.only(t).allocations(4321); n != 50 {
				t.Errorf("%d of 50 allocations", n)
			}
		})
	}
}

// Pools of worker processes, by every way to start them: each worker that uses CUDA has a whole trace, the parent its
// own if it uses CUDA, and the helper processes in between have none. Workers end by os._exit.
func TestPythonMultiprocessing(t *testing.T) {
	t.Parallel()
	script := useCUDA + `
import multiprocessing
def work(number):
    use(1000 + number, 20)
    return number * 2
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    workers = [context.Process(target=work, args=(i,)) for i in range(4)]
    for w in workers: w.start()
    for w in workers: w.join()
    print([w.exitcode for w in workers])
    with context.Pool(2, maxtasksperchild=1) as pool:
        print(pool.map(abs, [1, -2, -3], chunksize=1))
    use(777, 5)
`
	for _, method := range []string{"fork", "spawn", "forkserver"} {
		t.Run(method, func(t *testing.T) {
			dir := t.TempDir()
			path := dir + "/program.py"
			write(t, path, script)
			got := run{program: python(t), args: []string{path, method}, dir: dir}.both(t, "")
			sizes := map[uint64]int{}
			for _, path := range got.traces(t) {
				r := read(t, path)
				if r.ended != spool.EndedClean || r.lost != 0 {
					t.Errorf("%s ended %s, %d lost", path, r.ended, r.lost)
				}
				for _, e := range r.events {
					if e.Kind == trace.EventAlloc {
						sizes[e.Size]++
					}
				}
			}
			want := "map[777:5 1000:20 1001:20 1002:20 1003:20]"
			if fmt.Sprint(sizes) != want || len(got.traces(t)) != 5 {
				t.Errorf("%d traces with %v, want 5 with %s", len(got.traces(t)), sizes, want)
			}
		})
	}
}

// A worker that is killed or crashes leaves what it recorded; its parent notices what it always notices.
func TestPythonWorkersThatDie(t *testing.T) {
	t.Parallel()
	script := useCUDA + `
import multiprocessing, signal
def work(how):
    use(1000, 20)
    if how == "kill": os.kill(os.getpid(), signal.SIGKILL)
    if how == "term": os.kill(os.getpid(), signal.SIGTERM)
    if how == "crash": ctypes.string_at(8)
    if how == "raise": raise SystemExit(5)
if __name__ == "__main__":
    for how in ["kill", "term", "crash", "raise"]:
        w = multiprocessing.Process(target=work, args=(how,))
        w.start(); w.join()
        print(how, w.exitcode)
`
	got := run{program: python(t), args: []string{"-c", script}}.both(t, "")
	if !strings.Contains(got.stdout, "kill -9") {
		t.Errorf("stdout\n%s", got.stdout)
	}
	ended := map[string]int{}
	for _, path := range got.traces(t) {
		r := read(t, path)
		ended[r.ended]++
		if r.allocations(1000) != 20 {
			t.Errorf("%s: %d allocations of 20", path, r.allocations(1000))
		}
	}
	if ended[spool.EndedKilled] != 3 || ended[spool.EndedClean] != 1 {
		t.Errorf("ended %v", ended)
	}
}

// No signal of the program may ever reach a thread of the library, on whose small stack its handler would run. Two are
// the C library's own.
func TestOurThreadsBlockSignals(t *testing.T) {
	t.Parallel()
	script := useCUDA + `
use(1000, 20)
seen = 0
while True:
    for task in os.listdir("/proc/self/task"):
        try:
            status = dict(l.split(":\t", 1) for l in open("/proc/self/task/%s/status" % task).read().splitlines() if ":\t" in l)
        except OSError:
            continue
        if status["Name"] == "memtrace":
            seen += 1
            blocked = int(status["SigBlk"], 16)
            for number in range(1, 65):
                if number not in (9, 19, 32, 33) and not blocked >> (number - 1) & 1:
                    print("signal", number, "may reach thread", task)
    if seen > 20 or len(sys.argv) < 2: break
`
	run{program: python(t), args: []string{"-c", script}}.both(t, "")
	if got := (run{program: python(t), args: []string{"-c", script, "look"}, preload: []string{""}}).do(
		t); got.stdout != "" || got.exit != 0 {
		t.Errorf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
	}
}

// The drainer's threads have a lower priority than the program's; the program's own keep theirs, whichever thread
// creates them and when.
func TestOurThreadsHaveLowerPriority(t *testing.T) {
	t.Parallel()
	script := useCUDA + `
import threading
use(1000, 20)
own = os.sched_getscheduler(0), int(open("/proc/self/timerslack_ns").read())
wanted = os.SCHED_BATCH if own[0] == os.SCHED_OTHER else own[0], 4000000
while True:
    looked = threading.Event()
    threading.Thread(target=looked.wait).start()
    ours, others = set(), set()
    for task in os.listdir("/proc/self/task"):
        try:
            name = open("/proc/self/task/%s/comm" % task).read().strip()
            (ours if name == "memtrace" else others).add((os.sched_getscheduler(int(task)), int(open("/proc/%s/timerslack_ns" % task).read())))
        except OSError:
            continue
    if others != {own}: print("the program's threads have", others)
    looked.set()
    if wanted in ours or len(sys.argv) < 2: break
`
	run{program: python(t), args: []string{"-c", script}}.both(t, "")
	if got := (run{program: python(t), args: []string{"-c", script, "look"}, preload: []string{""}}).do(
		t); got.stdout != "" || got.exit != 0 {
		t.Errorf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
	}
}
