//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// growthPrograms reads the names of the programs, by kind, and of those that leak the place whose memory stays.
func growthPrograms(t *testing.T, path string) (leaks map[string]string, healthy []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	leaks = make(map[string]string)
	kind, name := "", ""
	function := regexp.MustCompile(`^def (\w+)\(`)
	for n, line := range strings.Split(string(text), "\n") {
		switch m := function.FindStringSubmatch(line); {
		case line == "@leak" || line == "@healthy":
			kind = line
		case m != nil && kind == "@healthy":
			kind, name = "", ""
			healthy = append(healthy, m[1])
		case m != nil:
			kind, name = "", m[1]
		case strings.HasSuffix(line, "# leak"):
			leaks[name] = fmt.Sprintf("%s:%d", filepath.Base(path), n+1)
		}
	}
	return leaks, healthy
}

// Programs that leak are told with the line that does, and none of those that only look so. GROWTH, for nightly runs,
// is how often: each time longer, with other random numbers, and on both versions of PyTorch.
func TestGrowth(t *testing.T) {
	t.Parallel()
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("GROWTH"), "1"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root(), "testdata", "growth", "programs.py")
	leaks, healthy := growthPrograms(t, path)
	if len(leaks) < 10 || len(healthy) < 20 {
		t.Fatalf("%d leaks, %d healthy programs", len(leaks), len(healthy))
	}
	all := slices.Concat(healthy, slices.Sorted(maps.Keys(leaks)))
	frameworks := []string{torch27}
	if rounds > 1 {
		frameworks = append(frameworks, torch215)
	}
	for _, framework := range frameworks {
		for round := 1; round <= rounds; round++ {
			for names := range slices.Chunk(all, 8) {
				t.Run(fmt.Sprint(framework, " ", round, " ", names[0]), func(t *testing.T) {
					t.Parallel()
					checkGrowth(t, framework, strconv.Itoa(round), names, leaks)
				})
			}
		}
	}
}

// checkGrowth runs programs under a version of PyTorch, so many times as long as they are, and compares what is told of
// them with where they leak.
func checkGrowth(t *testing.T, framework, round string, names []string, leaks map[string]string) {
	t.Helper()
	r := program{framework: framework, args: append([]string{"../growth/programs.py"}, names...),
		env: []string{"GROWTH_TIMES=" + round, "GROWTH_SEED=" + round, "MEMTRACE_OUTPUT=DIR/%p.bin"}}.record(t)
	lines := strings.Fields(r.stdout)
	if len(lines) != 2*len(names) {
		t.Fatalf("%d programs ran, want %d", len(lines)/2, len(names))
	}
	for i := 0; i < len(lines); i += 2 {
		name := lines[i]
		line, leaks := leaks[name]
		if _, err := strconv.Atoi(lines[i+1]); err != nil {
			t.Fatal(err)
		}
		trend := jsonReport(t, filepath.Join(r.dir, lines[i+1]+".bin")).Trend
		switch {
		// longer ones may leave too little to judge by
		case !leaks && trend.Kind == "steady", !leaks && trend.Kind != "none" && round == "1":
			t.Errorf("%s is healthy: %+v", name, trend)
		case leaks && (trend.Kind != "steady" || len(trend.Owners) == 0 ||
			!strings.Contains(trend.Owners[0].Site, line+" ")):
			t.Errorf("%s leaks at %s: %+v", name, line, trend)
		}
	}
}
