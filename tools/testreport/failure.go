package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
)

// failure describes something that failed. A file of failures has one a line, as JSON.
type failure struct {
	Part       string   `json:",omitempty"` // of the run
	Name       string   // a test with its package, a build, a command
	Claim      string   `json:",omitempty"`
	Difference []string `json:",omitempty"` // lines, of which there are mostLines at the most
	Recordings []string `json:",omitempty"`
	Alone      string   // the command that runs it and nothing else
}

// recording matches what a test logs of the recording that it uses.
var recording = regexp.MustCompile(`^(?:\s*[\w.-]+\.go:\d+: )?\s*recording: (.+)$`)

// takeRecordings returns the lines without those that name recordings, and these.
func takeRecordings(lines []string) (rest, recordings []string) {
	for _, line := range lines {
		if m := recording.FindStringSubmatch(line); m != nil {
			recordings = append(recordings, m[1])
		} else {
			rest = append(rest, line)
		}
	}
	return rest, recordings
}

// crash matches the first line of a crash of Go's runtime.
var crash = regexp.MustCompile(`(?m)^(panic: |fatal error: |SIGQUIT: )`)

// timedOut matches the first line of its output when tests have taken too long, and the names of those tests.
var timedOut = regexp.MustCompile(`(?m)^panic: test timed out after .*\n\trunning tests:\n((?:\t\t.*\n)+)`)

// testFailures returns the failures of a package's tests. A test that failed only because one of its subtests did is
// not among them, and neither is one that was under way when another crashed.
func (w *watch) testFailures(p *packageRun) (failures []failure) {
	for _, name := range p.order {
		t := p.tests[name]
		text := t.said.String()
		if m := timedOut.FindStringSubmatch(text); m != nil {
			failures = append(failures, w.timeout(p, m[1], text))
			continue
		}
		if !t.failed && (t.ended || !crash.MatchString(text)) {
			continue
		}
		if !t.ended {
			io.WriteString(w.out, text)
		}
		lines, recordings := takeRecordings(w.linesOf(text))
		if len(lines) == 0 && (p.failedBelow(name) || p.crashedAbove(name)) {
			continue
		}
		for above := parent(name); above != ""; above = parent(above) {
			if ran := p.tests[above]; ran != nil {
				_, more := takeRecordings(w.linesOf(ran.said.String()))
				recordings = append(recordings, more...)
			}
		}
		root, _, _ := strings.Cut(name, "/")
		failures = append(failures, failure{
			Name:       name + " in " + w.sources.folder(p.name),
			Claim:      w.sources.of(p.name).claims[root],
			Difference: difference(lines),
			Recordings: sorted(recordings),
			Alone:      w.sources.alone(p.name, name, only(name)),
		})
	}
	return failures
}

func parent(test string) string { return test[:max(0, strings.LastIndex(test, "/"))] }

func (p *packageRun) failedBelow(name string) bool {
	return slices.ContainsFunc(p.order, func(other string) bool {
		return p.tests[other].failed && strings.HasPrefix(other, name+"/")
	})
}

// crashedAbove reports whether one of a test's parents has the output of the crash that ended it.
func (p *packageRun) crashedAbove(name string) bool {
	for above := parent(name); above != ""; above = parent(above) {
		if ran := p.tests[above]; ran != nil && crash.MatchString(ran.said.String()) {
			return true
		}
	}
	return false
}

// timeout returns the failures of tests that took too long, of which running has a line each, "\t\tTestX (1m0s)".
func (w *watch) timeout(p *packageRun, running, text string) failure {
	io.WriteString(w.out, text)
	var names, roots []string
	for line := range strings.Lines(running) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " (")
		root, _, _ := strings.Cut(name, "/")
		names, roots = append(names, name), append(roots, regexp.QuoteMeta(root))
	}
	pattern := only(names[0])
	if len(names) > 1 {
		pattern = "^(" + strings.Join(sorted(roots), "|") + ")$"
	}
	root, _, _ := strings.Cut(names[0], "/")
	return failure{
		Name:       strings.Join(names, ", ") + " in " + w.sources.folder(p.name) + " (timeout)",
		Claim:      w.sources.of(p.name).claims[root],
		Difference: difference(w.linesOf(text)),
		Alone:      w.sources.alone(p.name, names[0], pattern),
	}
}

// packageFailure is the failure of a package none of whose tests failed: its TestMain ended it, something killed it, or
// it did not come to its end.
func (w *watch) packageFailure(p *packageRun) failure {
	lines := w.linesOf(p.said.String())
	for _, name := range p.order {
		if !p.tests[name].ended {
			lines = append(lines, "under way: "+name)
		}
	}
	if len(lines) == 0 {
		lines = []string{"it failed, and no test of it did"}
	}
	return failure{
		Name:       w.sources.folder(p.name),
		Difference: difference(lines),
		Alone:      w.sources.alone(p.name, "", ""),
	}
}

// buildFailure is the failure of a package that does not compile, which p is the first to need, with the compiler's
// output.
func (w *watch) buildFailure(p *packageRun, importPath, said string) failure {
	var lines []string
	for _, line := range w.linesOf(said) {
		if !strings.HasPrefix(line, "# ") {
			lines = append(lines, line)
		}
	}
	return failure{
		Name:       "build of " + w.sources.folder(importPath),
		Difference: difference(lines),
		Alone:      w.sources.alone(p.name, "", "^$"),
	}
}

// linesOf returns the lines of a text, without blanks at their ends and empty lines at its end. Paths below the folder
// that the command runs in are from there.
func (w *watch) linesOf(text string) (lines []string) {
	text = strings.ReplaceAll(text, w.sources.root+"/", "")
	for line := range strings.Lines(strings.TrimSpace("|" + text)[1:]) {
		lines = append(lines, strings.TrimRight(line, " \r\n"))
	}
	return lines
}

// appendFailures adds failures of a part to a file, by one write, so that those of parts that run at once stay apart.
func appendFailures(path, part string, failures []failure) error {
	var lines bytes.Buffer
	for _, f := range failures {
		if part != "" && f.Part != "" {
			f.Part = part + ": " + f.Part
		} else {
			f.Part += part
		}
		line, err := json.Marshal(f)
		if err != nil {
			return err
		}
		lines.Write(append(line, '\n'))
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(lines.Bytes())
	return errors.Join(err, file.Close())
}

// readFailures returns what appendFailures has written; of a file that is not there, nothing.
func readFailures(path string) (failures []failure, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var f failure
		if err := decoder.Decode(&f); errors.Is(err, io.EOF) {
			return failures, nil
		} else if err != nil {
			return failures, fmt.Errorf("read failures of %s: %w", path, err)
		}
		failures = append(failures, f)
	}
}
