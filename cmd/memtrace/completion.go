package main

import (
	"io"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/internal/cli"
)

const completionExample = `  memtrace completion bash > /etc/bash_completion.d/memtrace
  memtrace completion zsh > "${fpath[1]}/_memtrace"
  memtrace completion fish > ~/.config/fish/completions/memtrace.fish`

func completionCommand(a *app) *cobra.Command {
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
				return cli.UsageErrorf("name one shell: %s", strings.Join(names, ", "))
			}
			return shells[args[0]](cmd.Root(), a.Stdout)
		},
	}
}
