package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"memtrace/internal/check"
	"memtrace/internal/cli"
)

// onTerminal runs a command line on a terminal of so many columns and returns what it shows, both streams in one.
func onTerminal(t *testing.T, columns int, args []string) string {
	t.Helper()
	keyboard, terminal := openTerminal(t)
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ,
		&unix.Winsize{Row: 40, Col: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(&shown, keyboard) // ends with an error when the terminal is closed
		close(done)
	}()
	newApp(strings.NewReader(""), terminal, terminal).execute(args)
	terminal.Close()
	<-done
	keyboard.Close()
	return strings.ReplaceAll(shown.String(), "\r\n", "\n")
}

// writesData reports whether a command prints a file for another program, whose lines are not the terminal's business.
func writesData(args []string) bool {
	verb := args[0]
	return verb == "dump" || verb == "man" || verb == "completion" || verb == "rules" && len(args) > 1 ||
		slices.Contains(args, "--json") || slices.Contains(args, "json") ||
		slices.Contains(args, "--csv") || slices.Contains(args, "-") || slices.Contains(args, "--ascii")
}

func wantLinesOf(t *testing.T, what string, columns int, text string) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		if i := strings.LastIndexByte(line, '\r'); i >= 0 { // a line that was drawn over
			line = line[i+1:]
		}
		if n := ansi.StringWidth(line); n > columns {
			t.Errorf("%s: %d columns of %d: %q", what, n, columns, line)
		}
	}
}

// TestEveryVerbFitsTheTerminal: neither help nor reports nor messages of any verb have a line that is longer than the
// terminal, though the trace has names of 200 letters.
func TestEveryVerbFitsTheTerminal(t *testing.T) {
	words := strings.NewReplacer(evilFiles(t)...)
	t.Setenv("MEMTRACE_LIBRARY", emptyLibrary(t))
	for _, columns := range []int{60, 80} {
		for verb, lines := range evilCommands {
			for _, line := range lines {
				args := make([]string, len(line))
				for i, word := range line {
					args[i] = words.Replace(word)
				}
				if writesData(args) {
					continue
				}
				shown := onTerminal(t, columns, args)
				wantLinesOf(t, strings.Join(line, " "), columns, shown)
				if verb == "report" && shown == "" {
					t.Errorf("%q shows nothing", line)
				}
			}
		}
	}
}

// TestHelpFitsTheTerminal: no line of any help is longer than the terminal.
func TestHelpFitsTheTerminal(t *testing.T) {
	var visit func(c *cobra.Command, path []string)
	visit = func(c *cobra.Command, path []string) {
		for _, columns := range []int{60, 80} {
			shown := onTerminal(t, columns, append(slices.Clone(path), "--help"))
			wantLinesOf(t, strings.Join(path, " ")+" --help", columns, shown)
			if !strings.Contains(shown, "Usage:") {
				t.Errorf("%q shows no usage: %s", path, shown)
			}
		}
		for _, below := range c.Commands() {
			visit(below, append(slices.Clone(path), below.Name()))
		}
	}
	visit(rootCommand(&app{}), nil)
}

// TestHelpIsShort: text and examples of every help take at most a screen of 24 lines before the flags; the rest is left
// to 'memtrace help' and the man page.
func TestHelpIsShort(t *testing.T) {
	for _, c := range rootCommand(&app{}).Commands() {
		shown := onTerminal(t, 80, []string{c.Name(), "--help"})
		text, found := strings.TrimPrefix(shown, "Usage:"), false
		for _, title := range []string{cli.Recording, cli.GroupWhat, cli.Gates, "Flags"} {
			if !found {
				text, _, found = strings.Cut(text, "\n"+title+":\n")
			}
		}
		if lines := strings.Count(text, "\n"); !found || lines > 24 {
			t.Errorf("%s --help: %d lines before the flags:\n%s", c.Name(), lines, text)
		}
	}
}

// TestHelpExplainsGates: the help has a line for everything that --max and --assert take.
func TestHelpExplainsGates(t *testing.T) {
	explained := map[string]bool{}
	for _, line := range strings.Split(checkDetails, "\n") {
		first, _, _ := strings.Cut(strings.TrimSpace(line), "   ")
		for _, name := range strings.Split(first, ", ") {
			name, _, _ = strings.Cut(strings.ReplaceAll(name, "=", ":"), ":")
			explained[name] = true
		}
	}
	for _, name := range slices.Concat(check.SubjectNames(), check.AssertNames()) {
		if !explained[strings.TrimRight(name, ":=")] {
			t.Errorf("memtrace help check does not explain %s", name)
		}
	}
}

// TestFitLine: text in a column stays there, and lists are indented under their text.
func TestFitLine(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"  snapshot   write a small trace of what is live now, with call stacks",
			"  snapshot   write a small trace of what\n             is live now, with call\n             stacks"},
		{"  - one thing after another that is not short", "  - one thing after another that is not\n    short"},
		{"memtrace: there is no trace in the folder that you named",
			"memtrace: there is no trace in the\nfolder that you named"},
		{"http://127.0.0.1:8080/a-long-address-that-must-stay-whole",
			"http://127.0.0.1:8080/a-long-address-that-must-stay-whole"},
		{"\x1b[1mone two three four five six seven eight nine\x1b[m",
			"\x1b[1mone two three four five six seven eight\nnine\x1b[m"},
	} {
		if got := cli.FitText(c.line, 40); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestBrokenCommandsRun: a command that is broken into lines is the same for a shell.
func TestBrokenCommandsRun(t *testing.T) {
	folder := t.TempDir()
	script := "#!/bin/sh\nfor word; do echo \"<$word>\"; done\n"
	if err := os.WriteFile(filepath.Join(folder, "memtrace"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(command string) string {
		cmd := exec.Command("sh", "-c", command)
		cmd.Env = []string{"PATH=" + folder + ":/bin:/usr/bin"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v: %s", command, err, out)
		}
		return string(out)
	}
	for _, command := range []string{
		"  memtrace run -o 'traces/%q{RANK}.%p.bin' -- torchrun --nproc-per-node 8 train.py",
		"  memtrace report --at mark:before-the-large-batch " + strings.Repeat("folder/", 20) + "trace.bin",
		"  memtrace report --focus 'a  b' --tag \"x y\" --depth 4 trace.bin && memtrace html trace.bin  # both",
		"  memtrace " + strings.Repeat("x", 39) + " " + strings.Repeat("y", 38) + " z",
	} {
		for columns := 20; columns < 90; columns++ {
			broken := cli.FitText(command, columns)
			if run(broken) != run(command) {
				t.Fatalf("%d columns: %q is not %q", columns, broken, command)
			}
		}
	}
}
