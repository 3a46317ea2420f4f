//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// leak is the place whose memory stays; slow: it is too little to be called growth.
type leak struct {
	at   string
	slow bool
}

// growthPrograms reads the names of the programs, by kind, and of those that leak the place whose memory stays.
func growthPrograms(t *testing.T, path string) (leaks map[string]leak, healthy []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	leaks = make(map[string]leak)
	kind, name, slow := "", "", false
	function, mark := regexp.MustCompile(`^def (\w+)\(`), regexp.MustCompile(`# leak(?:: (\w+))?$`)
	for n, line := range strings.Split(string(text), "\n") {
		switch m := function.FindStringSubmatch(line); {
		case line == "@leak" || line == "@slow_leak" || line == "@healthy":
			kind, slow = line, line == "@slow_leak"
		case m != nil && kind == "@healthy":
			kind, name = "", ""
			healthy = append(healthy, m[1])
		case m != nil && kind != "":
			kind, name = "", m[1]
		case mark.MatchString(line): // of a program that is elsewhere, by its name
			at := fmt.Sprintf("%s:%d", filepath.Base(path), n+1)
			leaks[cmp.Or(mark.FindStringSubmatch(line)[1], name)] = leak{at, slow}
		}
	}
	return leaks, healthy
}

// Programs that leak are reported with the line and the amount, by their own count, and none of those that only seem
// to. GROWTH, for nightly runs, is how often: all of them, each time longer, with other random numbers, and on both
// versions of PyTorch. Else it is every other one, once.
func TestGrowth(t *testing.T) {
	t.Parallel()
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("GROWTH"), "1"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root(), "testdata", "growth", "programs.py")
	leaks, healthy := growthPrograms(t, path)
	slow := 0
	for _, l := range leaks {
		if l.slow {
			slow++
		}
	}
	if len(leaks)-slow < 25 || slow < 2 || len(healthy) < 40 {
		t.Fatalf("%d leaks, %d of them slow, %d healthy programs", len(leaks), slow, len(healthy))
	}
	all := slices.Concat(healthy, slices.Sorted(maps.Keys(leaks)))
	if os.Getenv("GROWTH") == "" {
		n := 0
		all = slices.DeleteFunc(all, func(string) bool { n++; return n%2 == 0 })
	}
	frameworks := []string{torch27}
	if rounds > 1 {
		frameworks = append(frameworks, torch215)
	}
	for _, framework := range frameworks {
		for round := 1; round <= rounds; round++ {
			for names := range slices.Chunk(all, 13) {
				t.Run(fmt.Sprint(framework, " ", round, " ", names[0]), func(t *testing.T) {
					t.Parallel()
					if names[0] != all[0] {
						extended(t)
					}
					checkGrowth(t, framework, strconv.Itoa(round), names, leaks)
				})
			}
		}
	}
}

// checkGrowth runs programs under a version of PyTorch, so many times as long as they are, and compares what is
// reported of them with where they leak. Of a slow leak it is what follows "No growth of more than".
func checkGrowth(t *testing.T, framework, round string, names []string, leaks map[string]leak) {
	t.Helper()
	r := program{framework: framework, args: append([]string{"../growth/programs.py"}, names...),
		env: []string{"GROWTH_TIMES=" + round, "GROWTH_SEED=" + round, "MEMTRACE_OUTPUT=DIR/%p.bin"}}.record(t)
	lines := strings.Fields(r.stdout)
	if len(lines) != 3*len(names) {
		t.Fatalf("%d programs ran, want %d", len(lines)/3, len(names))
	}
	for i := 0; i < len(lines); i += 3 {
		name := lines[i]
		leak, leaks := leaks[name]
		bytes, err := strconv.ParseFloat(lines[i+2], 64)
		if err != nil {
			t.Fatal(err)
		}
		s := jsonReport(t, filepath.Join(r.dir, lines[i+1]+".bin"))
		growing := s.Growing()
		if leak.slow {
			if len(growing) > 0 {
				t.Errorf("%s leaks too little to be called growth: %+v", name, growing[0])
				continue
			}
			growing = s.GrowingLittle()
		}
		switch {
		case !leaks && len(growing) > 0:
			t.Errorf("%s is healthy: %+v", name, growing[0])
		case !leaks:
		case len(growing) != 1 || len(growing[0].Owners) == 0 ||
			!strings.Contains(growing[0].Owners[0].Site, leak.at+" "):
			t.Errorf("%s leaks at %s: %+v", name, leak.at, growing)
		case math.Abs(float64(growing[0].Bytes)-bytes) > bytes/5:
			t.Errorf("%s leaks %.0f bytes: %+v", name, bytes, growing[0])
		}
	}
}
