// Package cmdline has what the command lines of several verbs have in common: which arguments they take, how values are
// completed, and sizes as values of flags. It imports internal/usageerr, reads no file and runs nothing.
package cmdline

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// Traces offers trace files, their spools and folders.
func Traces(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"bin", "spool"}, cobra.ShellCompDirectiveFilterFileExt
}

// Values offers the fixed values of a flag.
func Values(values ...string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// List offers the values of a flag that takes several, separated by commas: what was typed before the last
// comma stays.
func List(values ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		prefix := typed[:strings.LastIndex(typed, ",")+1]
		offers := make([]string, len(values))
		for i, v := range values {
			offers[i] = prefix + v
		}
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// Complete attaches a completion to a flag that the caller has just defined.
//
// cobra keeps what is registered for ever, so that is done only where it is needed.
func Complete(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], cobra.ShellCompRequestCmd) {
		return
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag's name is misspelt in this package
	}
}

// Moments offers the words that name moments.
var Moments = Values("peak", "teardown", "exit", "oom", "oom:", "mark:", "step:")
