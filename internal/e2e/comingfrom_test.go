//go:build e2e

package e2e

import (
	"cmp"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"memtrace/internal/guest"
)

func root() string { return guest.Root() }

// pages are those whose examples are run.
var pages = []string{"docs/coming-from.md", "docs/training.md", "docs/rules.md", "docs/names.md",
	"docs/libraries.md", "docs/oom.md", "docs/questions.md", "docs/import.md"}

// frameworkOf returns, from the names of a block's programs, the framework that they need, or "".
func frameworkOf(block []example) string {
	for _, e := range block {
		switch program := pythonProgram.FindString(e.command); {
		case strings.HasPrefix(program, "mxnet_"):
			return mxnet
		case strings.HasPrefix(program, "jax_"):
			return jax
		case program != "":
			return torch27
		}
	}
	return ""
}

var pythonProgram = regexp.MustCompile(`\b\w+\.py\b`)

// With -update-pages, outputs that differ are written into the pages, except those that leave lines out.
var updatePages = flag.Bool("update-pages", false, "write what commands print into the pages of the documentation")

// printed is an example of a page and what its command prints now.
type printed struct {
	example
	came []string
}

// writePage replaces outputs, from the end of the page to its beginning.
func writePage(t *testing.T, path string, changes []printed) {
	t.Helper()
	lines := strings.Split(readPage(t, path), "\n")
	for _, c := range slices.Backward(changes) {
		indent := strings.Repeat(" ", strings.Index(lines[c.line-1], "$"))
		var output []string
		for _, line := range trimmed(c.came) {
			output = append(output, strings.TrimRight(indent+line, " "))
		}
		end := c.line + len(c.output)
		if n := len(c.output); n > 0 && strings.TrimSpace(c.output[n-1]) == "" { // the gap before the next command
			output = append(output, "")
		}
		lines = slices.Replace(lines, c.line, end, output...)
	}
	if err := os.WriteFile(filepath.Join(root(), path), []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// trimmed leaves out empty lines at both ends.
func trimmed(lines []string) []string {
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// TestPages runs the pages' commands in a shell, in their order, and compares its output with the pages, every figure
// of it.
func TestPages(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, path := range pages {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			text := readPage(t, path)
			p := parsePage(text)
			if len(p.blocks) == 0 {
				t.Fatal("the page shows no commands")
			}
			if _, err := exec.LookPath("jq"); err != nil && strings.Contains(text, "| jq ") {
				t.Skip("there is no jq, which the page uses")
			}
			folder := p.programsOf(t)
			var changes []printed
			consoles, framework := map[string]*console{}, torch27
			for _, block := range p.blocks {
				framework = cmp.Or(frameworkOf(block), framework) // who reads on stays in the same shell
				c := consoles[framework]
				if c == nil {
					c = openConsole(t, folder, venv(t, framework, ""))
					consoles[framework] = c
				}
				for _, e := range block {
					if *updatePages {
						e.update = func(e example, came []string) { changes = append(changes, printed{e, came}) }
					}
					e.check(t, c)
				}
			}
			if len(changes) > 0 {
				writePage(t, path, changes)
			}
		})
	}
}

// TestEveryExampleIsRun: no page shows commands with a prompt that TestPages does not run.
func TestEveryExampleIsRun(t *testing.T) {
	t.Parallel()
	docs, err := filepath.Glob(filepath.Join(root(), "docs", "*.md"))
	if err != nil || len(docs) < len(pages) {
		t.Fatalf("pages %v: %v", docs, err)
	}
	for _, path := range append(docs, filepath.Join(root(), "README.md"), filepath.Join(root(), "CONTRIBUTING.md")) {
		name, err := filepath.Rel(root(), path)
		if err != nil {
			t.Fatal(err)
		}
		p := parsePage(readPage(t, name))
		for _, line := range p.plain {
			t.Errorf("%s:%d: the block has commands, but is not marked as console", name, line)
		}
		if len(p.blocks) > 0 && !slices.Contains(pages, name) {
			t.Errorf("%s has examples that are not run", name)
		}
	}
}

var (
	written = regexp.MustCompile(
		"\\bmemtrace (report|run|diff|export|top|info|dump|rules|embed|strip|anonymize|import|plot)\\b([^`#\n]*)")
	option = regexp.MustCompile(`(?:^|\s)(--?[a-z][a-z-]*)`)
)

// TestFlagsOfPages: every flag that a page has after a verb is one of the verb's.
func TestFlagsOfPages(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(root(), "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	help, seen := map[string]string{}, 0
	for _, path := range append(paths, filepath.Join(root(), "README.md")) {
		name, err := filepath.Rel(root(), path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range written.FindAllStringSubmatch(readPage(t, name), -1) {
			verb := m[1]
			if help[verb] == "" {
				help[verb] = memtrace(t, verb, "-h")
			}
			arguments, _, _ := strings.Cut(m[2], " -- ")
			arguments, _, _ = strings.Cut(arguments, " | ")
			for _, f := range option.FindAllStringSubmatch(arguments, -1) {
				seen++
				if !regexp.MustCompile(`(?m)^ +(-\w, )?` + f[1] + `( |,|\[=|$)`).MatchString(help[verb]) {
					t.Errorf("%s: memtrace %s has no %s, in `memtrace %s%s`", name, verb, f[1], verb, m[2])
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d flags in all pages", seen)
	}
}

// TestPageComparison: a page with one wrong figure, a line too few or one too many is reported.
func TestPageComparison(t *testing.T) {
	t.Parallel()
	p :=
		parsePage(
			"text\n```console\n$ memtrace report x.bin\n…\nat the peak, +1.25 s\n  Weights    3.15 MiB  33\n\n  the whole  3.15 MiB\n…\n\n$ memtrace run -- a &\n```\n```toml\n# mine.toml  as before\nx = 1\n```\n```\n$ not run\n```\n")
	if len(p.blocks) != 1 || len(p.blocks[0]) != 2 || p.blocks[0][0].line != 3 || len(p.blocks[0][1].output) != 0 ||
		len(p.plain) != 1 || !strings.HasSuffix(p.files["mine.toml"], "x = 1\n") {
		t.Fatalf("parsed %+v", p)
	}
	shown := p.blocks[0][0].output
	for came, want := range map[string]bool{
		"memtrace report\n\nat the peak, +9.1 ms\n  Weights    3.15 MiB  33\n\n  the whole  3.15 MiB\n\nmore\n": true,
		"at the peak, +9.1 ms\n  Weights    3.15 MiB  33\n\n  the whole  3.15 MiB\n":                            true,
		"at the peak, +9.1 ms\n  Weights    3.16 MiB  33\n\n  the whole  3.15 MiB\n":                            false,
		"at the peak, +9.1 ms\n  Weights    3.15 MiB  34\n\n  the whole  3.15 MiB\n":                            false,
		"at the peak, +9.1 ms\n  Weights    3.15 MiB  33\n  the whole  3.15 MiB\n":                              false,
		"at the peak, +9.1 ms\n  Weights    3.15 MiB  33\n\n  Others 1 B\n  the whole  3.15 MiB\n":              false,
		"at the peak, +9.1 ms\n  Weights    3.15 MiB  33\n":                                                     false,
		"": false,
	} {
		if ok, _ := agrees(shown, strings.Split(came, "\n")); ok != want {
			t.Errorf("agrees is %v with\n%s", ok, came)
		}
	}
	if ok, _ := agrees(nil, []string{"a warning"}); ok {
		t.Error("a command that the page shows without output may print")
	}
}
