package export

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"memtrace/analyzer"
	"memtrace/internal/symbol"
)

// Collapsed writes one line for each call stack: its functions, outermost first, with semicolons between them, a blank,
// and the value. Flame graph scripts, speedscope and Perfetto read it. Lines are sorted; a set without values gives no
// line.
func Collapsed(w io.Writer, set *analyzer.StackSet, o Options) error {
	shape := shaper(set, o.NoLines)
	s := newSampler(set.Rows, func(f *symbol.Frame) frame { return frame{function: collapsedName(shape(f))} })
	out := bufio.NewWriter(w)
	list, _ := s.samples(o.Value)
	for _, sample := range list {
		for i, id := range sample.frames {
			if i > 0 {
				out.WriteByte(';')
			}
			out.WriteString(s.frames[id].function)
		}
		out.WriteByte(' ')
		out.WriteString(strconv.FormatUint(sample.value, 10))
		out.WriteByte('\n')
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write collapsed stacks: %w", err)
	}
	return nil
}

// collapsedName is a frame as one field of the format, without the separators: semicolons and line ends.
func collapsedName(f frame) string {
	name := f.function
	if (f.python || f.origin == ofUser) && f.file != "" {
		name += " (" + f.place() + ")"
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case r == ';':
			return ','
		case r == '\ufffd' || !unicode.IsPrint(r):
			return ' '
		}
		return r
	}, name)
	if name = strings.Join(strings.Fields(name), " "); name == "" {
		return "?"
	}
	return name
}
