package callstack

import (
	"fmt"
	"strings"

	"memtrace/internal/symbol"
)

// Frames copies the frames of a stack.
func (s *Stack) Frames(full bool) []symbol.Frame {
	list := s.Shown
	if full {
		list = s.All
	}
	frames := make([]symbol.Frame, len(list))
	for i, f := range list {
		frames[i] = f.Frame
		if f.short != "" && !full {
			frames[i].Function = f.short
		}
	}
	return frames
}

// Look is the displayed text of a stack; equal texts are indistinguishable to readers.
func (s *Stack) Look(full bool) string {
	list := s.Shown
	if full {
		list = s.All
	}
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "%s\x00%s\x00%d\n", f.Title(), f.File, f.Line)
	}
	return b.String()
}
