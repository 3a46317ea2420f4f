package archtest

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

var (
	words = regexp.MustCompile(`\w+`)
	// goNames match what can only be an identifier in a comment in Go: camel case, and a doc link.
	goNames = regexp.MustCompile(`(?:^|[^\w/.\\-])([a-z][a-z0-9]*[A-Z]\w*)|\[([A-Z]\w*)\]`)
	// cNames match the library's own identifiers, unless they are a pattern: mt_noun_*.
	cNames   = regexp.MustCompile(`\b((?:mt|MT|memtrace)_\w*[A-Za-z0-9])(?:[^\w*]|$)`)
	cComment = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`)
)

// comment is one comment, or several lines of it.
type comment struct {
	file string
	line int
	text string
}

// commentsOfGo splits a file: words of its code go into known.
func commentsOfGo(name string, text []byte, known map[string]bool) (list []comment) {
	set := token.NewFileSet()
	file := set.AddFile(name, set.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		at, kind, literal := s.Scan()
		switch kind {
		case token.EOF:
			return list
		case token.COMMENT:
			list = append(list, comment{name, file.Line(at), literal})
		default:
			addWords(known, literal)
		}
	}
}

func commentsOfC(name string, text []byte, known map[string]bool) (list []comment) {
	last := 0
	for _, at := range cComment.FindAllIndex(text, -1) {
		if text[at[0]] != '/' {
			continue // a string
		}
		addWords(known, string(text[last:at[0]]))
		last = at[1]
		line := 1 + strings.Count(string(text[:at[0]]), "\n")
		list = append(list, comment{name, line, string(text[at[0]:at[1]])})
	}
	addWords(known, string(text[last:]))
	return list
}

func addWords(known map[string]bool, text string) {
	for _, word := range words.FindAllString(text, -1) {
		known[word] = true
	}
}

// TestCommentsNameWhatExists: a name in a comment is one of the code's. Otherwise something was renamed or deleted, and
// the comment sends its reader to look for it.
func TestCommentsNameWhatExists(t *testing.T) {
	known := map[string]bool{}
	var inGo, inC []comment
	eachFile(t, []string{".go", ".c", ".h", ".cpp", ".def", ".S", ".py", ".js", ".mjs", ".sh", ".mk", ".map"},
		func(name, extension string, text []byte) error {
			switch extension {
			case ".go":
				inGo = append(inGo, commentsOfGo(name, text, known)...)
			case ".c", ".h", ".cpp", ".def":
				inC = append(inC, commentsOfC(name, text, known)...)
			default:
				addWords(known, string(text))
			}
			return nil
		})
	names := checkNames(t, inGo, goNames, known) + checkNames(t, inC, cNames, known)
	if names < 500 {
		t.Fatalf("%d names are too few to believe", names)
	}
}

// checkNames reports the names in comments that are not known, and returns how many names there were.
func checkNames(t *testing.T, list []comment, names *regexp.Regexp, known map[string]bool) (seen int) {
	t.Helper()
	for _, c := range list {
		for _, at := range names.FindAllStringSubmatchIndex(c.text, -1) {
			group := 2
			if at[group] < 0 {
				group = 4
			}
			seen++
			if name := c.text[at[group]:at[group+1]]; !known[name] {
				line := c.line + strings.Count(c.text[:at[group]], "\n")
				t.Errorf("%s:%d names %s, which does not exist", c.file, line, name)
			}
		}
	}
	return seen
}
