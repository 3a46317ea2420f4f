//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memtrace/internal/render"
)

// difference returns the lines in which the second of two outcomes differs from the first, or "".
func (o outcome) difference(other outcome) string {
	var text strings.Builder
	if o.status != other.status {
		fmt.Fprintf(&text, "\nstatus %d, not %d", other.status, o.status)
	}
	for _, output := range [][2]string{{o.stdout, other.stdout}, {o.stderr, other.stderr}} {
		lines := [2][]string{strings.Split(output[0], "\n"), strings.Split(output[1], "\n")}
		for i, sign := range []string{"-", "+"} {
			for _, line := range lines[i] {
				if !slices.Contains(lines[1-i], line) {
					text.WriteString("\n" + sign + " " + line)
				}
			}
		}
	}
	if text.Len() == 0 && o != other {
		text.WriteString("\nthe same lines in another order or number")
	}
	return text.String()
}

// runScript runs a Python text with and without the library, and demands the same output and status. It returns the
// reports of the traces, by path.
func runScript(t *testing.T, script string, args ...string) (outcome, map[string]render.Document) {
	t.Helper()
	var got [2]outcome
	var dir string
	for i, plain := range []bool{true, false} {
		r := program{framework: torch27, source: script, args: append([]string{"script.py"}, args...), plain: plain,
			env: []string{"MEMTRACE_OUTPUT=DIR/t.%p.bin"}, mayFail: true}.record(t)
		got[i], dir = outcome{r.status, r.stdout, r.stderr}, r.dir
	}
	if text := got[0].quiet().difference(got[1].quiet()); text != "" {
		t.Errorf("with the library it is unlike without it:%s", text)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.bin"))
	if err != nil {
		t.Fatal(err)
	}
	reports := map[string]render.Document{}
	for _, path := range paths {
		reports[path] = jsonReport(t, path)
	}
	return got[1], reports
}

// quiet is the outcome without what differs from run to run on its error output: addresses, process ids, the names of
// files.
func (o outcome) quiet() outcome {
	var kept []string
	for _, line := range strings.Split(o.stderr, "\n") {
		if !strings.Contains(line, "0x") {
			kept = append(kept, stable(line))
		}
	}
	o.stderr = strings.Join(kept, "\n")
	return o
}

const trainer = `
import faulthandler, os, sys
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset

def train(number, steps=3):
    model = torch.nn.Linear(64 + number, 32).cuda()
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    for _ in range(steps):
        model(torch.zeros(8, 64 + number, device="cuda")).sum().backward()
        optimizer.step()
    return torch.cuda.memory_stats()["allocation.all.allocated"]

class Numbers(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.full((8,), float(i))
`

// DataLoader workers by every way to start them, with shared memory and pinning, and as they stay alive over epochs.
// The workers never touch CUDA and leave no file.
func TestDataLoaders(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, c := range [][]string{{"fork"}, {"fork", "persistent"}, {"spawn"}, {"forkserver", "persistent"}} {
		t.Run(strings.Join(c, " "), func(t *testing.T) {
			t.Parallel()
			rarely(t, len(c) == 1) // and workers that train, below, are spawned as well
			_, reports := runScript(t, trainer+`
if __name__ == "__main__":
    train(1)
    loader = DataLoader(Numbers(), batch_size=8, num_workers=2, pin_memory=True, multiprocessing_context=sys.argv[1], persistent_workers=len(sys.argv) > 2)
    total = 0.0
    for epoch in range(2):
        for batch in loader:
            on_device = batch.cuda(non_blocking=True)
            total += float(batch.sum())
    print(total)
`, c...)
			if len(reports) != 1 {
				t.Errorf("%d traces, want the parent's", len(reports))
			}
			for path, r := range reports {
				if r.Process.Ended != "clean" || r.Framework.AllocCount == 0 || !r.Health.Complete {
					t.Errorf("%s: %s", path, excerpt(r))
				}
			}
		})
	}
}

// Workers that train, by every way to start them. Each counts its own allocations and ends by os._exit, as
// multiprocessing has it; every trace has that number.
func TestTrainingWorkers(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, method := range []string{"fork", "spawn", "forkserver"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			rarely(t, method == "forkserver") // as loaders are, above
			got, reports := runScript(t, trainer+`
def work(number, queue):
    queue.put(train(number))

if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    queue = context.SimpleQueue()
    workers = [context.Process(target=work, args=(i, queue)) for i in range(2)]
    for w in workers: w.start()
    counts = [queue.get() for _ in workers]
    for w in workers: w.join()
    print(sorted(counts), [w.exitcode for w in workers])
    print(train(9))
`, method)
			counts := map[string]int{}
			for path, r := range reports {
				if r.Process.Ended != "clean" || !r.Health.Complete || r.LostRecords != 0 {
					t.Errorf("%s: %s", path, excerpt(r))
				}
				counts[fmt.Sprint(r.Framework.AllocCount)]++
			}
			for count, times := range counts {
				if strings.Count(strings.NewReplacer("[", " ", "]", " ", ",", " ", "\n", " ").Replace(got.stdout), " "+
					count+" ") < min(times, 1) {
					t.Errorf("a trace has %s allocations, the program says %s", count, got.stdout)
				}
			}
			if len(reports) != 3 {
				t.Errorf("%d traces of 3 processes", len(reports))
			}
		})
	}
}

// Ends that run no destructor, under the framework: the trace has what torch counted.
func TestTrainingEnds(t *testing.T) {
	t.Parallel()
	extended(t)
	for name, c := range map[string]struct {
		end, ended string
		status     int
	}{
		"os._exit":     {"os._exit(7)", "clean", 7},
		"exception":    {"raise RuntimeError('on purpose')", "clean", 1},
		"faulthandler": {"faulthandler.enable()\nimport ctypes\nctypes.string_at(8)", "killed", -1},
		"abort":        {"os.abort()", "killed", -1},
		"in a thread": {
			"import threading\nthreading.Thread(target=lambda: os._exit(8)).start()\nimport time\ntime.sleep(60)",
			"clean", 8},
		"by its parent": {"import signal\nos.kill(os.getpid(), signal.SIGTERM)", "killed", -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rarely(t, name == "in a thread" || name == "abort")
			got, reports := runScript(t, trainer+"print(train(2), flush=True)\n"+c.end+"\n")
			if got.status != c.status || len(reports) != 1 {
				t.Fatalf("status %d, want %d; %d traces", got.status, c.status, len(reports))
			}
			for _, r := range reports {
				if r.Process.Ended != c.ended || fmt.Sprintln(r.Framework.AllocCount) != got.stdout ||
					r.LostRecords != 0 {
					t.Errorf("ended %s, want %s; %d allocations, torch counted %s", r.Process.Ended, c.ended,
						r.Framework.AllocCount, got.stdout)
				}
				if exited := r.Process.ExitStatus; (exited != nil) != (c.ended == "clean") || exited != nil &&
					*exited != c.status {
					t.Errorf("exit status %v in the report, want %d", exited, c.status)
				}
			}
		})
	}
}

func TestOutcomeDifference(t *testing.T) {
	plain := outcome{0, "1\n2\n", ""}
	for _, c := range []struct {
		other outcome
		want  string
	}{
		{plain, ""},
		{outcome{-1, "1\n2\n", "aborted\n"}, "\nstatus -1, not 0\n+ aborted"},
		{outcome{0, "1\n3\n", ""}, "\n- 2\n+ 3"},
		{outcome{0, "2\n1\n", ""}, "\nthe same lines in another order or number"},
	} {
		if got := plain.difference(c.other); got != c.want {
			t.Errorf("%+v: %q, want %q", c.other, got, c.want)
		}
	}
}
