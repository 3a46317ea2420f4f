package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	update = flag.Bool("update", false, "rewrite testdata/*.golden")
	record = flag.Bool("record", false, "run the tests of testdata/suite again and rewrite testdata/*.stream")
)

// beProgram is a variable of the environment that makes the program of the tests testreport itself.
const beProgram = "TESTREPORT_BE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(beProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// streams are what commands printed, the status that they ended with, and the command that is run to record it. Output
// of other languages' tests was taken from our runs in which something was broken.
var streams = []struct {
	name    string
	status  int
	command string
}{
	{"passing", 0, "go test -count=1 -json ./sums"},
	{"pages", 1, "env SUITE_SUM=2 go test -count=1 -json -tags suite ./pages ./sums"},
	{"timeout", 1, "go test -count=1 -json -timeout 1s ./slow"},
	{"panic", 1, "go test -count=1 -json ./crashed"},
	{"race", 1, "go test -count=1 -json -race ./raced"},
	{"build", 1, "go test -count=1 -json ./broken ./needy ./sums"},
	{"ended", 1, "env CGO_ENABLED=0 go test -count=1 -json -short ./ended ./sums"},
	{"script", 1, ""},
	{"killed", 137, ""},
	{"text", 1, ""},
	{"ctest", 1, ""},
	{"pytest", 1, ""},
	{"unexplained", 2, ""},
}

// What is shown while the command runs, and the summary, are those of the golden files; the status is the command's.
func TestReports(t *testing.T) {
	folder, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	suite := filepath.Join(folder, "suite")
	t.Chdir(suite)
	for name, value := range map[string]string{"SUITE_SUM": "1", "TIER": "all", "CGO_ENABLED": ""} {
		t.Setenv(name, value)
	}
	for _, s := range streams {
		t.Run(s.name, func(t *testing.T) {
			stream := filepath.Join(folder, s.name+".stream")
			if *record && s.command != "" {
				words := strings.Fields(s.command)
				said, _ := exec.Command(words[0], words[1:]...).Output()
				write(t, stream, bytes.ReplaceAll(said, []byte(suite), []byte("$SUITE")))
			}
			got := report(t, s.status, strings.ReplaceAll(read(t, stream), "$SUITE", suite), s.command)
			got = strings.ReplaceAll(got, suite, "$SUITE")
			golden := filepath.Join(folder, s.name+".golden")
			if *update {
				write(t, golden, []byte(got))
			}
			if want := read(t, golden); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

// report runs a command that prints a stream and ends with the status, and returns what is shown and the summary. It
// has the variables and the flags of the command of which it is a double.
func report(t *testing.T, status int, stream, command string) string {
	t.Helper()
	folder := t.TempDir()
	path, failures := filepath.Join(folder, "stream"), filepath.Join(folder, "failures")
	write(t, path, []byte(stream))
	variables, rest, _ := strings.Cut(command, "go ")
	arguments := append([]string{"--failures", failures, "--part", "Go", "--slowest", "2", "--"},
		strings.Fields(variables)...)
	arguments = append(arguments, "sh", "-c", `cat "$0" && exit `+strconv.Itoa(status), path)
	var shown bytes.Buffer
	if got := run(append(arguments, strings.Fields(rest)...), &shown, &shown); got != status {
		t.Errorf("status %d, want %d", got, status)
	}
	shown.WriteString("\n---- summary\n")
	if got := run([]string{"--summary", failures}, &shown, &shown); got != 0 {
		t.Errorf("the summary ends with status %d", got)
	}
	return strings.ReplaceAll(shown.String(), path, "STREAM")
}

// A testreport within a command of another passes its failures to that one, which does not repeat them, and whose part
// precedes theirs.
func TestNested(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(folder, "suite"))
	failures := filepath.Join(t.TempDir(), "failures")
	inner := beProgram + `=1 ` + program + ` --part pages -- sh -c 'cat ../pages.stream; exit 1'; echo "failed: a script"; exit 3`
	var shown bytes.Buffer
	status := run([]string{"--failures", failures, "--part", "all", "--", "sh", "-c", inner}, &shown, &shown)
	if status != 3 {
		t.Fatalf("status %d, want 3\n%s", status, &shown)
	}
	all, err := readFailures(failures)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range all {
		names = append(names, f.Part+": "+f.Name)
	}
	want := []string{"all: pages: TestPage in ./pages", "all: pages: TestLongPage in ./pages",
		"all: pages: TestLine in ./pages",
		"all: pages: TestTable/row's_sum_(a+b)/deep in ./pages", "all: pages: TestBoth in ./pages",
		"all: pages: TestBoth/row in ./pages", "all: " + spelled([]string{"sh", "-c", inner})}
	if got, want := strings.Join(names, "\n"), strings.Join(want, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Where much failed, each failure has its share of a summary that can still be read.
func TestSummaryOfMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "failures")
	all := make([]failure, 20)
	for i := range all {
		all[i] = failure{Name: "TestPage", Difference: slices.Repeat([]string{"line"}, mostLines)}
	}
	for n, share := range map[int]int{1: mostLines, 20: screens / 20} {
		if err := errors.Join(os.RemoveAll(path), appendFailures(path, "", all[:n])); err != nil {
			t.Fatal(err)
		}
		var shown bytes.Buffer
		if err := summarize(path, &shown); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Count(shown.String(), "\n"), 1+n*(1+1+share+1); got != want {
			t.Errorf("%d lines of %d failures, want %d\n%s", got, n, want, &shown)
		}
	}
}

// A command that cannot be started, or that a signal ends, has failed; one that leaves a process is waited for only
// until its last output is read.
func TestCommandsEnd(t *testing.T) {
	defer func(before time.Duration) { leftOpen = before }(leftOpen)
	leftOpen = time.Millisecond
	for _, c := range []struct {
		name   string
		status int
		words  []string
	}{
		{"not there", 127, []string{"./no-such-program"}},
		{"killed", 128 + 9, []string{"sh", "-c", "kill -9 $$"}},
		{"leaves a process", 0, []string{"sh", "-c", "sleep 1000 & echo $! >pid"}},
		{"no command", 2, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			var shown bytes.Buffer
			status := run(append([]string{"--failures", "failures", "--"}, c.words...), &shown, &shown)
			if status != c.status {
				t.Errorf("status %d, want %d\n%s", status, c.status, &shown)
			}
			if all, err := readFailures("failures"); err != nil || (len(all) == 1) != (c.words != nil && status != 0) {
				t.Errorf("failures are %v, %v", all, err)
			}
			if pid, err := os.ReadFile("pid"); err == nil {
				exec.Command("kill", strings.TrimSpace(string(pid))).Run()
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
