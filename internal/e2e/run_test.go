//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	values "memtrace/analyzer/report"
	"memtrace/internal/guest"
)

// The frameworks that the tests run on.
const (
	torch27  = "torch==2.7.1"
	torch215 = "torch==2.15.0"
	mxnet    = "mxnet-cu112==1.9.1"
)

// limit ends a program that hangs; it is no measure of speed.
const limit = 5 * time.Minute

func library() string { return filepath.Join(guest.Root(), "build", "libmemtrace.so") }
func command() string { return filepath.Join(guest.Root(), "build", "memtrace") }

var venvs sync.Map // framework and interpreter -> func() (string, error)

// venv returns the folder of a framework's virtual environment for an interpreter, made at first use.
func venv(t *testing.T, framework, python string) string {
	t.Helper()
	make, _ := venvs.LoadOrStore(framework+" "+python, sync.OnceValues(func() (string, error) {
		cmd := exec.Command("python3", filepath.Join(guest.Root(), "testdata", "nullcuda", "venv.py"), framework,
			"--python", python)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}))
	dir, err := make.(func() (string, error))()
	if err != nil {
		t.Fatalf("no environment with %s: %v", framework, err)
	}
	return dir
}

// program is one run of a framework program under the library.
type program struct {
	framework string
	python    string   // path of the interpreter, python3 if empty
	args      []string // script below testdata/train and its arguments
	env       []string
	plain     bool // without the library
}

// result is what a run left.
type result struct {
	dir            string
	stdout, stderr string
	err            error
	trace          string // path, whether or not the file exists
	log            string // the null driver's own account
	stats          string // path of --memory-stats
}

// start prepares the command. Every run has a folder, a null GPU and a log of its own.
func (p program) start(t *testing.T) (*exec.Cmd, *result) {
	t.Helper()
	dir := t.TempDir()
	r := &result{dir: dir, trace: filepath.Join(dir, "t.bin"), log: filepath.Join(dir, "driver.log"),
		stats: filepath.Join(dir, "stats.json")}
	args := append([]string{"python", filepath.Join(guest.Root(), "testdata", "train", p.args[0])}, p.args[1:]...)
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, "STATS", r.stats)
	}
	cmd := exec.Command(filepath.Join(venv(t, p.framework, cmp.Or(p.python, "python3")), "bin", "nullcuda-run"),
		args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NULLCUDA_SHARED=none", "NULLCUDA_LOG="+r.log, "PYTHONPATH="+
		filepath.Join(guest.Root(), "python"), "PYTHONDONTWRITEBYTECODE=1")
	if !p.plain {
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+library(), "MEMTRACE_OUTPUT="+r.trace)
	}
	cmd.Env = append(cmd.Env, p.env...)
	return cmd, r
}

// run runs the program to its end and fails the test if it fails.
func (p program) run(t *testing.T) *result {
	t.Helper()
	cmd, r := p.start(t)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { cmd.Process.Kill() })
	r.err = cmd.Wait()
	timer.Stop()
	r.stdout, r.stderr = stdout.String(), stderr.String()
	if r.err != nil {
		t.Fatalf("%s %v: %v\n%s%s", p.framework, p.args, r.err, r.stdout, r.stderr)
	}
	return r
}

// level, device and report mirror what the tests read of docs/report-json.md.
type level struct {
	PeakBytes  uint64 `json:"peak_bytes"`
	LiveBytes  uint64 `json:"live_bytes"`
	AllocCount uint64 `json:"alloc_count"`
	FreeCount  uint64 `json:"free_count"`
	AllocBytes uint64 `json:"alloc_bytes"`

	Requested *values.Requested `json:"requested"` // at a moment
}

type device struct {
	Index           int    `json:"index"`
	Name            string `json:"name"`
	TotalBytes      uint64 `json:"total_bytes"`
	Driver          level  `json:"driver"`
	Framework       level  `json:"framework"`
	ReservedPeak    uint64 `json:"reserved_bytes_peak"`
	ReservedCurrent uint64 `json:"reserved_bytes_current"`
}

type report struct {
	Schema      string            `json:"schema"`
	LostRecords uint64            `json:"lost_records"`
	Versions    map[string]string `json:"versions"`
	Process     struct {
		PID        int    `json:"pid"`
		Command    string `json:"command"`
		Ended      string `json:"ended"`
		ExitStatus *int   `json:"exit_status"`
	} `json:"process"`
	Trend struct {
		Kind   string `json:"kind"`
		Bytes  uint64 `json:"bytes"`
		Owners []struct {
			Site  string `json:"site"`
			Bytes uint64 `json:"bytes"`
		} `json:"owners"`
	} `json:"trend"`
	Devices   []device `json:"devices"`
	Driver    level    `json:"driver"`
	Framework level    `json:"framework"`
	Groups    []struct {
		By    string `json:"by"`
		Level string `json:"level"`
		Rows  []struct {
			Key        string `json:"key"`
			PeakBytes  uint64 `json:"peak_bytes"`
			LiveBytes  uint64 `json:"live_bytes"`
			AllocCount uint64 `json:"alloc_count"`
		} `json:"rows"`
	} `json:"groups"`
	At struct {
		Devices []struct {
			Index         int    `json:"index"`
			Driver        level  `json:"driver"`
			Framework     level  `json:"framework"`
			ReservedBytes uint64 `json:"reserved_bytes"`
		} `json:"devices"`
	} `json:"at"`
	Thinned *values.Thinned `json:"thinned"`
	Notes   []string        `json:"notes"`
	Health  struct {
		Complete            bool   `json:"complete"`
		LateEvents          uint64 `json:"late_events"`
		Events              uint64 `json:"events"`
		Gaps                uint64 `json:"sequence_gaps"`
		UnmatchedFrees      uint64 `json:"unmatched_frees"`
		ReservedMismatches  uint64 `json:"reserved_mismatches"`
		AllocatedMismatches uint64 `json:"allocated_mismatches"`
		ReservedFrom        string `json:"reserved_from"`
	} `json:"health"`
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

// jsonReport returns the parsed JSON report of a trace.
func jsonReport(t *testing.T, trace string, args ...string) report {
	t.Helper()
	var r report
	if err := json.Unmarshal([]byte(memtrace(t, append([]string{"report", "--json", trace}, args...)...)), &r); err !=
		nil {
		t.Fatal(err)
	}
	return r
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

func deviceOf(t *testing.T, r report, index string) device {
	t.Helper()
	for _, d := range r.Devices {
		if fmt.Sprint(d.Index) == index {
			return d
		}
	}
	t.Fatalf("the report has no device %s", index)
	return device{}
}
