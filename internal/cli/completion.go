package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// CompleteTraces offers trace files, their spools and folders.
func CompleteTraces(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"bin", "spool"}, cobra.ShellCompDirectiveFilterFileExt
}

// CompleteValues offers the fixed values of a flag.
func CompleteValues(values ...string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteList offers the values of a flag that takes several, separated by commas: what was typed before the last
// comma stays.
func CompleteList(values ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		prefix := typed[:strings.LastIndex(typed, ",")+1]
		offers := make([]string, len(values))
		for i, v := range values {
			offers[i] = prefix + v
		}
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// CompleteFlag attaches a completion to a flag that the caller has just defined.
//
// cobra keeps what is registered for ever, so that is done only where it is needed.
func CompleteFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], cobra.ShellCompRequestCmd) {
		return
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag's name is misspelt in this package
	}
}

// Moments offers the words that name moments.
var Moments = CompleteValues("peak", "teardown", "exit", "oom", "oom:", "mark:", "step:")
