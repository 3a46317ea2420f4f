//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"memtrace/analyzer/report"
	"memtrace/internal/guest"
	"memtrace/internal/render"
)

// limit ends a program that hangs. It does not measure speed: on a busy machine a program may take twenty times as
// long.
const limit = 20 * time.Minute

func library() string { return filepath.Join(guest.Root(), "build", "libmemtrace.so") }
func command() string { return filepath.Join(guest.Root(), "build", "memtrace") }

// program is one run of a framework program under the library.
type program struct {
	framework string
	python    string   // path of the interpreter, python3 if empty
	flags     []string // of the interpreter
	args      []string // script below testdata/train and its arguments
	source    string   // of the script, where it is written into the run's folder first
	env       []string
	plain     bool // without the library
	late      bool // the library is not preloaded: the program starts the recording itself
	mayFail   bool // its exit status is the test's to judge
}

// result is what a run left.
type result struct {
	dir            string
	stdout, stderr string
	status         int
	trace          string // path, whether or not the file exists
	log            string // the null driver's own account
	stats          string // path of --memory-stats
}

func newResult(dir string) *result {
	return &result{dir: dir, trace: filepath.Join(dir, "t.bin"), log: filepath.Join(dir, "driver.log"),
		stats: filepath.Join(dir, "stats.json")}
}

// start prepares the command of a run that is not recorded: it has a folder, a null GPU and a log of its own.
func (p program) start(t *testing.T) (*exec.Cmd, *result) {
	t.Helper()
	return p.startIn(t, ownFolder(t))
}

// patience lets the search for what keeps tensors come to its end on a busy machine: what tests read in recordings and
// pages is what it finds.
const patience = "MEMTRACE_REFERRERS=60000"

// environ is the environment of the tests without settings that the user has for programs of their own.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "MEMTRACE_") && !strings.HasPrefix(v, "MEMTRACE_CACHE=") ||
			strings.HasPrefix(v, "NULLCUDA_")
	})
}

// startIn prepares the command. In arguments and settings, STATS is replaced by result.stats and DIR by the folder.
func (p program) startIn(t *testing.T, dir string) (*exec.Cmd, *result) {
	t.Helper()
	r := newResult(dir)
	fill := strings.NewReplacer("STATS", r.stats, "DIR/", dir+"/").Replace
	script := filepath.Join(guest.Root(), "testdata", "train", p.args[0])
	if p.source != "" {
		script = filepath.Join(dir, p.args[0])
		if err := os.WriteFile(script, []byte(p.source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := slices.Concat([]string{"python"}, p.flags, []string{script}, p.args[1:])
	for i, a := range args {
		args[i] = fill(a)
	}
	cmd := exec.Command(filepath.Join(venv(t, p.framework, p.python), "bin", "nullcuda-run"), args...)
	cmd.Dir = dir
	cmd.Env = append(environ(), "NULLCUDA_SHARED=none", "NULLCUDA_LOG="+r.log, "PYTHONPATH="+
		filepath.Join(guest.Root(), "python"))
	if !p.plain && !p.late {
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+library())
	}
	if !p.plain {
		cmd.Env = append(cmd.Env, "MEMTRACE_OUTPUT="+r.trace)
	}
	for _, v := range p.env {
		cmd.Env = append(cmd.Env, fill(v))
	}
	return cmd, r
}

// memtrace runs the command and returns its standard output.
func memtrace(t *testing.T, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(command(), args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) || err != nil {
		t.Fatalf("memtrace %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// jsonReport returns the JSON report of a trace, decoded into the product's own types, whose names in JSON
// TestSchemaPaths in internal/render guards.
func jsonReport(t *testing.T, trace string, args ...string) (rep render.Document) {
	t.Helper()
	if err := json.Unmarshal([]byte(memtrace(t, append([]string{"report", "--json", trace}, args...)...)), &rep); err !=
		nil {
		t.Fatal(err)
	}
	return rep
}

// excerpt is what a failed test shows of a report.
func excerpt(rep render.Document) string {
	return fmt.Sprintf("it ended %q, %d records are lost, health %+v\nframework %+v\ndriver %+v", rep.Process.Ended,
		rep.LostRecords, rep.Health, rep.Framework, rep.Driver)
}

// value is what a pointer of a report points to; the zero value where the report leaves that out.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// stats reads the framework's counters per device, as the program wrote them.
func (r *result) counters(t *testing.T) map[string]map[string]any {
	t.Helper()
	text, err := os.ReadFile(r.stats)
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&s); err != nil {
		t.Fatalf("%s: %v", r.stats, err)
	}
	return s
}

// number returns one counter, 0 where the framework leaves it out.
func number(t *testing.T, counters map[string]any, key string) uint64 {
	t.Helper()
	v, ok := counters[key].(json.Number)
	if !ok {
		return 0
	}
	n, err := v.Int64()
	if err != nil {
		t.Fatalf("%s is %v", key, v)
	}
	return uint64(n)
}

func equal(t *testing.T, what string, got, want uint64) {
	t.Helper()
	if got != want {
		t.Errorf("%s: the trace says %d, the program %d (%+d)", what, got, want, int64(got-want))
	}
}

func deviceOf(t *testing.T, rep render.Document, index string) report.Device {
	t.Helper()
	for _, d := range rep.Devices {
		if fmt.Sprint(d.Index) == index {
			return d
		}
	}
	t.Fatalf("the report has no device %s", index)
	return report.Device{}
}
