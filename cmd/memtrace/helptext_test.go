package main

import (
	"strings"
	"testing"

	"memtrace/internal/console"
)

// Paragraphs keep to the width; commands, which are indented, stay as they are.
func TestReflow(t *testing.T) {
	text :=
		"Record a program with the library preloaded, and say at its end where its memory was.\n\n  memtrace run -o 'traces/%q{RANK}.%p.bin' -- torchrun --nproc-per-node 8 train.py\n\nShort."
	want :=
		"Record a program with the library preloaded, and say at its\nend where its memory was.\n\n  memtrace run -o 'traces/%q{RANK}.%p.bin' -- torchrun --nproc-per-node 8 train.py\n\nShort."
	if got := console.Reflow(text, 60); got != want {
		t.Errorf("%s", got)
	}
	if got := console.Reflow(text, 0); got != text {
		t.Errorf("%s", got)
	}
}

// At 60 columns no paragraph of any command's help is wider, and at 80 no flag.
func TestHelpKeepsToTheTerminal(t *testing.T) {
	a := &app{}
	root := a.rootCommand()
	for _, cmd := range append(root.Commands(), root) {
		check := func(text string, columns int) {
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(line, "\n")
				if n := len([]rune(line)); n > columns {
					t.Errorf("%s: %d columns of %d: %s", cmd.Name(), n, columns, line)
				}
			}
		}
		check(cmd.LocalFlags().FlagUsagesWrapped(80), 80)
		for paragraph := range strings.SplitSeq(console.Reflow(cmd.Long, 60), "\n\n") {
			if !strings.HasPrefix(paragraph, " ") && !strings.Contains(paragraph, "\n ") {
				check(paragraph, 60)
			}
		}
	}
}
