//go:build e2e

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Pages of the documentation show commands and their output. A block that begins with ```console holds commands, each
// after "$ ", and below each one its whole output, standard error included; a line "…" matches any lines, also none. A
// block that begins with ```toml and a comment "# NAME.toml" is a file.

// example is a command of a page and what it prints.
type example struct {
	line    int // of the page
	command string
	output  []string
	update  func(e example, came []string) // writes what came into the page; nil: it is compared only
}

// page is what can be run of one.
type page struct {
	blocks [][]example
	files  map[string]string
	plain  []int // lines of blocks that show a command, but are not of the kind that is run
}

func parsePage(text string) (p page) {
	p.files = make(map[string]string)
	var kind, indent string
	var block []string
	inside, begin := false, 0
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && !inside:
			inside, kind, block, begin = true, fence, nil, i+2
			indent = line[:strings.Index(line, "`")]
		case isFence:
			inside = false
			p.take(kind, block, begin)
		case inside:
			block = append(block, strings.TrimPrefix(line, indent))
		}
	}
	return p
}

var fileName = regexp.MustCompile(`^# ([a-z-]+\.toml)\b`)

func (p *page) take(kind string, block []string, begin int) {
	var list []example
	for i, line := range block {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case isCommand:
			list = append(list, example{line: begin + i, command: command})
		case len(list) > 0:
			last := &list[len(list)-1]
			last.output = append(last.output, line)
		}
	}
	name := fileName.FindStringSubmatch(strings.Join(block, "\n"))
	switch {
	case kind == "toml" && name != nil:
		p.files[name[1]] = strings.Join(block, "\n") + "\n"
	case kind == "console" && strings.HasPrefix(block[0], "$ "):
		p.blocks = append(p.blocks, list)
	case kind == "console" || len(list) > 0:
		p.plain = append(p.plain, begin)
	}
}

// differs are the parts of an output that no two runs have in common. Everything else must be as on the page.
var differs = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\+\d+(\.\d+)? (ns|us|µs|ms|s|min)\b`), "+TIME"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+Z?|Z)?`), "DATE"},
	{regexp.MustCompile(`^ +\d+  \S+ +(\d+\.?\d* [KMG]?i?B) `), "PID USER $1 "}, // a process in `memtrace top`
	{regexp.MustCompile(` within \d+\.\d+ [mu]s,`), " within TIME,"},
	{regexp.MustCompile(`thread (\S+) \(\d+\)`), "thread $1 (TID)"},
	// when it was last queried
	{regexp.MustCompile(`the device reported \d+\.?\d* [KMG]iB in use at`), "the device reported BYTES in use at"},
	{regexp.MustCompile(`, busy \d+%`), ", busy N%"},
	{regexp.MustCompile(`^\[\d\d:\d\d:\d\d\] `), "[TIME] "}, // MXNet's log
}

// field is the first line of a field of a report, hanging what it is continued by: where lines break depends on how
// long the number of a process is.
var (
	field   = regexp.MustCompile(`^  \S[\S ]{0,9} {2,}\S`)
	hanging = regexp.MustCompile(`^ {13}(\S.*)$`)
)

// unwrapped puts the lines of a field together.
func unwrapped(lines []string) []string {
	var list []string
	inField := false
	for _, line := range lines {
		if m := hanging.FindStringSubmatch(line); m != nil && inField {
			list[len(list)-1] += " " + m[1]
			continue
		}
		inField = field.MatchString(line)
		list = append(list, line)
	}
	return list
}

// settled returns the lines of a text without what differs, and without empty lines around them.
func settled(lines []string) []string {
	var list []string
	for _, line := range unwrapped(lines) {
		for _, d := range differs {
			line = d.what.ReplaceAllString(line, d.by)
		}
		list = append(list, strings.TrimRight(line, " "))
	}
	for len(list) > 0 && list[0] == "" {
		list = list[1:]
	}
	for len(list) > 0 && list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

const leftOut = "…"

// agrees compares what a page shows with the output. On a mismatch it returns the first line of the page without a
// match.
func agrees(shown, came []string) (ok bool, missing string) {
	shown, came = settled(shown), settled(came)
	reached := make([]bool, len(came)+1) // reached[n]: the lines of the page so far may match the first n
	reached[0] = true
	for _, line := range shown {
		next, some := make([]bool, len(came)+1), false
		for n := range reached {
			switch {
			case strings.TrimSpace(line) == leftOut:
				next[n] = reached[n] || n > 0 && next[n-1]
			case n > 0:
				next[n] = reached[n-1] && came[n-1] == line
			}
			some = some || next[n]
		}
		if !some {
			return false, line
		}
		reached = next
	}
	if !reached[len(came)] {
		return false, "the end"
	}
	return true, ""
}

// console is a shell in which the commands of a block are typed, with the programs of testdata/train in its folder.
type console struct {
	shell  *exec.Cmd
	typed  io.WriteCloser
	prints *bufio.Reader
}

// commandEnd is what the shell prints after the output of each command.
const commandEnd = "\x1e--\n"

func openConsole(t *testing.T, folder, venv string) *console {
	t.Helper()
	// Commands come by a descriptor of their own: programs have the standard input.
	loop := `while IFS= read -r -u 3 typed; do eval "$typed"; printf '` + strings.ReplaceAll(commandEnd, "\n", `\n`) +
		`'; done`
	c := &console{shell: exec.Command(filepath.Join(venv, "bin", "nullcuda-run"), "bash", "-c", loop)}
	c.shell.Dir = folder
	modules := func(variable string) bool { return strings.HasPrefix(variable, "PYTHONPATH=") }
	c.shell.Env = append(slices.DeleteFunc(environ(), modules), "PATH="+filepath.Dir(command())+":"+
		os.Getenv("PATH"), "NULLCUDA_SHARED="+filepath.Join(t.TempDir(), "devices"), "COLUMNS=100", "LC_ALL=C.UTF-8",
		patience)
	c.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	commands, typed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	prints, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.shell.ExtraFiles = []*os.File{commands}
	c.shell.Stdout, c.shell.Stderr = output, output
	c.typed, c.prints = typed, bufio.NewReader(prints)
	if err := c.shell.Start(); err != nil {
		t.Fatal(err)
	}
	commands.Close()
	output.Close()
	timer := time.AfterFunc(limit, func() { syscall.Kill(-c.shell.Process.Pid, syscall.SIGKILL) })
	t.Cleanup(func() {
		timer.Stop()
		typed.Close()
		syscall.Kill(-c.shell.Process.Pid, syscall.SIGKILL) // programs in the background, too
		c.shell.Wait()
		prints.Close()
	})
	return c
}

// run types a command and returns what it prints.
func (c *console) run(t *testing.T, command string) []string {
	t.Helper()
	if _, err := io.WriteString(c.typed, command+"\n"); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	var text strings.Builder
	for !strings.HasSuffix(text.String(), commandEnd) {
		line, err := c.prints.ReadString('\n')
		text.WriteString(line)
		if err != nil {
			t.Fatalf("%s: %v after\n%s", command, err, text.String())
		}
	}
	return strings.Split(strings.TrimSuffix(text.String(), commandEnd), "\n")
}

// check runs an example. What a live view shows comes when the program in the background has got there.
func (e example) check(t *testing.T, c *console) {
	t.Helper()
	for end := time.Now().Add(limit / 5); ; time.Sleep(200 * time.Millisecond) {
		came := c.run(t, e.command)
		ok, missing := agrees(e.output, came)
		switch {
		case ok:
			return
		case strings.Contains(e.command, "memtrace top") && time.Now().Before(end):
			continue
		}
		if e.update != nil && !slices.Contains(e.output, leftOut) {
			e.update(e, came)
			return
		}
		t.Errorf("line %d: $ %s\nthe page says\n%s\nit printed\n%s\nwithout: %s", e.line, e.command,
			strings.Join(e.output, "\n"), strings.Join(came, "\n"), missing)
		return
	}
}

// readPage returns a page by its path below the root.
func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// programsOf makes the folder in which a page is tried: testdata/train of a checkout, and in it the page's own files.
func (p *page) programsOf(t *testing.T) string {
	t.Helper()
	checkout := t.TempDir()
	folder := filepath.Join(checkout, "testdata", "train")
	if err := os.Symlink(filepath.Join(root(), "python"), filepath.Join(checkout, "python")); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"train", "python"} {
		if err := os.CopyFS(filepath.Join(checkout, "testdata", part),
			os.DirFS(filepath.Join(root(), "testdata", part))); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range p.files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func (e example) String() string { return fmt.Sprintf("line %d: %s", e.line, e.command) }
