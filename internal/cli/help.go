package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// DetailsFlag is the annotation of a command that holds the part of its text which --help leaves to 'memtrace help' and
// to the man page.
const DetailsFlag = "details"

// Columns of a help text.
const (
	columnsPlain = 80  // without a terminal
	columnsMost  = 100 // wider lines are hard to read
)

// SetHelp gives a command and those below it a help whose flags and commands are in groups, and whose lines fit the
// terminal.
func SetHelp(root *cobra.Command, out *os.File) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { PrintManPage(c, out, false) })
}

// PrintManPage writes the help of a command to its output; with details the whole text of its man page's description.
func PrintManPage(c *cobra.Command, out *os.File, details bool) {
	columns := columnsPlain
	if c := Columns(out); c > 0 {
		columns = min(c, columnsMost)
	}
	_, _ = io.WriteString(c.OutOrStdout(), helpText(c, columns, details))
}

func helpText(c *cobra.Command, columns int, details bool) string {
	long := c.Long
	if details {
		long = description(c)
	}
	sections := []string{paragraphs(long), "Usage:\n  " + usageLine(c)}
	if c.Example != "" {
		sections = append(sections, "Examples:\n"+c.Example)
	}
	sections = append(sections, commandGroups(c)...)
	for _, group := range FlagGroups(c) {
		sections = append(sections, group.Title+":\n"+flagUsages(group.Flags, columns))
	}
	switch {
	case c.HasAvailableSubCommands():
		sections = append(sections, "Learn more: memtrace help COMMAND, man memtrace-COMMAND, docs/ of the source.")
	case !details && c.Annotations[DetailsFlag] != "":
		sections = append(sections, fmt.Sprintf("Learn more: memtrace help %[1]s, or man memtrace-%[1]s.", c.Name()))
	}
	return FitText(strings.Join(sections, "\n\n"), columns) + "\n"
}

// flagUsages lists flags. A value that may be left out is written as it must be typed, --markdown[=FILE], where pflag
// writes --markdown FILE[="-"].
func flagUsages(flags *pflag.FlagSet, columns int) string {
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	shown.SortFlags = flags.SortFlags
	flags.VisitAll(func(f *pflag.Flag) {
		if value, usage := pflag.UnquoteUsage(f); f.NoOptDefVal != "" && value != "" {
			shown.BoolP(f.Name+"[="+value+"]", f.Shorthand, false, usage)
			return
		}
		shown.AddFlag(f)
	})
	return strings.TrimRight(shown.FlagUsagesWrapped(columns), "\n")
}

// description is the whole text on a command.
func description(c *cobra.Command) string {
	return strings.TrimSpace(c.Long + "\n\n" + c.Annotations[DetailsFlag])
}

func usageLine(c *cobra.Command) string {
	if c.HasAvailableSubCommands() {
		return c.CommandPath() + " COMMAND [flags]"
	}
	return c.UseLine()
}

// paragraphs joins the lines of each paragraph. Lines that begin with a blank, which are commands or rows of a table,
// are unchanged.
func paragraphs(text string) string {
	lines := strings.Split(text, "\n")
	joined := lines[:1]
	for i, line := range lines[1:] {
		if line == "" || lines[i] == "" || line[0] == ' ' || lines[i][0] == ' ' {
			joined = append(joined, line)
			continue
		}
		joined[len(joined)-1] += " " + line
	}
	return strings.Join(joined, "\n")
}

// commandGroups lists the commands below a command, those without a group last.
func commandGroups(c *cobra.Command) (sections []string) {
	for _, group := range append(c.Groups(), &cobra.Group{Title: "Other:"}) {
		var list strings.Builder
		for _, below := range c.Commands() {
			if below.GroupID == group.ID && (below.IsAvailableCommand() || below.Name() == "help") {
				fmt.Fprintf(&list, "\n  %-*s %s", below.NamePadding(), below.Name(), below.Short)
			}
		}
		if list.Len() > 0 {
			sections = append(sections, group.Title+list.String())
		}
	}
	return sections
}
