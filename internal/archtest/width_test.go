package archtest

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// widest is how many columns a line of Go or C may have, with four for a tab.
const widest = 120

// longLiteral matches a string that takes up most of a line: it is not cut, so that it can be searched for.
var longLiteral = regexp.MustCompile("(\"(?:[^\"\\\\]|\\\\.){78,}\"|`[^`]{78,}`)")

// width returns how many columns a line takes.
func width(line string) int { return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) }

// TestWidth: lines fit beside each other on a screen, except long strings and verbatim text: raw strings of several
// lines, and examples in comments.
func TestWidth(t *testing.T) {
	seen := 0
	eachSource(t, func(name, extension string, text []byte) error {
		if strings.HasSuffix(name, "_gen.go") {
			return nil
		}
		seen++
		var verbatim map[int]bool
		if extension == ".go" {
			verbatim = verbatimLines(text)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if width(line) > widest && !verbatim[i+1] && !longLiteral.MatchString(line) &&
				!strings.Contains(line, "//go:build") && !strings.Contains(line, "Code generated") {
				t.Errorf("%s:%d has %d columns, %d are the most", name, i+1, width(line), widest)
			}
		}
		return nil
	})
	if seen < 500 {
		t.Fatalf("%d files are too few to believe", seen)
	}
}

// verbatimLines returns the lines of a Go file that belong to raw strings of several lines, or to comments that are
// shown as they are.
func verbatimLines(text []byte) map[int]bool {
	lines, set := map[int]bool{}, token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		at, kind, literal := s.Scan()
		switch {
		case kind == token.EOF:
			return lines
		case kind == token.COMMENT && strings.HasPrefix(literal, "//\t"):
			lines[file.Line(at)] = true
		case kind == token.STRING && literal[0] == '`':
			for n := range strings.Count(literal, "\n") + 1 {
				lines[file.Line(at)+n] = true
			}
		}
	}
}
