package cli

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"memtrace/internal/render/layout"
)

// Columns returns the columns of the terminal that a file is, or 0 if it is not one. Of narrow ones it returns
// WidthMin.
func Columns(out *os.File) int {
	if out == nil || !term.IsTerminal(int(out.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(out.Fd()))
	if err != nil || columns <= 0 {
		return 0
	}
	return max(columns, WidthMin)
}

// fittingWriter breaks lines that are longer than a terminal before they reach it. The last line, if it does not end,
// is written by Flush.
type fittingWriter struct {
	out     io.Writer
	columns int // 0: lines are not broken
	begun   []byte
}

// NewFittingWriter returns a writer that breaks lines at a number of columns, or leaves them as they are if it is 0.
func NewFittingWriter(out io.Writer, columns int) *fittingWriter {
	return &fittingWriter{out: out, columns: columns}
}

// Write implements io.Writer.
func (w *fittingWriter) Write(text []byte) (int, error) {
	if w.columns == 0 {
		return w.out.Write(text)
	}
	end := bytes.LastIndexByte(text, '\n') + 1
	if end == 0 {
		w.begun = append(w.begun, text...)
		return len(text), nil
	}
	whole := append(w.begun, text[:end]...)
	w.begun = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(w.out, FitText(string(whole), w.columns)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Flush writes a line that was begun.
func (w *fittingWriter) Flush() error {
	text := w.begun
	w.begun = nil
	if len(text) == 0 {
		return nil
	}
	_, err := io.WriteString(w.out, FitText(string(text), w.columns))
	return err
}

// FitText breaks the lines of a text that have more than the given columns; 0: the text is unchanged.
func FitText(text string, columns int) string {
	if columns == 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if ansi.StringWidth(line) > columns {
			lines[i] = strings.Join(fitLine(line, columns), "\n")
		}
	}
	return strings.Join(lines, "\n")
}

var (
	// columned matches a line with a name and, after a gap, its description.
	columned = regexp.MustCompile(`^( *\S+(?: \S+)* {2,})\S`)
	// commandLine is a line to type into a shell. Messages, which name the verb that they come from, are not indented.
	commandLine = regexp.MustCompile(`^(?:Next:| ) *(?:[A-Z_]+=\S+ )*(?:memtrace|python3?|LD_PRELOAD=\S+) `)
)

const (
	hangMore = 4  // how much further than the first line a broken line goes on
	textRoom = 20 // columns that a text after a name needs
)

// fitLine breaks one line. A description in its own column stays in that column; a command stays valid for a shell.
func fitLine(line string, columns int) []string {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	switch prefix := columned.FindStringSubmatch(line); {
	case strings.Contains(line, "://") && !strings.Contains(strings.TrimSpace(line), " "):
		return []string{line} // an address is of use in one piece only
	case strings.Contains(line, "\x1b"):
		return strings.Split(ansi.Wrap(line, columns, ""), "\n")
	case commandLine.MatchString(line):
		return fitCommand(line, columns)
	case prefix != nil && ansi.StringWidth(prefix[1]) <= columns-textRoom:
		return Hang(prefix[1], line[len(prefix[1]):], columns)
	case strings.HasPrefix(line[indent:], "- "):
		return Hang(line[:indent+2], line[indent+2:], columns)
	}
	first := strings.Repeat(" ", min(indent, columns/2))
	return Hang(first, line[indent:], columns)
}

// Hang wraps a text after a prefix, with a hanging indent.
func Hang(prefix, text string, columns int) []string {
	return Under(prefix, layout.Wrap(text, columns-ansi.StringWidth(prefix)))
}

// Under puts lines after a prefix, under each other.
func Under(prefix string, lines []string) []string {
	width := ansi.StringWidth(prefix)
	for i := range lines {
		if i == 0 {
			lines[i] = prefix + lines[i]
			continue
		}
		lines[i] = strings.Repeat(" ", width) + lines[i]
	}
	return lines
}

// fitCommand breaks a command between its words, and inside of a word that is longer than a line, as a shell puts it
// together again. A comment after it is moved above it.
func fitCommand(line string, columns int) (lines []string) {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	begin := strings.Repeat(" ", indent)
	line, comment, commented := strings.Cut(line, "  # ")
	if commented {
		lines = Hang(begin+"# ", comment, columns)
	}
	if ansi.StringWidth(line) <= columns {
		return append(lines, line)
	}
	next := begin + strings.Repeat(" ", hangMore)
	current, empty := begin, true
	end := func() { lines = append(lines, current+" \\") }
	for _, word := range shellWords(line) {
		if !empty && ansi.StringWidth(current)+1+ansi.StringWidth(word) > columns-2 {
			end()
			current, empty = next, true
		}
		if !empty {
			current += " "
		}
		for ansi.StringWidth(current+word) > columns-2 && !strings.ContainsAny(word, "'\"") {
			head := ansi.Truncate(word, columns-1-ansi.StringWidth(current), "")
			if head == "" {
				break
			}
			lines = append(lines, current+head+"\\")
			current, word = "", word[len(head):]
		}
		current, empty = current+word, false
	}
	return append(lines, current)
}

// shellWords splits a command at blanks that are not quoted.
func shellWords(line string) (words []string) {
	var word strings.Builder
	quote := rune(0)
	for _, c := range line {
		switch {
		case c == ' ' && quote == 0:
			if word.Len() > 0 {
				words = append(words, word.String())
				word.Reset()
			}
			continue
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		}
		word.WriteRune(c)
	}
	if word.Len() > 0 {
		words = append(words, word.String())
	}
	return words
}

// Widths of a report in columns: the range of --width, and of a terminal's width.
const (
	// WidthMin is the narrowest report.
	WidthMin = 60
	// WidthMax is the largest --width.
	WidthMax = 1000
	// WidthDefault is the width without a terminal.
	WidthDefault = 100
	widthComfort = 160 // wider terminals do not make a table easier to read
)

// ReportWidth returns the columns of a report that is written to out: the terminal's within limits, or WidthDefault.
func ReportWidth(out *os.File, terminal bool) int {
	if terminal {
		if columns, _, err := term.GetSize(int(out.Fd())); err == nil && columns > 0 {
			return min(max(columns, WidthMin), widthComfort)
		}
	}
	return WidthDefault
}
