package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"memtrace/internal/version"
)

// WriteManPages writes the man pages of a command and of those below it into a folder.
func WriteManPages(root *cobra.Command, folder string) error {
	root.DisableAutoGenTag = true
	for _, c := range append(root.Commands(), root) {
		text := description(c)
		for _, group := range commandGroups(c) {
			text += "\n\n" + strings.Replace(group, "\n", "\n\n", 1)
		}
		c.Long = markdown(text)
	}
	header := &doc.GenManHeader{Title: "MEMTRACE", Section: "1", Source: "memtrace " + version.String,
		Manual: "memtrace manual"}
	if err := doc.GenManTree(root, header, folder); err != nil {
		return fmt.Errorf("write the man pages into %s: %w", folder, err)
	}
	return addManSections(root, folder)
}

// tableRow is a line of a text with a name and, after a gap, what it is.
var tableRow = regexp.MustCompile(`^  (\S+(?: \S+)*) {2,}(\S.*)$`)

// markdown turns the tables and commands of a text, which are indented, into definition lists and literal blocks of
// Markdown, which the generator reads.
func markdown(text string) string {
	var lines []string
	for line := range strings.SplitSeq(paragraphs(text), "\n") {
		switch row := tableRow.FindStringSubmatch(line); {
		case row != nil && !strings.HasPrefix(row[2], "#"):
			lines = append(lines, "**"+row[1]+"**", ": "+row[2], "")
		case strings.HasPrefix(line, "  "):
			lines = append(lines, "  "+line)
		default:
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// addManSections completes the page of a command and of those below it.
func addManSections(c *cobra.Command, folder string) error {
	path := filepath.Join(folder, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
	page, err := os.ReadFile(path)
	if err != nil && (c.Hidden || os.IsNotExist(err)) {
		return nil // hidden commands have no page
	}
	if err != nil {
		return fmt.Errorf("complete a man page: %w", err)
	}
	text, rest, _ := strings.Cut(flagTerms(c, string(page)), ".SH SEE ALSO")
	if rest != "" {
		rest = ".SH SEE ALSO" + rest
	}
	if err := os.WriteFile(path, []byte(strings.TrimRight(text, "\n")+"\n\n"+manSections(c)+"\n"+rest), 0o644); err !=
		nil {
		return fmt.Errorf("complete a man page: %w", err)
	}
	for _, below := range c.Commands() {
		if err := addManSections(below, folder); err != nil {
			return err
		}
	}
	return nil
}

// flagLine is what the generator writes for a flag: its names, and its default where the name of its value belongs.
var flagLine = regexp.MustCompile(`(?m)^((?:\\fB-\w\\fP, )?\\fB--([\w-]+)\\fP).*\n(.*)$`)

// flagTerms names the values of flags as --help does, and returns their defaults.
func flagTerms(c *cobra.Command, page string) string {
	page = flagLine.ReplaceAllStringFunc(page, func(lines string) string {
		m := flagLine.FindStringSubmatch(lines)
		f := c.Flag(m[2])
		if f == nil {
			return lines
		}
		term, text := m[1], strings.ReplaceAll(m[3], "``", "") // of a flag whose value has no name
		if value, _ := pflag.UnquoteUsage(f); value != "" {
			term += " \\fI" + roff(value) + "\\fP"
		}
		if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "[]" && !strings.Contains(text, "(default") {
			text += " (default " + roff(d) + ")"
		}
		return ".TP\n" + term + "\n" + strings.TrimLeft(text, "\t")
	})
	return strings.ReplaceAll(page, ".PP\n.TP\n", ".TP\n")
}
