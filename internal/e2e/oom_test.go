//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/guest"
)

// status runs a program that may fail and returns how it ended and its output.
func (p program) status(t *testing.T) (*result, int) {
	t.Helper()
	p.mayFail = true
	r := p.record(t)
	return r, r.status
}

func finish(t *testing.T, cmd *exec.Cmd, r *result) int {
	t.Helper()
	got := runOne(t, cmd)
	r.stdout, r.stderr, r.status = got.stdout, got.stderr, got.status
	return r.status
}

// sidecars returns the texts beside a trace, by name.
func sidecars(t *testing.T, trace string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(trace + ".oom.*.txt")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if st, _ := os.Stat(path); st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, st.Mode())
		}
		texts[filepath.Base(path)] = string(text)
	}
	return texts
}

// torchAccount is PyTorch's own account at the moment at which it gave up, see testdata/train/oom.py.
type torchAccount struct {
	Reserved  uint64            `json:"reserved"`
	Allocated uint64            `json:"allocated"`
	Free      uint64            `json:"free"`
	Pieces    uint64            `json:"pieces"`
	Largest   uint64            `json:"largest"`
	Whole     uint64            `json:"whole"`
	Tags      map[string]uint64 `json:"tags"`
}

// A training that does not fit ends as it would without the library; text, trace and report name the owners of the
// device's memory as PyTorch itself has them, to the byte.
func TestOOMTraining(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, framework, mem, conf string }{
		{"first step", torch27, "2G", ""},
		{"forward of the second step", torch27, "4200M", ""},
		{"expandable", torch27, "2G", "expandable_segments:True"},
		{"newer", torch215, "2G", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.name != "first step" {
				extended(t)
			}
			p := program{framework: c.framework, args: []string{"oom.py", "account.json", "--steps", "3"},
				env: []string{"NULLCUDA_MEM=" + c.mem}}
			if c.conf != "" {
				p.env = append(p.env, "PYTORCH_CUDA_ALLOC_CONF="+c.conf)
			}
			plain := p
			plain.plain = true
			r, code := p.status(t)
			without, codeWithout := plain.status(t)
			if code != codeWithout || stable(r.stderr) != stable(without.stderr) ||
				stable(r.stdout) != stable(without.stdout) || !strings.Contains(r.stderr, "OutOfMemoryError") {
				t.Fatalf("with the library %d %s\nwithout %d %s", code, r.stderr, codeWithout, without.stderr)
			}
			compareOOM(t, r)
		})
	}
}

func compareOOM(t *testing.T, r *result) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, "account.json"))
	if err != nil {
		t.Fatal(err)
	}
	var truth torchAccount
	if err := json.Unmarshal(text, &truth); err != nil {
		t.Fatal(err)
	}
	rep := jsonReport(t, r.trace)
	if rep.OOM.Count != 1 {
		t.Fatalf("%d times out of memory", rep.OOM.Count)
	}
	for _, e := range rep.OOM.Events {
		if e.Outcome != "failed" {
			continue
		}
		a := e.Allocator
		if e.Level != "framework" || a == nil {
			t.Fatalf("event %+v", e)
		}
		equal(t, "reserved", a.ReservedBytes, truth.Reserved)
		equal(t, "allocated", a.AllocatedBytes, truth.Allocated)
		equal(t, "idle", a.IdleBytes, truth.Free)
		equal(t, "free in pieces", a.Pieces.FreeBytes, truth.Free)
		equal(t, "pieces", a.Pieces.FreePieces, truth.Pieces)
		equal(t, "largest free block", a.Pieces.LargestFreeBytes, truth.Largest)
		equal(t, "whole segments", a.Pieces.WholeFreeBytes, truth.Whole)
		got, largest := map[string]uint64{}, ""
		for _, row := range e.Ledgers[0].Rows {
			if row.Owner == "blocks" {
				got[strings.ReplaceAll(row.Key, "(untagged)", "")] = row.Bytes
				if largest == "" {
					largest = row.Key
				}
			}
		}
		for tag, want := range truth.Tags {
			equal(t, "tag "+tag, got[tag], want)
			if want > truth.Tags[largest] {
				t.Errorf("the first owner is %s with %d, but %s has %d", largest, truth.Tags[largest], tag, want)
			}
		}
		if len(got) != len(truth.Tags) {
			t.Errorf("tags %v, want %v", got, truth.Tags)
		}
		site := comparePlaces(t, e.Ledgers[len(e.Ledgers)-1], got)
		checkSidecar(t, r, e.Sidecar, largest, site)
	}
}

// comparePlaces compares what lines of the script hold with what the tags around these lines do, and returns the first
// line among the owners.
func comparePlaces(t *testing.T, l report.Ledger, tags map[string]uint64) (first string) {
	t.Helper()
	if l.By != "site" {
		t.Fatalf("the last ledger is by %s", l.By)
	}
	places, sum, whole := map[string]uint64{}, uint64(0), uint64(0)
	for _, row := range l.Rows {
		if row.Owner == "blocks" {
			places[row.Key] = row.Bytes
			sum += row.Bytes
			if first == "" && strings.HasPrefix(row.Key, "train/gpt2.py:") {
				first = row.Key
			}
		}
	}
	for _, bytes := range tags {
		whole += bytes
	}
	if first == "" {
		t.Errorf("no line of the script among the places %v", places)
	}
	equal(t, "blocks by place", sum, whole)
	for tag, line := range map[string]string{"optimizer": "optimizer.step()", "loss": "loss = "} {
		at := fmt.Sprintf("train/gpt2.py:%d main", lineOf(t, "gpt2.py", line))
		equal(t, at, places[at], tags[tag])
	}
	return first
}

// lineOf finds the only line of a training script that begins so, however far it is indented.
func lineOf(t *testing.T, script, begin string) (line int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(guest.Root(), "testdata", "train", script))
	if err != nil {
		t.Fatal(err)
	}
	for i, code := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(strings.TrimLeft(code, " "), begin) {
			if line > 0 {
				t.Fatalf("%s: lines %d and %d begin with %q", script, line, i+1, begin)
			}
			line = i + 1
		}
	}
	if line == 0 {
		t.Fatalf("%s: no line begins with %q", script, begin)
	}
	return line
}

// checkSidecar reads the text without its trace.
func checkSidecar(t *testing.T, r *result, name, largest, site string) {
	t.Helper()
	texts := sidecars(t, r.trace)
	text := texts[name]
	if len(texts) != 1 || name != filepath.Base(r.trace)+".oom.1.txt" {
		t.Fatalf("texts %v, the trace names %q", texts, name)
	}
	if strings.HasSuffix(text, "\n\n") || strings.Contains(text, "Attempts") {
		t.Errorf("%s says something of attempts, of which there was one:\n%s", name, text)
	}
	for _, want := range []string{"What PyTorch's memory was for", "Out of memory on device 0", largest, "by site",
		site, "What to try", "oom.py", "PyTorch", "cached", "null GPU", "memtrace report --at oom"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s does not say %q:\n%s", name, want, text)
		}
	}
	if report := memtrace(t, "report", "--at", "oom", r.trace); !strings.Contains(report,
		"Out of memory on device 0") || !strings.Contains(report, largest) {
		t.Errorf("report:\n%s", report)
	}
	if !strings.Contains(memtrace(t, "dump", r.trace), "\noomreport ") {
		t.Error("the trace has no section about it")
	}
}

// A program that goes on after the allocator released its cache has not failed: no text, unless all are requested, but
// the report has it.
func TestOOMRecovered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		setting string
		texts   int
	}{{"", 0}, {"all", 1}, {"0", 0}} {
		t.Run("MEMTRACE_OOM="+c.setting, func(t *testing.T) {
			t.Parallel()
			if c.setting != "all" {
				extended(t)
			}
			p := program{framework: torch27, args: []string{"oom.py", "--recover"}, env: []string{"NULLCUDA_MEM=1G"}}
			if c.setting != "" {
				p.env = append(p.env, "MEMTRACE_OOM="+c.setting)
			}
			r, code := p.status(t)
			if code != 0 || r.stdout != "went on\n" || r.stderr != "" {
				t.Fatalf("%d %q %q", code, r.stdout, r.stderr)
			}
			rep := jsonReport(t, r.trace)
			if rep.OOM.Count != 0 || rep.OOM.RecoveredCount != 2 || rep.OOM.Events[0].ReleasedBytes != 400<<20 ||
				rep.OOM.Events[0].Outcome != "recovered" {
				t.Errorf("%+v", rep.OOM)
			}
			if texts := sidecars(t, r.trace); len(texts) != c.texts {
				t.Errorf("texts %v", texts)
			}
			if report := memtrace(t, "report", r.trace); !strings.Contains(report, "cache and retry twice") {
				t.Errorf("report:\n%s", report)
			}
			if report := memtrace(t, "report", "--details", r.trace); !strings.Contains(report,
				"Memory ran short on device 0") || !strings.Contains(report, "gave 400.0 MiB back") {
				t.Errorf("report:\n%s", report)
			}
		})
	}
}

func TestOOMMXNet(t *testing.T) {
	t.Parallel()
	p := program{framework: mxnet, args: []string{"mxnet_gluon.py"}, env: []string{"NULLCUDA_MEM=40M"}}
	r, code := p.status(t)
	plain := p
	plain.plain = true
	if without, want := plain.status(t); code != want || code == 0 || stable(r.stderr) != stable(without.stderr) {
		t.Errorf("with the library %d %s\nwithout %d %s", code, r.stderr, want, without.stderr)
	}
	rep := jsonReport(t, r.trace)
	if rep.OOM.Count == 0 || rep.OOM.Events[0].Level != "driver" || rep.OOM.Events[0].Library != "libmxnet.so" {
		t.Fatalf("%+v", rep.OOM)
	}
	for _, text := range sidecars(t, r.trace) {
		if !strings.Contains(text, "libmxnet.so") || !strings.Contains(text, "MXNET_GPU_MEM_POOL_TYPE") {
			t.Errorf("the text:\n%s", text)
		}
	}
	if len(sidecars(t, r.trace)) == 0 {
		t.Error("no text")
	}
}

// plainProgram runs testdata/guest/oom.c on the null GPU, with the library.
func plainProgram(t *testing.T, dir string, env []string, args ...string) (*exec.Cmd, *result) {
	t.Helper()
	lib := filepath.Join(guest.Root(), "build", "nullcuda", "lib")
	out := guest.Compile(t, "oom", []string{"testdata/guest/oom.c"}, "-I"+filepath.Join(guest.Root(), "testdata/guest"),
		filepath.Join(lib, "libcudart.so.13"), "-Wl,-rpath-link,"+lib)
	cmd := exec.Command(out, args...)
	r := &result{dir: dir, trace: filepath.Join(dir, "t.bin")}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+lib, "NULLCUDA_SHARED=none", "NULLCUDA_MEM=1G", "LD_PRELOAD="+
		library(), "MEMTRACE_OUTPUT="+r.trace)
	cmd.Env = append(cmd.Env, env...)
	return cmd, r
}

func TestOOMPlainProgram(t *testing.T) {
	t.Parallel()
	cmd, r := plainProgram(t, t.TempDir(), nil)
	if code := finish(t, cmd, r); code != 3 || r.stdout != "16 blocks, then error 2\n" || r.stderr != "" {
		t.Fatalf("%d %q %q", code, r.stdout, r.stderr)
	}
	rep := jsonReport(t, r.trace)
	if rep.OOM.Count != 1 || rep.OOM.RefusedCount != 1 || rep.OOM.Events[0].RequestedBytes != 64<<20 ||
		rep.OOM.Events[0].UsedBytes != 1<<30 {
		t.Errorf("%+v", rep.OOM)
	}
	if text := sidecars(t, r.trace)["t.bin.oom.1.txt"]; !strings.Contains(text, "64.0 MiB; the driver refused") ||
		!strings.Contains(text, "by cudaMalloc called from oom+0x") {
		t.Errorf("the text:\n%s", text)
	}
}

// The closing line of a run reports that memory ran out, and the path of the text.
func TestOOMClosingLine(t *testing.T) {
	t.Parallel()
	cmd, r := plainProgram(t, t.TempDir(), nil)
	program := cmd.Path
	cmd.Path, cmd.Args = command(), []string{"memtrace", "run", "-o", r.trace, "--", program}
	for i, v := range cmd.Env {
		if strings.HasPrefix(v, "LD_PRELOAD=") || strings.HasPrefix(v, "MEMTRACE_OUTPUT=") {
			cmd.Env[i] = "UNUSED="
		}
	}
	if code := finish(t, cmd, r); code != 3 || !strings.Contains(r.stderr, "memtrace: Out of memory on device 0") ||
		!strings.HasSuffix(r.stderr,
			"memtrace: more about that moment: t.bin.oom.1.txt; next: memtrace report t.bin\n") {
		t.Errorf("%d %q", code, r.stderr)
	}
}

// A program that frees memory and retries has recovered.
func TestOOMPlainRecovered(t *testing.T) {
	t.Parallel()
	cmd, r := plainProgram(t, t.TempDir(), nil, "enough")
	if code := finish(t, cmd, r); code != 3 || r.stdout != "16 blocks, then error 0\n" {
		t.Fatalf("%d %q %q", code, r.stdout, r.stderr)
	}
	if rep := jsonReport(t, r.trace); rep.OOM.Count != 0 || rep.OOM.RecoveredCount != 1 ||
		rep.OOM.Events[0].ReleasedBytes != 64<<20 {
		t.Errorf("%+v", rep.OOM)
	}
	if texts := sidecars(t, r.trace); len(texts) != 0 {
		t.Errorf("texts %v", texts)
	}
}

// A run that replaces the trace of one that ran out of memory kept its text, and the next wrote t.bin.oom.2.txt.
func TestOOMTextIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, mode := range []string{"", "", "enough"} {
		args := []string{mode}
		if mode == "" {
			args = nil
		}
		cmd, r := plainProgram(t, dir, []string{"MEMTRACE_FORCE=1"}, args...)
		if code := finish(t, cmd, r); code != 3 || r.stderr != "" {
			t.Fatalf("%d %q %q", code, r.stdout, r.stderr)
		}
		left, err := filepath.Glob(r.trace + ".oom.*")
		if err != nil {
			t.Fatal(err)
		}
		texts := sidecars(t, r.trace)
		if _, first := texts["t.bin.oom.1.txt"]; first != (mode == "") || len(left) != 2*len(texts) {
			t.Errorf("mode %q left %v", mode, left)
		}
	}
}

// The text comes while the program runs; and a program that is killed at once leaves what the report needs for the same
// account.
func TestOOMKilled(t *testing.T) {
	t.Parallel()
	for _, patient := range []bool{true, false} {
		cmd, r := plainProgram(t, t.TempDir(), nil, "killed")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if patient {
			until(t, "a text while the program runs", func() bool { return len(sidecars(t, r.trace)) > 0 })
		}
		cmd.Process.Kill()
		cmd.Wait()
		rep := jsonReport(t, r.trace)
		if rep.OOM.Count != 1 || rep.OOM.Events[0].RequestedBytes != 64<<20 ||
			len(rep.OOM.Events[0].Ledgers[0].Rows) == 0 {
			t.Errorf("patient %v: %+v", patient, rep.OOM)
		}
	}
}

// All OOMs are in one text and in one JSON file, ten at most; all events are counted.
func TestOOMManyTimes(t *testing.T) {
	t.Parallel()
	cmd, r := plainProgram(t, t.TempDir(), nil, "loop", "13")
	if code := finish(t, cmd, r); code != 3 {
		t.Fatalf("%d %q %q", code, r.stdout, r.stderr)
	}
	if rep := jsonReport(t, r.trace); rep.OOM.Count != 13 {
		t.Errorf("%d events", rep.OOM.Count)
	}
	texts := sidecars(t, r.trace)
	if text := texts["t.bin.oom.1.txt"]; len(texts) != 1 || strings.Count(text, "Out of memory on device 0 at ") != 10 {
		t.Errorf("%d texts:\n%s", len(texts), text)
	}
	var list oomFile
	readJSON(t, r.trace+".oom.1.json", &list)
	if list.Schema != "memtrace.oom/1" || len(list.Events) != 10 || list.Events[9].Event.RequestedBytes != 64<<20+9 {
		t.Errorf("%+v", list)
	}
}

// A text that cannot be written does no harm, and none overwrites an existing file or follows a link.
func TestOOMTextCannotBeWritten(t *testing.T) {
	t.Parallel()
	t.Run("full disk", func(t *testing.T) {
		t.Parallel()
		if os.Getuid() != 0 {
			t.Skip("needs root to mount a small file system")
		}
		dir, spool := t.TempDir(), t.TempDir()
		if text, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", dir).CombinedOutput(); err !=
			nil {
			t.Skipf("mount: %v %s", err, text)
		}
		t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
		cmd, r := plainProgram(t, dir, []string{"MEMTRACE_LOG=off", "MEMTRACE_SPOOL_DIR=" + spool})
		if code := finish(t, cmd, r); code != 3 || r.stdout != "16 blocks, then error 2\n" || r.stderr != "" {
			t.Errorf("%d %q %q", code, r.stdout, r.stderr)
		}
		if texts := sidecars(t, r.trace); len(texts) != 0 {
			t.Errorf("a part of a text was left: %v", texts)
		}
	})
	t.Run("taken", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := os.Symlink("elsewhere", filepath.Join(dir, "t.bin.oom.1.txt")); err != nil {
			t.Fatal(err)
		}
		cmd, r := plainProgram(t, dir, nil)
		if code := finish(t, cmd, r); code != 3 || r.stderr != "" {
			t.Errorf("%d %q %q", code, r.stdout, r.stderr)
		}
		if _, err := os.Stat(filepath.Join(dir, "elsewhere")); err == nil {
			t.Error("written through a link")
		}
		if rep := jsonReport(t, r.trace); rep.OOM.Events[0].Sidecar != "t.bin.oom.2.txt" {
			t.Errorf("the trace names %q", rep.OOM.Events[0].Sidecar)
		}
	})
}
