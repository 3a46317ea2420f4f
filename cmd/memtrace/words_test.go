package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// avoidedWords reads the words that texts avoid from docs/glossary.md.
func avoidedWords(t *testing.T) []string {
	t.Helper()
	glossary, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(glossary), "## Words that texts avoid")
	var avoided []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(table, -1) {
		if row[1] != "not" {
			avoided = append(avoided, strings.Split(row[1], ", ")...)
		}
	}
	if !found || len(avoided) < 15 {
		t.Fatalf("%d words in the glossary's table", len(avoided))
	}
	return avoided
}

// findingWords is an expression that finds any of the words.
func findingWords(words []string) *regexp.Regexp {
	var quoted []string
	for _, word := range words {
		quoted = append(quoted, `\b`+regexp.QuoteMeta(word))
	}
	return regexp.MustCompile(`(?i)(` + strings.Join(quoted, "|") + `)`)
}

// TestWords: no help text and no golden report has one of the words that docs/glossary.md lists to be avoided.
func TestWords(t *testing.T) {
	words := findingWords(avoidedWords(t))
	texts := helpTexts(rootCommand(newApp(os.Stdin, os.Stdout, os.Stderr)))
	goldens, err := filepath.Glob("../../internal/render/testdata/*.txtar")
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

// allowedInPages are words that mean something else in the sentences of pages.
var allowedInPages = []string{"the whole", "asked for", "and stop", "says the same", "told of"}

// TestWordsOfPages: neither do the pages of the documentation and the README, outside of what they show of programs.
func TestWordsOfPages(t *testing.T) {
	words := findingWords(slices.DeleteFunc(avoidedWords(t), func(word string) bool {
		return slices.Contains(allowedInPages, word)
	}))
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 30 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, name := range append(pages, "../../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		prose, _, _ := strings.Cut(string(text), "## Words that texts avoid")
		shown := false
		for i, line := range strings.Split(prose, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				shown = !shown
			}
			if m := words.FindString(line); m != "" && !shown {
				t.Errorf("%s:%d: %q in: %s", filepath.Base(name), i+1, m, strings.TrimSpace(line))
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
