package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"memtrace/internal/cli"
	"memtrace/internal/rules/rulefile"
)

const rulesLong = `List the sets of rules that come with memtrace, or print one as TOML. Write a copy to
a file, change it, and pass the file to --rules or --group.`

const rulesExample = `  memtrace rules
  memtrace rules torch > mine.toml
  memtrace report --rules mine.toml memtrace.python3.4711.bin`

func rulesCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "rules [PRESET]",
		Short:   "List or print the rules that sort memory into categories",
		Long:    rulesLong,
		Example: rulesExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.UsageErrorf("name one preset, or none for a list")
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return rulefile.Presets(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listRules()
			}
			text, err := rulefile.PresetText(args[0])
			if err != nil {
				return cli.UsageErrorf("%w", err)
			}
			_, err = a.Stdout.Write(text)
			return err
		},
	}
}

func (a *app) listRules() error {
	for _, name := range rulefile.Presets() {
		set, err := rulefile.Preset(name)
		if err != nil {
			return err
		}
		standard := ""
		if name == rulefile.Default {
			standard = " (default)"
		}
		line := fmt.Sprintf("%-22s %2d rules  %s%s\n", name, len(set.Rules), set.Doc, standard)
		if _, err := io.WriteString(a.Stdout, cli.FitText(line, cli.Columns(a.Stdout))); err != nil {
			return err
		}
	}
	return nil
}
