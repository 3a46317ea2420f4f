//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/guest"
)

// onNullGPU runs a program as users do: nothing but memtrace run --null-gpu sets the device up, where the machine hides
// its own.
func onNullGPU(t *testing.T, dir, device string, argv ...string) outcome {
	t.Helper()
	cmd := exec.Command(command(), append([]string{"run", "--null-gpu=" + device, "-o", "t.%p.bin", "--"}, argv...)...)
	cmd.Dir, cmd.Env = dir, append(environ(), "CUDA_VISIBLE_DEVICES=")
	return runOne(t, cmd)
}

// Where a driver is installed, and the program finds it by its RPATH and by its whole path, it gets the null GPU all
// the same; so do its children.
func TestNullGPUHidesAnInstalledDriver(t *testing.T) {
	t.Parallel()
	source := []string{"testdata/guest/installed.c"}
	vendor := guest.Compile(t, "libcuda.so.1", source, "-DVENDOR", "-shared", "-fPIC",
		"-Wl,-soname,libcuda.so.1")
	program := guest.Compile(t, "installed", source, vendor, "-Wl,--disable-new-dtags",
		"-Wl,-rpath,"+filepath.Dir(vendor), "-ldl")
	for device, want := range map[string]string{
		"3x2GiB": "parent: 3 and 3 devices of 2147483648 bytes\nchild: 3 and 3 devices of 2147483648 bytes\n",
		"7M":     "parent: 1 and 1 devices of 7340032 bytes\nchild: 1 and 1 devices of 7340032 bytes\n"} {
		done := onNullGPU(t, t.TempDir(), device, program, vendor)
		if done.status != 0 || done.stdout != want || !strings.Contains(done.stderr, "memtrace: the null GPU, ") {
			t.Errorf("%s: %+v; want %q", device, done, want)
		}
	}
	plain := exec.Command(program, vendor)
	plain.Env = environ()
	if done := runOne(t, plain); !strings.HasPrefix(done.stdout, "parent: -1 and -1 devices") {
		t.Errorf("without it the installed driver must answer: %+v", done)
	}
}

// PyTorch as it is installed, in an environment that knows nothing of the null GPU: a transformer on two devices, and
// convolutions, batch norms and recurrent networks, for which PyTorch asks cuDNN. The report has the framework's own
// figures, device by device, to the byte.
func TestNullGPU(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		t.Run(framework, func(t *testing.T) {
			rarely(t, framework == torch27)
			t.Parallel()
			dir := ownFolder(t)
			python := filepath.Join(venv(t, framework, ""), "bin", "python")
			done := onNullGPU(t, dir, "2x24GiB", python, filepath.Join(guest.Root(), "testdata/train/ordinary_nets.py"))
			var own struct{ Peaks, Totals []uint64 }
			if err := json.Unmarshal([]byte(done.stdout), &own); err != nil || done.status != 0 {
				t.Fatalf("%v: %+v", err, done)
			}
			traces, err := filepath.Glob(filepath.Join(dir, "t.*.bin"))
			if err != nil || len(traces) != 1 {
				t.Fatalf("traces %q, %v", traces, err)
			}
			rep := jsonReport(t, traces[0])
			if !rep.Summary.NullGPU || len(rep.Summary.Devices) != 2 {
				t.Fatalf("null GPU %v, %d devices", rep.Summary.NullGPU, len(rep.Summary.Devices))
			}
			for i := range rep.Summary.Devices {
				one := jsonReport(t, traces[0], "--device", string(rune('0'+i)))
				equal(t, "peak", one.Framework.PeakBytes, own.Peaks[i])
				equal(t, "size", one.Summary.Devices[0].TotalBytes, own.Totals[i])
				equal(t, "size", own.Totals[i], 24<<30)
			}
		})
	}
}

// Processes of one run share the device, and of another run do not.
func TestNullGPUIsShared(t *testing.T) {
	t.Parallel()
	dir := ownFolder(t)
	path := filepath.Join(dir, "free.py")
	const source = `import subprocess, sys, torch
x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
free = "import torch; print(torch.cuda.mem_get_info()[0])"
print(subprocess.run([sys.executable, "-c", free], stdout=subprocess.PIPE, text=True).stdout.strip())
print(subprocess.run([sys.argv[1], "run", "-q", "--null-gpu=4GiB", "--", sys.executable, "-c", free],
                     stdout=subprocess.PIPE, text=True).stdout.strip())
`
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(venv(t, torch27, ""), "bin", "python")
	done := onNullGPU(t, dir, "4GiB", python, path, command())
	if done.status != 0 || done.stdout != "3221225472\n4294967296\n" {
		t.Errorf("%+v", done)
	}
}
