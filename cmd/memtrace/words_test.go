package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestWords: no help text and no golden report has one of the words that docs/glossary.md says texts avoid.
func TestWords(t *testing.T) {
	glossary, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(glossary), "## Words that texts avoid")
	var avoided []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(table, -1) {
		if row[1] != "not" {
			for _, word := range strings.Split(row[1], ", ") {
				avoided = append(avoided, `\b`+regexp.QuoteMeta(word))
			}
		}
	}
	if !found || len(avoided) < 15 {
		t.Fatalf("%d words in the glossary's table", len(avoided))
	}
	words := regexp.MustCompile(`(?i)(` + strings.Join(avoided, "|") + `)`)
	texts := helpTexts(newApp(os.Stdin, os.Stdout, os.Stderr).rootCommand())
	goldens, err := filepath.Glob("../../analyzer/render/testdata/*.txtar")
	if err != nil || len(goldens) < 10 {
		t.Fatalf("%d goldens, %v", len(goldens), err)
	}
	for _, name := range goldens {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(name)] = string(text)
	}
	for name, text := range texts {
		for _, line := range strings.Split(text, "\n") {
			if m := words.FindString(line); m != "" {
				t.Errorf("%s: %q in: %s", name, m, strings.TrimSpace(line))
			}
		}
	}
}

// helpTexts are the help of a command and of those below it, by the command's path.
func helpTexts(c *cobra.Command) map[string]string {
	texts := make(map[string]string)
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		var out bytes.Buffer
		c.SetOut(&out)
		if err := c.Help(); err == nil {
			texts[c.CommandPath()] = out.String()
		}
		for _, below := range c.Commands() {
			visit(below)
		}
	}
	visit(c)
	return texts
}
