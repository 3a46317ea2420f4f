package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/check"
	"memtrace/internal/cli"
	"memtrace/internal/diff"
	"memtrace/internal/moment"
	"memtrace/internal/render"
	"memtrace/internal/tracefile"
)

const diffLong = `Compare two traces at their peaks: what is new, grew, shrank and was removed from the
first to the second. With --at and --to, compare other moments, or two of one trace.`

var diffDetails = `Growth is positive and comes first. Without --by the tables are those of a report: tags
if there are any, else sites, and categories. With --by site and --by line, places
whose lines moved are matched by file and function, and a renamed file by its functions.
--view parameters compares weight, gradient and optimizer state of each parameter, by its
name.

--fail-on 'peak>1%' exits with status 1 if the peak grew by more than 1%, and names who
grew: for a gate in CI, which 'memtrace check' has more of.

--at compares another moment than the peak in both traces. With --to, --at is the
moment of the first trace and --to that of the second; one trace is enough then. With
--from, --to is the end of a part of the run instead, and the peaks in that part of
both traces are compared. teardown is the moment right after the last allocation.

Devices of two ranks that have different numbers are compared in their order.

` + cli.RulesHelp + `

` + cli.FilterHelp

const diffExample = `  memtrace diff before.bin after.bin
  memtrace diff --by module,site before.bin after.bin
  memtrace diff --view parameters before.bin after.bin
  memtrace diff --at 30s --to teardown server.bin
  memtrace diff --by category --rules tbd-paper before.bin after.bin
  memtrace diff --fail-on 'peak>1%' before.bin after.bin
  memtrace diff --json rank0.bin rank1.bin`

// diffFlags are those of diff beside the shared ones.
type diffFlags struct {
	cli.QueryFlags
	views  []string
	failOn []string
}

func diffCommand(a *app) *cobra.Command {
	flags := diffFlags{QueryFlags: cli.QueryFlags{Window: cli.WindowFlags{Moment: true}}}
	cmd := &cobra.Command{
		Use:               "diff [flags] BASE NEW | --at MOMENT --to MOMENT FILE",
		Short:             "Show what grew and what shrank between two traces",
		Long:              diffLong,
		Annotations:       map[string]string{cli.DetailsFlag: diffDetails},
		Example:           diffExample,
		Args:              func(cmd *cobra.Command, args []string) error { return flags.checkTraces(cmd, args) },
		ValidArgsFunction: cli.CompleteTraces,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.diff(&flags, args[0], args[len(args)-1])
		},
	}
	flags.Define(cmd)
	f := cmd.Flags()
	f.Lookup("at").Usage = "compare this `MOMENT`: peak, " + cli.MomentHelp
	f.Lookup("from").Usage = "compare the peaks from this `MOMENT` on, of both traces; as --at, but not peak or exit"
	f.Lookup("to").Usage = "compare with this `MOMENT` of the second trace, or of the only one; with --from, end there"
	f.StringSliceVar(&flags.views, "view", nil, "show only this `VIEW`: "+strings.Join(render.DiffViews(), ", "))
	f.StringArrayVar(&flags.failOn, "fail-on", nil,
		"exit with status 1 if a figure grew by more: `GATE>GROWTH`, such as 'peak>1%' (repeatable)")
	cli.GroupFlags(cmd, cli.GroupWhat, "view")
	cli.GroupFlags(cmd, cli.Output, "fail-on")
	cli.CompleteFlag(cmd, "view", cli.CompleteList(render.DiffViews()...))
	return cmd
}

// checkTraces requires two traces, or one with two moments.
func (f *diffFlags) checkTraces(cmd *cobra.Command, args []string) error {
	from := f.Window.From
	switch {
	case from != "" && f.At != "":
		return cli.UsageErrorf("--at compares two moments and --from two parts of a run: leave one of them out")
	case len(args) == 1 && from != "":
		return cli.UsageErrorf(
			"--from compares a part of two runs: name two traces; within one, 'memtrace diff --at %s --to MOMENT %s' compares two moments, and 'memtrace report --from %s' says what became of the memory between them",
			from, args[0], from)
	case len(args) == 1 && f.Window.To == "":
		return cli.UsageErrorf("name two traces, or two moments of %s with --at and --to", args[0])
	case len(args) == 1:
		return nil
	}
	return cli.TwoTraces(cmd, args)
}

// sides are the options of both summaries.
func (f *diffFlags) sides(options analyzer.Options) (base, changed analyzer.Options, err error) {
	base, changed = options, options
	if f.Window.To == "" || f.Window.From != "" {
		return base, changed, nil
	}
	changed.At, base.To, changed.To = options.To, moment.At{}, moment.At{}
	if base.At.IsZero() {
		base.At, err = moment.Parse("peak")
	}
	return base, changed, err
}

// neededViews finds the views, which must hold what both traces have.
func (f *diffFlags) neededViews() ([]*render.View, error) {
	var needed []*render.View
	for _, name := range f.views {
		if !slices.Contains(render.DiffViews(), name) {
			if name == "modules" {
				return nil, cli.UsageErrorf("--view modules: choose from %s; --by module compares modules",
					strings.Join(render.DiffViews(), ", "))
			}
			return nil, cli.UsageErrorf("--view %s: choose from %s", name, strings.Join(render.DiffViews(), ", "))
		}
		needed = []*render.View{render.FindView(name)}
	}
	switch {
	case len(needed) == 0:
	case len(f.By)+len(f.Groups) > 0:
		return nil, cli.UsageErrorf("--view shows its own table: leave out --by and --group, or --view")
	case f.At != "" || f.Window.To != "" || f.Window.From != "":
		return nil, cli.UsageErrorf(
			"--at, --from and --to do not go with --view: it compares what belongs to parameters, whenever that is")
	}
	return needed, nil
}

func (a *app) diff(flags *diffFlags, basePath, newPath string) error {
	flags.Entries = -1 // a diff lists none
	options, style, err := flags.Check(&a.Console)
	if err != nil {
		return err
	}
	needed, err := flags.neededViews()
	if err != nil {
		return err
	}
	gates, err := flags.gates()
	if err != nil {
		return err
	}
	asked := len(options.Groupings) > 0
	if len(gates) > 0 && asked {
		return cli.UsageErrorf("--fail-on needs every grouping: leave out --by, --rules and --group")
	}
	if !asked {
		if err := flags.requestDefaults(&options); err != nil {
			return err
		}
	}
	by := options.Groupings
	explained, err := flags.requestParameters(&options)
	if err != nil {
		return err
	}
	difference, err := a.difference(flags, options, needed, basePath, newPath, !asked)
	if err != nil {
		return err
	}
	if explained {
		difference.diff.Explain(by...)
	}
	style.AllLevels, style.Path = asked, newPath
	shown := difference.damaged.Join(a.WriteTo(flags.Output, flags.Force, flags.Form(style), func(w io.Writer) error {
		switch {
		case flags.JSON:
			return render.DiffJSON(w, difference.diff)
		case len(needed) > 0:
			return render.DiffParameters(w, difference.diff, style)
		}
		return render.DiffText(w, difference.diff, style)
	}))
	if shown != nil || len(gates) == 0 {
		return shown
	}
	return a.failOn(gates, difference)
}

// gates are those of --fail-on.
func (f *diffFlags) gates() (list []check.Gate, err error) {
	for _, text := range f.failOn {
		g, err := check.ParseFailOn(text)
		if err != nil {
			return nil, cli.UsageErrorf("--fail-on: %w", err)
		}
		list = append(list, g)
	}
	if len(list) > 0 && (f.At != "" || f.Window.To != "" && f.Window.From == "") {
		return nil, cli.UsageErrorf("--fail-on compares peaks: leave out --at and --to, or name a part of the run with --from")
	}
	return list, nil
}

// failOn returns the status of gates on a difference that was shown.
func (a *app) failOn(gates []check.Gate, d diffResult) error {
	outcome := check.Compare(gates, d.diff.Base.Path, d.diff.New.Path, d.summaries[0], d.summaries[1])
	if problems := outcome.Problems(); len(problems) > 0 {
		return errors.Join(problems...)
	}
	for i := range outcome.Results {
		if r := &outcome.Results[i]; r.Status == check.Failed {
			a.Complain("memtrace diff", fmt.Errorf("%s: %s", r.Gate, r.Text))
		}
	}
	if outcome.Status == check.Failed {
		return errOverBudget
	}
	return nil
}

// requestDefaults requests what a difference shows by default.
func (f *diffFlags) requestDefaults(options *analyzer.Options) error {
	viewed := cli.ViewFlags{Names: f.views}
	if err := viewed.RequestTraining(&f.QueryFlags, options); err != nil {
		return err
	}
	options.Sites = true
	options.Groupings = append(diff.Groupings(), cli.ByCategory)
	return nil
}

// requestParameters requests what says which module is wider, where modules are compared. added: categories that nobody
// asked for came with it.
func (f *diffFlags) requestParameters(options *analyzer.Options) (added bool, err error) {
	by := options.Groupings
	switch {
	case !slices.Contains(by, "module"):
		cli.RequestLifetimes(options)
		return false, nil
	case len(options.RuleSets) > 0:
		options.Training = options.RuleSets[0].Name == cli.ByCategory
		return false, nil
	}
	options.Groupings = nil
	err = (&cli.ViewFlags{}).RequestTraining(&f.QueryFlags, options)
	options.Groupings = by
	return true, err
}

// diffResult is a difference and the remarks on its traces.
type diffResult struct {
	diff      *diff.Diff
	summaries [2]*report.Summary // what it was made of
	damaged   tracefile.DamageList
}

// difference reads both sides.
func (a *app) difference(flags *diffFlags, options analyzer.Options, needed []*render.View, basePath, newPath string,
	defaults bool) (result diffResult, err error) {
	base, changed, err := flags.sides(options)
	if err != nil {
		return result, err
	}
	var summaries [2]*report.Summary
	var paths [2]string
	for i, side := range []struct {
		arg     string
		options analyzer.Options
	}{{basePath, base}, {newPath, changed}} {
		if paths[i], err = tracefile.One(side.arg); err != nil {
			return result, err
		}
		if summaries[i], err = tracefile.SummarizeAny(&a.Console, paths[i], side.options); err != nil {
			return result, err
		}
		if err := checkViews(needed, paths[i], summaries[i]); err != nil {
			return result, err
		}
		if flags.Strict {
			result.damaged.Add(paths[i], summaries[i])
		}
	}
	// what one side lacks is a difference
	if err := tracefile.CheckMatched(paths[0], summaries[0]); err != nil && len(summaries[1].Unmatched) > 0 {
		return result, err
	}
	result.diff, result.summaries = diff.New(summaries[0], summaries[1]), summaries
	result.diff.Base.Path, result.diff.New.Path = paths[0], paths[1]
	if defaults {
		result.diff.ShowDefaults(summaries[0], summaries[1], cli.ByCategory)
	}
	return result, nil
}
