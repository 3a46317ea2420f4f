package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/analyzer"
	"memtrace/analyzer/render"
)

const diffLong = `Compare two traces: what grew, what is new, what shrank and what is gone from the
first to the second. Growth is positive and stands first. With --by site and --by
line, places whose lines moved are matched by file and function. --view parameters
compares weight, gradient and optimizer state of each parameter, by its name.

` + rulesHelp + `

` + filterHelp

const diffExample = `  memtrace diff before.bin after.bin
  memtrace diff --by tag,library --json before.bin after.bin
  memtrace diff --by site before.bin after.bin
  memtrace diff --view parameters before.bin after.bin
  memtrace diff --by category --rules tbd-paper before.bin after.bin`

func (a *app) diffCommand() *cobra.Command {
	var flags summaryFlags
	var views []string
	cmd := &cobra.Command{
		Use:               "diff [flags] BASE NEW",
		Short:             "Show what grew and what shrank between two traces",
		Long:              diffLong,
		Example:           diffExample,
		Args:              twoTraces,
		ValidArgsFunction: completeTraces,
		RunE:              func(_ *cobra.Command, args []string) error { return a.diff(&flags, views, args[0], args[1]) },
	}
	flags.define(cmd)
	cmd.Flags().StringSliceVar(&views, "view", nil, "show only the `VIEW` "+strings.Join(render.DiffViews(), ", ")+": what became of each")
	mustComplete(cmd, "view", completeList(render.DiffViews()...))
	return cmd
}

func (a *app) diff(flags *summaryFlags, views []string, basePath, newPath string) error {
	flags.entries = -1 // a diff lists none
	options, style, err := flags.check(a)
	if err != nil {
		return err
	}
	var needed []*render.View
	for _, name := range views {
		if !slices.Contains(render.DiffViews(), name) {
			if name == "modules" {
				return usagef("--view modules: choose from %s; --by module compares modules", strings.Join(render.DiffViews(), ", "))
			}
			return usagef("--view %s: choose from %s", name, strings.Join(render.DiffViews(), ", "))
		}
		needed = []*render.View{render.FindView(name)}
	}
	if len(needed) > 0 {
		viewed := viewFlags{names: views}
		if len(flags.by)+len(flags.groups) > 0 {
			return usagef("--view shows a table of its own: leave out --by and --group, or --view")
		}
		if flags.at != "" {
			return usagef("--at does not go with --view: it compares what belongs to parameters, whenever that is")
		}
		if err := viewed.askForTraining(flags, &options); err != nil {
			return err
		}
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
		if err := checkViews(needed, path, summaries[i]); err != nil {
			return err
		}
		if flags.strict {
			damaged.add(path, summaries[i])
		}
	}
	difference := analyzer.NewDiff(summaries[0], summaries[1])
	return damaged.join(a.writeTo(flags.output, flags.force, flags.form(style), func(w io.Writer) error {
		switch {
		case flags.json:
			return render.DiffJSON(w, difference)
		case len(needed) > 0:
			return render.DiffParameters(w, difference, style)
		}
		return render.DiffText(w, difference, style)
	}))
}
