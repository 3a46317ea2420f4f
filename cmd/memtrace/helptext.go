package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// fitHelp lets the help of a command and of those below it keep to the terminal. Elsewhere its lines stay as they are
// written, for programs that search them.
func fitHelp(root *cobra.Command, out *os.File) {
	columns := 0
	if term.IsTerminal(int(out.Fd())) {
		if width, _, err := term.GetSize(int(out.Fd())); err == nil && width > 0 {
			columns = max(width, widthMin)
		}
	}
	cobra.AddTemplateFunc("fitFlags", func(flags *pflag.FlagSet) string { return flags.FlagUsagesWrapped(columns) })
	cobra.AddTemplateFunc("fitText", func(text string) string { return reflow(text, columns) })
	usage := strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", "|fitFlags ")
	root.SetUsageTemplate(usage)
	root.SetHelpTemplate(strings.ReplaceAll(root.HelpTemplate(), "| trimTrailingWhitespaces}}", "| trimTrailingWhitespaces | fitText}}"))
}

// reflow breaks the paragraphs of a text that have lines of more than the given columns anew. Lines that begin with a
// blank are commands and stay. 0 columns: as it is.
func reflow(text string, columns int) string {
	if columns == 0 {
		return text
	}
	var out []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(paragraph, "\n")
		if needsReflow(lines, columns) {
			lines = fill(strings.Fields(paragraph), columns)
		}
		out = append(out, strings.Join(lines, "\n"))
	}
	return strings.Join(out, "\n\n")
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

func fill(words []string, columns int) (lines []string) {
	line := ""
	for _, word := range words {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) <= columns:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}
