//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// `memtrace run` as the README has it: the program's output and status pass through, one closing line names the next
// command, and that command works.
func TestRunCommand(t *testing.T) {
	t.Parallel()
	cmd, r := program{framework: torch27, args: []string{"lstm.py"}, plain: true}.start(t)
	program := cmd.Args
	cmd.Path = command()
	cmd.Args = append([]string{"memtrace", "run", "-o", r.trace, "--"}, program...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	closing := strings.TrimSpace(stderr.String())
	if !strings.Contains(closing, "memtrace report") || strings.Contains(stdout.String(), "memtrace") {
		t.Errorf("stdout %q, stderr %q", stdout.String(), closing)
	}
	if rep := jsonReport(t, r.trace); rep.Framework.PeakBytes == 0 || rep.Process.Ended != "clean" {
		t.Errorf("the report says: %s", excerpt(rep))
	}
}

// The DataLoader's forked workers and the program itself: one trace, and no file of a worker that never touched CUDA.
func TestDataLoaderWorkers(t *testing.T) {
	t.Parallel()
	const source = `
import torch
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.zeros(256, 8))
x = torch.zeros(1024, device="cuda")
for epoch in range(2):
    for (batch,) in DataLoader(data, batch_size=32, num_workers=2, pin_memory=True):
        y = batch.cuda(non_blocking=True)
torch.cuda.synchronize()
print("done", torch.cuda.max_memory_allocated())
`
	r := program{framework: torch27, source: source, args: []string{"loader.py"}}.record(t)
	if !strings.Contains(r.stdout, "done") {
		t.Fatalf("%s%s", r.stdout, r.stderr)
	}
	files, err := filepath.Glob(filepath.Join(r.dir, "*.bin*"))
	if err != nil || len(files) != 1 {
		t.Errorf("files %v", files)
	}
	rep := jsonReport(t, r.trace)
	if rep.Framework.AllocCount == 0 || !rep.Health.Complete {
		t.Errorf("the report says: %s", excerpt(rep))
	}
}

// A program that has the library beside it but the null GPU's device memory is too small even for a context still ends
// as it does alone, and the command reports what is wrong with files that are not traces.
func TestReportOfNoTrace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "no.bin")
	if err := os.WriteFile(path, []byte("no trace"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(command(), "report", path).CombinedOutput()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != 2 || !strings.Contains(string(out), path) {
		t.Errorf("%v: %s", err, out)
	}
}
