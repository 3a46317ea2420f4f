package main

import (
	"io"

	"github.com/spf13/cobra"

	"memtrace/analyzer"
	"memtrace/analyzer/render"
)

const diffLong = `Compare two traces: what grew, what is new, what shrank and what is gone from the
first to the second. Growth is positive and stands first. With --by site and --by
line, places whose lines moved are matched by file and function.

` + rulesHelp + `

` + filterHelp

const diffExample = `  memtrace diff before.bin after.bin
  memtrace diff --by tag,library --json before.bin after.bin
  memtrace diff --by site before.bin after.bin
  memtrace diff --by category --rules tbd-paper before.bin after.bin`

func (a *app) diffCommand() *cobra.Command {
	var flags summaryFlags
	cmd := &cobra.Command{
		Use:               "diff [flags] BASE NEW",
		Short:             "Show what grew and what shrank between two traces",
		Long:              diffLong,
		Example:           diffExample,
		Args:              twoTraces,
		ValidArgsFunction: completeTraces,
		RunE:              func(_ *cobra.Command, args []string) error { return a.diff(&flags, args[0], args[1]) },
	}
	flags.define(cmd)
	return cmd
}

func (a *app) diff(flags *summaryFlags, basePath, newPath string) error {
	flags.entries = -1 // a diff lists none
	options, style, err := flags.check(a)
	if err != nil {
		return err
	}
	var damaged damageList
	var summaries [2]*analyzer.Summary
	for i, arg := range []string{basePath, newPath} {
		path, err := oneInput(arg)
		if err != nil {
			return err
		}
		if summaries[i], err = a.summarize(path, options); err != nil {
			return err
		}
		if flags.strict {
			damaged.add(path, summaries[i])
		}
	}
	difference := analyzer.NewDiff(summaries[0], summaries[1])
	return damaged.join(a.writeTo(flags.output, flags.force, func(w io.Writer) error {
		if flags.json {
			return render.DiffJSON(w, difference)
		}
		return render.DiffText(w, difference, style)
	}))
}
