package hostile

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/guest"
)

// TestGrows: memory that grows in a program in C is reported with its kind, its line and by how much, as the program
// itself counts it; what was loaded at the beginning, is freed, or is full is not.
func TestGrows(t *testing.T) {
	t.Parallel()
	program := compile(t, "grows", []string{"testdata/guest/grows.c"}, withDriver(t)...)
	for kind, level := range map[string]string{"leak": "driver", "only": "driver", "managed": "managed",
		"pinned": "host", "registered": "registered", "pool": "driver", "loads": "", "balanced": "", "full": ""} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			got := run{program: program, args: []string{kind}, preload: []string{""}}.do(t)
			want, err := strconv.ParseFloat(strings.TrimSpace(got.stdout), 64)
			if got.exit != 0 || err != nil {
				t.Fatalf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
			}
			var s report.Summary
			runJSON(t, &s, "report", "--json", got.traces(t)[0])
			list := s.Growing()
			switch {
			case level == "" && len(list) > 0, level != "" && len(list) != 1:
				t.Fatalf("%+v", list)
			case level == "":
				return
			}
			if g := list[0]; g.Level != level || math.Abs(float64(g.Bytes)-want) > want/5 || len(g.Owners) != 1 ||
				!strings.Contains(g.Owners[0].Site, leakLine(t, kind)) {
				t.Errorf("%.0f bytes at %s: %+v", want, leakLine(t, kind), g)
			}
		})
	}
}

// leakLine is the marked line of a kind of grows.c.
func leakLine(t *testing.T, kind string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(guest.Root(), "testdata", "guest", "grows.c"))
	if err != nil {
		t.Fatal(err)
	}
	if kind == "pool" {
		kind = "request"
	}
	inside := false
	for n, line := range strings.Split(string(text), "\n") {
		inside = inside || strings.HasPrefix(line, "static void "+kind+"(")
		if inside && strings.Contains(line, "/* leak */") {
			return "grows.c:" + strconv.Itoa(n+1)
		}
	}
	t.Fatalf("no line of %s", kind)
	return ""
}
