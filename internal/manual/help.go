package manual

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"memtrace/internal/console"
)

// FitHelp lets the help of a command and of those below it keep to the terminal. Elsewhere its lines stay as they are
// written, for programs that search them.
func FitHelp(root *cobra.Command, out *os.File) {
	columns := console.Columns(out)
	cobra.AddTemplateFunc("fitFlags", func(flags *pflag.FlagSet) string { return flags.FlagUsagesWrapped(columns) })
	cobra.AddTemplateFunc("fitText", func(text string) string { return console.Reflow(text, columns) })
	template := strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", "|fitFlags ")
	root.SetUsageTemplate(template)
	root.SetHelpTemplate(strings.ReplaceAll(root.HelpTemplate(), "| trimTrailingWhitespaces}}",
		"| trimTrailingWhitespaces | fitText}}"))
}
