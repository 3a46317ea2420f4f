package main

import (
	"fmt"
	"regexp"
	"strings"
)

// text keeps, of output that is not of `go test -json`, what reports failures: of C programs, scripts, pytest, make,
// sanitizers, and of Go tests whose output is text.
type text struct {
	found    []line
	last     []string // lines, of which there are lastLines at the most
	follow   int      // how many indented lines still belong to the one before
	section  string   // of pytest's failures: the test that it is about
	sections map[string][]string
	pytest   []pytestFailure
}

// line is one that reports a failure. One that a testreport within the command may have printed is weak: if the failure
// is reported otherwise, it is not repeated.
type line struct {
	text string
	weak bool
}

type pytestFailure struct{ id, message string }

var (
	strong = regexp.MustCompile(`(^|: )failed: |^FAIL {2}|_test[.](c|cpp|py):\d+: |^\S+\.[ch]:\d+: .*, want |` +
		`ended with wait status|ERROR: .*Sanitizer|runtime error: `)
	weak = regexp.MustCompile(`^ *--- FAIL|^FAIL\t|^panic: |DATA RACE|_test[.]go:\d+: `)

	pytestSection = regexp.MustCompile(`^_{3,} (?:ERROR (?:at \w+ of|collecting) )?(.*?) _{3,}$`)
	pytestDetail  = regexp.MustCompile(`^E  |^[^/\s]\S*\.py:\d+: `)
	pytestFailed  = regexp.MustCompile(`^(?:FAILED|ERROR) (\S+\.py(?:::.*?)?)(?: - (.*))?$`)
)

// followed is how many indented lines after one that reports a failure belong to it.
const followed = 12

// line takes the next line.
func (t *text) line(s string) {
	if t.last = append(t.last, s); len(t.last) > lastLines {
		t.last = t.last[1:]
	}
	if m := pytestSection.FindStringSubmatch(s); m != nil {
		t.section = m[1]
		return
	}
	if m := pytestFailed.FindStringSubmatch(s); m != nil {
		t.pytest = append(t.pytest, pytestFailure{m[1], m[2]})
		t.section = ""
		return
	}
	if t.section != "" {
		if pytestDetail.MatchString(s) {
			if t.sections == nil {
				t.sections = map[string][]string{}
			}
			t.sections[t.section] = append(t.sections[t.section], s)
		}
		return
	}
	switch isWeak := weak.MatchString(s); {
	case isWeak || strong.MatchString(s):
		t.found = append(t.found, line{s, isWeak})
		t.follow = followed
	case t.follow > 0 && strings.HasPrefix(s, "    "):
		t.found = append(t.found, line{s, t.found[len(t.found)-1].weak})
		t.follow--
	default:
		t.follow = 0
	}
}

// failures returns one failure for each test of pytest, and one of the command for all other lines. If reported is
// true, the weak ones are of failures that are reported already.
func (t *text) failures(command []string, reported bool) (all []failure) {
	for _, p := range t.pytest {
		all = append(all, t.ofPytest(p, command))
	}
	reported = reported || len(t.pytest) > 0
	for _, line := range t.found {
		reported = reported || !line.weak
	}
	var lines []string
	for _, line := range t.found {
		if !line.weak || !reported {
			lines = append(lines, line.text)
		}
	}
	if len(lines) > 0 {
		words := spelled(command)
		all = append(all, failure{Name: words, Difference: cut(lines, mostLines), Alone: words})
	}
	return all
}

// ofPytest is the failure of one test of pytest, whose sections have names such as TestClass.test_name.
func (t *text) ofPytest(p pytestFailure, command []string) failure {
	path, test, isTest := strings.Cut(p.id, "::")
	section := strings.ReplaceAll(test, "::", ".")
	if !isTest {
		section = path
	}
	lines := t.sections[section]
	if len(lines) == 0 && p.message != "" {
		lines = []string{p.message}
	}
	alone := spelled(command)
	switch {
	case strings.HasPrefix(path, "tests/"):
		alone = "scripts/test-python.sh " + quote(p.id)
	case strings.HasPrefix(path, "python/release/tests/") && isTest:
		alone = "scripts/test-wheel.sh -k " + quote(test[strings.LastIndex(test, ":")+1:])
	}
	return failure{Name: p.id, Difference: cut(lines, mostLines), Alone: alone}
}

// unexplained is the failure of a command that failed without a reason.
func (t *text) unexplained(command []string, status int) failure {
	words := spelled(command)
	lines := append([]string{fmt.Sprintf("it ended with status %d after", status)}, t.last...)
	return failure{Name: words, Difference: lines, Alone: words}
}

// spelled returns a command as one types it.
func spelled(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = quote(word)
	}
	return strings.Join(words, " ")
}
