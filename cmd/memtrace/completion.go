package main

import (
	"io"
	"os"
	"sort"
	"strings"

	"github.com/spf13/cobra"
)

const completionExample = `  memtrace completion bash > /etc/bash_completion.d/memtrace
  memtrace completion zsh > "${fpath[1]}/_memtrace"
  memtrace completion fish > ~/.config/fish/completions/memtrace.fish`

func (a *app) completionCommand() *cobra.Command {
	shells := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) },
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": func(root *cobra.Command, w io.Writer) error { return root.GenPowerShellCompletionWithDesc(w) },
	}
	names := make([]string, 0, len(shells))
	for name := range shells {
		names = append(names, name)
	}
	sort.Strings(names)
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print a completion script for " + strings.Join(names, ", "),
		Example:   completionExample,
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || shells[args[0]] == nil {
				return usagef("name one shell: %s", strings.Join(names, ", "))
			}
			return shells[args[0]](cmd.Root(), a.stdout)
		},
	}
}

// completeTraces offers trace files, their spools and folders.
func completeTraces(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"bin", "spool"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeValues offers the fixed values of a flag.
func completeValues(values ...string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeList offers the values of a flag that takes several, separated by commas: what was typed before the last
// comma stays.
func completeList(values ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		prefix := typed[:strings.LastIndex(typed, ",")+1]
		offers := make([]string, len(values))
		for i, v := range values {
			offers[i] = prefix + v
		}
		return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// mustComplete attaches a completion to a flag that the caller has just defined.
//
// cobra keeps what is registered for ever, so that is done only where it will be asked for.
func mustComplete(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], cobra.ShellCompRequestCmd) {
		return
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag's name is misspelt in this package
	}
}

// completeMoments offers the words that name moments.
var completeMoments = completeValues("peak", "teardown", "exit", "oom", "oom:", "mark:", "step:")
