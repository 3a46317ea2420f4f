package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// slow is how long a test that passes may take and not be named, in seconds.
const slow = 5

// event is a line of `go test -json`: something that a test or, without Test, its package did, or, with ImportPath, the
// compiler's output.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
	ImportPath, FailedBuild       string
}

// watch follows the output of a command, shows its progress, and keeps what failed.
type watch struct {
	out      io.Writer
	sources  *sources
	packages map[string]*packageRun
	builds   map[string]string // the compiler's output, by the package that it compiled
	broken   map[string]bool   // packages that did not compile and are among the failures
	failures []failure
	slowest  []timed
	text     text // what was not of `go test -json`
}

// packageRun is one run of a package's tests, from its start to its end.
type packageRun struct {
	name  string
	tests map[string]*testRun
	order []string // of tests, as they began
	said  strings.Builder
}

type testRun struct {
	said          strings.Builder
	ended, failed bool
}

type timed struct {
	seconds      float64
	name, folder string
}

func newWatch(out io.Writer, sources *sources) *watch {
	return &watch{
		out: out, sources: sources, packages: map[string]*packageRun{}, builds: map[string]string{},
		broken: map[string]bool{},
	}
}

// line takes the next line of the command's output.
func (w *watch) line(line string) {
	var e event
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
		fmt.Fprintln(w.out, line)
		w.text.line(line)
		return
	}
	switch {
	case e.ImportPath != "":
		w.builds[e.ImportPath] += e.Output
		io.WriteString(w.out, e.Output)
	case e.Test == "":
		w.packageEvent(e)
	default:
		w.testEvent(w.running(e.Package), e)
	}
}

// running returns the run of the package that has not ended yet.
func (w *watch) running(name string) *packageRun {
	p := w.packages[name]
	if p == nil {
		p = &packageRun{name: name, tests: map[string]*testRun{}}
		w.packages[name] = p
	}
	return p
}

func (w *watch) packageEvent(e event) {
	p := w.running(e.Package)
	switch e.Action {
	case "output":
		if strings.HasPrefix(e.Output, "ok  \t") || strings.HasPrefix(e.Output, "FAIL\t") {
			io.WriteString(w.out, e.Output)
		} else if e.Output != "PASS\n" && e.Output != "FAIL\n" {
			p.said.WriteString(e.Output)
		}
	case "fail":
		w.packageFailed(p, e.FailedBuild)
		delete(w.packages, e.Package)
	case "pass", "skip":
		delete(w.packages, e.Package)
	}
}

func (w *watch) testEvent(p *packageRun, e event) {
	t := p.tests[e.Test]
	if t == nil || e.Action == "run" {
		t = &testRun{}
		if p.tests[e.Test] == nil {
			p.order = append(p.order, e.Test)
		}
		p.tests[e.Test] = t
	}
	switch e.Action {
	case "output":
		if !isFrame(e.Output) {
			t.said.WriteString(e.Output)
		}
		return
	case "pass", "skip":
		t.said.Reset()
	case "fail":
		t.failed = true
		fmt.Fprintf(w.out, "--- FAIL: %s (%.2fs) in %s\n%s", e.Test, e.Elapsed, w.sources.folder(p.name), &t.said)
	default:
		return
	}
	t.ended = true
	if !strings.Contains(e.Test, "/") {
		w.slowest = append(w.slowest, timed{e.Elapsed, e.Test, w.sources.folder(p.name)})
		if e.Action == "pass" && e.Elapsed >= slow {
			fmt.Fprintf(w.out, "--- PASS: %s (%.2fs)\n", e.Test, e.Elapsed)
		}
	}
}

// isFrame reports whether a line is of package testing and repeats the events.
func isFrame(line string) bool {
	line = strings.TrimLeft(line, " ")
	return strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- FAIL: ") ||
		strings.HasPrefix(line, "--- PASS: ") || strings.HasPrefix(line, "--- SKIP: ")
}

// packageFailed adds to the failures what is known of a package that failed: the compiler's output, its failed tests,
// or that it ended without one.
func (w *watch) packageFailed(p *packageRun, failedBuild string) {
	if failedBuild != "" {
		// "memtrace/trace", or compiled for its test "memtrace/trace [memtrace/trace.test]"
		importPath, _, _ := strings.Cut(failedBuild, " ")
		if !w.broken[importPath] {
			w.broken[importPath] = true
			w.failures = append(w.failures, w.buildFailure(p, importPath, w.builds[failedBuild]))
		}
		return
	}
	failures := w.testFailures(p)
	if len(failures) == 0 {
		io.WriteString(w.out, p.said.String())
		failures = []failure{w.packageFailure(p)}
	}
	w.failures = append(w.failures, failures...)
}

// failed returns everything that failed in a command that ended with the status, which is not 0. With nested, the
// command itself has reported others.
func (w *watch) failed(status int, nested bool) []failure {
	for _, name := range slices.Sorted(maps.Keys(w.packages)) { // the command ended in the midst of them
		w.packageFailed(w.packages[name], "")
	}
	all := append(w.failures, w.text.failures(w.sources.command, nested || len(w.failures) > 0)...)
	if len(all) == 0 && !nested {
		all = append(all, w.text.unexplained(w.sources.command, status))
	}
	return all
}

// printSlowest names the n tests that took longest, if there were any.
func (w *watch) printSlowest(n int) {
	if n <= 0 || len(w.slowest) == 0 {
		return
	}
	slices.SortStableFunc(w.slowest, func(a, b timed) int { return int(1e6 * (b.seconds - a.seconds)) })
	fmt.Fprintln(w.out, "the slowest tests, in seconds:")
	for _, t := range w.slowest[:min(n, len(w.slowest))] {
		fmt.Fprintf(w.out, "%8.2f  %s in %s\n", t.seconds, t.name, t.folder)
	}
}
