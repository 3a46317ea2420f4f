package symbol

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"memtrace/trace"
)

// The map with the process's number is used only if it can be the run's.
func TestPerfMapOfTheRun(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	const pid = 1<<31 - 2 // higher than Linux gives
	path := fmt.Sprintf("/tmp/perf-%d.map", pid)
	if err := os.WriteFile(path, []byte("1000 100 compiled\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	begun := time.Now().Add(-time.Hour)
	this := strconv.Itoa(pid)
	about := func(pid, host string, start time.Time) trace.Info {
		return trace.Info{"process.pid": pid, "process.host": host,
			"process.start_unix_ns": fmt.Sprint(start.UnixNano())}
	}
	for name, c := range map[string]struct {
		info  trace.Info
		o     Options
		taken bool
	}{
		"the run's":    {about(this, host, begun), Options{}, true},
		"another pid":  {about(strconv.Itoa(pid-1), host, begun), Options{}, false},
		"another host": {about(this, host+"x", begun), Options{}, false},
		"older":        {about(this, host, time.Now().Add(time.Hour)), Options{}, false},
		"no start":     {trace.Info{"process.pid": this, "process.host": host}, Options{}, false},
		"no files":     {about(this, host, begun), Options{NoFiles: true}, false},
		"named":        {nil, Options{PerfMap: path}, true},
	} {
		r := New(new(trace.Tables), c.info, c.o)
		if got := r.Native(0x1011)[0].Function; (got == "compiled") != c.taken {
			t.Errorf("%s: %q", name, got)
		}
		noProblems(t, r)
	}
	if err := os.WriteFile(path, []byte("1000 100 compiled\n2000 100 "+strings.Repeat("x", maxPerfLine)+"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	long := New(new(trace.Tables), about(this, host, begun), Options{})
	if f := long.Native(0x1011)[0]; f.Function != "compiled" {
		t.Errorf("before a line that is too long: %+v", f)
	}
	if p := long.Problems(); len(p) != 1 || !strings.HasPrefix(p[0], path+" ") {
		t.Errorf("problems %q", p)
	}
	r := New(new(trace.Tables), nil, Options{PerfMap: filepath.Join(t.TempDir(), "gone")})
	if f := r.Native(0x1011)[0]; f.Kind != JIT || f.Function != "" {
		t.Errorf("%+v", f)
	}
	if p := r.Problems(); len(p) != 1 {
		t.Errorf("problems %q", p)
	}
}

func FuzzPerfMap(f *testing.F) {
	f.Add([]byte("100 10 a\n108 10 b c\n0x200 0x20 py::f:x.py\n"))
	f.Add([]byte("ffffffffffffffff 1 top\n0 0 nothing\n1 ffffffffffffffff all\n5 5\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := readPerfMap(bytes.NewReader(data))
		if m == nil {
			t.Fatalf("no map, %v", err)
		}
		before := uint64(0)
		for _, fn := range m.functions {
			if fn.start < before || fn.start >= fn.end || fn.name == "" || !strings.Contains(string(data), fn.name) {
				t.Fatalf("%+v behind %#x", fn, before)
			}
			before = fn.end
			if got, ok := m.at(fn.start); !ok || got != fn {
				t.Fatalf("%+v is not found", fn)
			}
		}
	})
}
