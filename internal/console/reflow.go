package console

import (
	"slices"
	"strings"

	"memtrace/analyzer/render/layout"
)

// Reflow breaks the paragraphs of a text that have lines of more than the given columns anew. Paragraphs with lines
// that begin with a blank are commands or tables and keep their lines. 0 columns: as it is.
func Reflow(text string, columns int) string {
	if columns == 0 {
		return text
	}
	var out []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(paragraph, "\n")
		switch {
		case needsReflow(lines, columns):
			lines = layout.Wrap(paragraph, columns)
		case slices.ContainsFunc(lines, func(line string) bool { return len(line) > columns }):
			lines = joinHanging(lines)
		}
		out = append(out, strings.Join(lines, "\n"))
	}
	return strings.Join(out, "\n\n")
}

// joinHanging puts what was broken by hand under the text of a column back behind it, so that it can be broken anew.
func joinHanging(lines []string) (joined []string) {
	column := 0 // of the text behind the latest name; 0: there is none
	for _, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if column > 0 && indent == column {
			joined[len(joined)-1] += " " + line[indent:]
			continue
		}
		column = 0
		if prefix := columned.FindStringSubmatch(line); prefix != nil {
			column = len(prefix[1])
		}
		joined = append(joined, line)
	}
	return joined
}

func needsReflow(lines []string, columns int) bool {
	long := false
	for _, line := range lines {
		if strings.HasPrefix(line, " ") {
			return false
		}
		long = long || len(line) > columns
	}
	return long
}
