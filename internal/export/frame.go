package export

import (
	"cmp"
	"strconv"
	"strings"

	"memtrace/analyzer"
	"memtrace/internal/symbol"
)

// origin is the owner of a frame's code. It selects the colour.
type origin uint8

const (
	ofUser    origin = iota // written by the user
	ofPackage               // Python code that was installed
	ofNative                // compiled code that was installed
	ofOther                 // no code: an interpreter's loop, a missing stack
)

// frame is a function, or a line of it, as far as its name distinguishes it. Two frames are the same if they are equal.
type frame struct {
	origin   origin
	python   bool
	function string
	file     string // short, still unique enough to identify the file
	line     int    // 0: unknown, or ignored
	path     string // of the source file as in the trace, for formats with paths
}

var noStack = frame{origin: ofOther, function: "[no stack]"}

// shaper returns a function that converts a set's frames. A Python frame is the user's if its file is, which is decided
// once per file: thousands of functions share one.
func shaper(set *analyzer.StackSet, noLines bool) func(*symbol.Frame) frame {
	users := make(map[string]bool) // by Python file
	return func(f *symbol.Frame) frame {
		python := f.Kind == symbol.Python
		user, known := users[f.File]
		if !known || !python {
			user = set.User(*f)
		}
		if python {
			users[f.File] = user
		}
		r := frame{origin: originOf(f, user), python: python, function: f.Name(), file: set.Place(*f), line: f.Line}
		if noLines {
			r.line = 0
		}
		return r
	}
}

func originOf(f *symbol.Frame, user bool) origin {
	switch {
	case user:
		return ofUser
	case f.Kind == symbol.Python:
		return ofPackage
	case f.Kind == symbol.Native:
		return ofNative
	}
	return ofOther
}

// place is the file and, if it is known, the line; "" where no file is known.
func (f *frame) place() string {
	if f.file == "" || f.line == 0 {
		return f.file
	}
	return f.file + ":" + strconv.Itoa(f.line)
}

// compare orders frames by their displayed fields.
func (f *frame) compare(g *frame) int {
	return cmp.Or(
		strings.Compare(f.function, g.function), strings.Compare(f.file, g.file), cmp.Compare(f.line, g.line),
		strings.Compare(f.path, g.path), cmp.Compare(f.origin, g.origin),
		cmp.Compare(boolean(f.python), boolean(g.python)))
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
