// Package mutant damages traces and spools at random and watches what readers make of them. It is used by tests only:
// one goes through every reader of traces, one through those of spools.
//
// A mutant has a number, and the seed of the campaign and its number are all that it is made from, so that it can be
// made again:
//
//	MUTANTS=100000        how many there are, instead of a few
//	MUTANTS_FROM=5000     the number of the first one
//	MUTANTS_SEED=7        another campaign
//	MUTANT=4711           only this one
//	MUTANTS_DIR=folder    where those that were found to break something are written, instead of a fresh folder
package mutant

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"
)

const (
	// mostFindings ends a campaign that finds one fault again and again.
	mostFindings = 20
	// patience is how long a mutant may take. It is no measure of speed: a loop that ends at all has ended long before,
	// however busy the machine is.
	patience = 5 * time.Minute
)

// Mutant is one damaged recording.
type Mutant struct {
	Number int
	Rand   *rand.Rand
	How    string            // what was done to which seed
	Files  map[string][]byte // by extension: what is written where something is found

	faults []string
	dir    string
}

// Faultf notes that a reader did something wrong.
func (m *Mutant) Faultf(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

// Dir returns the folder of the mutant's files while it is read. It is kept if the process dies.
func (m *Mutant) Dir() string { return m.dir }

// Write writes the mutant's files as name and their extensions, and returns the path of name.
func (m *Mutant) Write(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(m.dir, name)
	for extension, data := range m.Files {
		if err := os.WriteFile(path+extension, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// Run makes mutants of the things that what names, few of them (with -short a tenth of that) unless MUTANTS says how
// many, and prints how many there were and how many broke something.
func Run(t *testing.T, what string, few int, try func(m *Mutant)) {
	t.Helper()
	if testing.Short() {
		few = max(few/10, 1)
	}
	seed, from, count, only := number(t, "MUTANTS_SEED", 1), number(t, "MUTANTS_FROM", 0), number(t, "MUTANTS", few),
		number(t, "MUTANT", -1)
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		t.Fatal(err)
	}
	findings, made := 0, 0
	for n := from; n < count; n++ {
		if only >= 0 && n != only {
			continue
		}
		made++
		m := &Mutant{Number: n, Rand: rand.New(rand.NewPCG(uint64(seed), uint64(n))), Files: map[string][]byte{},
			dir: dir}
		m.watch(seed, func() { try(m) })
		if len(m.faults) == 0 {
			continue
		}
		findings++
		t.Errorf("mutant %d of %s, seed %d (MUTANTS_SEED=%d MUTANT=%d MUTANTS=%d), %s\nfiles %s", n, what, seed, seed,
			n, n+1, m.How, m.keep(t, what))
		for _, fault := range m.faults[:min(len(m.faults), 8)] {
			t.Errorf("    %s", fault)
		}
		if findings == mostFindings {
			t.Errorf("ended after %d findings", findings)
			break
		}
	}
	fmt.Printf("mutants of %s: %d, findings %d\n", what, made, findings)
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

// number reads a variable of the environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%s is no number", name, text)
	}
	return n
}

// watch turns a panic into a finding. A loop without end dies with the stacks of all goroutines, as does a panic of
// another goroutine; the files then still lie in the folder.
func (m *Mutant) watch(seed int, try func()) {
	hangs := time.AfterFunc(patience, func() {
		stacks := make([]byte, 1<<20)
		panic(fmt.Sprintf("mutant %d, seed %d, hangs; %s; files in %s\n%s", m.Number, seed, m.How, m.dir,
			stacks[:runtime.Stack(stacks, true)]))
	})
	defer hangs.Stop()
	defer func() {
		if fault := recover(); fault != nil {
			m.Faultf("panic: %v\n%s", fault, debug.Stack())
		}
	}()
	try()
}

// keep writes the files of a finding and returns their common path.
func (m *Mutant) keep(t *testing.T, what string) string {
	dir := os.Getenv("MUTANTS_DIR")
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "findings"); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, fmt.Sprintf("%s-%d.bin", what, m.Number))
	for extension, data := range m.Files {
		if err := os.WriteFile(path+extension, data, 0o600); err != nil {
			t.Error(err)
		}
	}
	return path
}

// Allocated returns how many bytes f took from the heap.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
