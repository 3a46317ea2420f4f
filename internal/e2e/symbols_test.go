//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/spool"
	"memtrace/internal/symbol"
)

// namesInside counts the code addresses of a trace's stacks that the trace itself names, without reading any file.
func namesInside(t *testing.T, path string) (named, all int, functions map[string]bool) {
	t.Helper()
	run, err := spool.OpenRun(path)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	for {
		if _, err := run.ReadBatch(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	names := symbol.New(run.Tables(), run.Info(), symbol.Options{NoFiles: true})
	functions = make(map[string]bool)
	addresses := run.Tables().CodeAddresses()
	for _, pc := range addresses {
		frames := names.Native(pc)
		for _, f := range frames {
			functions[f.Function] = true
		}
		if frames[len(frames)-1].Function != "" {
			named++
		}
	}
	return named, len(addresses), functions
}

// wantNames checks that nearly all of what PyTorch does has a name: its wheels keep their symbols.
func wantNames(t *testing.T, path string) {
	t.Helper()
	named, all, functions := namesInside(t, path)
	if all < 50 || named < all*9/10 {
		t.Errorf("%d of %d code addresses have a name", named, all)
	}
	if !functions["c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc"] &&
		!functions["c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::malloc"] {
		t.Errorf("the caching allocator is not among %d functions", len(functions))
	}
}

func TestEmbedSymbolsAtTheEnd(t *testing.T) {
	t.Parallel()
	extended(t)
	r := program{framework: torch27, args: []string{"lstm.py"}, env: []string{"MEMTRACE_EMBED_SYMBOLS=60000"}}.record(t)
	if r.stderr != "" {
		t.Errorf("stderr %q", r.stderr)
	}
	wantNames(t, r.trace)
	if rep := jsonReport(t, r.trace); rep.Process.Ended != "clean" || !rep.Health.Complete {
		t.Errorf("the report says: %s", excerpt(rep))
	}
	if left, _ := filepath.Glob(filepath.Join(r.dir, "*.spool")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}

	plain := program{framework: torch27, args: []string{"lstm.py"}}.record(t)
	if named, all, _ := namesInside(t, plain.trace); named != 0 || all == 0 {
		t.Errorf("without being asked, %d of %d addresses were named", named, all)
	}
}

// `memtrace run --embed-symbols` names what a program recorded, also where it was killed, and ends with the program's
// status.
func TestEmbedSymbolsAfterRun(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "killed.py")
	err := os.WriteFile(script, []byte(`
import os, sys, torch
x = [torch.zeros(1 << 16, device="cuda") for _ in range(4)]
torch.nn.Linear(8, 8).cuda()(torch.zeros(4, 8, device="cuda")).sum().backward()
if sys.argv[1] == "kill":
    os.kill(os.getpid(), 9)
sys.exit(7)
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for how, status := range map[string]int{"kill": 137, "exit": 7} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			cmd, r := program{framework: torch27, args: []string{"x", how}, plain: true}.start(t)
			cmd.Args[len(cmd.Args)-2] = script
			program := cmd.Args
			cmd.Path = command()
			cmd.Args = append([]string{"memtrace", "run", "--embed-symbols", "-o", r.trace, "--"}, program...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			_ = cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != status {
				t.Errorf("status %d, want %d\n%s", got, status, stderr.String())
			}
			if !strings.Contains(stderr.String(), "embedded the names of ") {
				t.Errorf("stderr %q", stderr.String())
			}
			wantNames(t, r.trace)
		})
	}
}
