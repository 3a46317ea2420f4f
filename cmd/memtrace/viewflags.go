package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/analyzer"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/render"
	"memtrace/analyzer/render/layout"
	"memtrace/analyzer/report"
	"memtrace/analyzer/rules"
	"memtrace/analyzer/rules/rulefile"
	"memtrace/internal/visible"
)

// viewFlags are the flags of report about training: tables of their own instead of the report.
type viewFlags struct {
	names []string
	cross []string
	csv   string

	timeline string // what --view timeline is divided by; "" without it

	units  string
	depth  int
	period int
	epoch  int
}

const viewHelp = `--view shows one table about a training program instead, or several: its modules,
parameters or iterations, whose names come from PyTorch and MXNet, with no change of
the program. --cross shows two groupings at once, of any program. --view timeline
shows memory over time: the highest moment of each of equal stretches, divided by
category or by any other grouping that --by names, or by use (requested, rounding,
idle). --csv writes a view's whole table.`

func viewNames() []string {
	var names []string
	for _, view := range render.Views() {
		names = append(names, view.Name)
	}
	return names
}

func (v *viewFlags) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&v.names, "view", nil, "show only the `VIEW` "+strings.Join(viewNames(), ", ")+" (as the TBD memory profiler prints it); repeat the flag, or separate by commas")
	f.StringSliceVar(&v.cross, "cross", nil, "show a crossed table of the groupings `ROWS,COLUMNS`, such as module,category or site,operator (--view cross)")
	f.StringVar(&v.csv, "csv", "", "also write the view's table as CSV to a `FILE`; '-': to standard output, instead of the text")
	f.StringVar(&v.units, "units", "", "count in `UNIT` "+strings.Join(layout.Units(), ", ")+" in CSV (default B) and in the table of tbd (default MB)")
	f.IntVar(&v.depth, "depth", 0, "`LEVELS` of modules to show (default 3, not counting those that only wrap another)")
	f.IntVar(&v.period, "period", 0, "list only every Nth iteration: the number of `ITERATIONS` (default 1), in the table of tbd")
	f.IntVar(&v.epoch, "epoch", 0, "list only this `EPOCH`, counted from 1 (default all), in the table of tbd")
	mustComplete(cmd, "view", completeList(viewNames()...))
	mustComplete(cmd, "units", completeValues(layout.Units()...))
	mustComplete(cmd, "cross", completeList(groupingNames()...))
	for _, name := range []string{"depth", "period", "epoch"} {
		mustComplete(cmd, name, completeValues())
	}
}

// has reports whether a view was asked for.
func (v *viewFlags) has(name string) bool {
	return slices.Contains(v.names, name)
}

// check finds the views and completes the style, before any trace is read. changed tells flags that were given from
// those that were not.
func (v *viewFlags) check(s *summaryFlags, traces []string, changed func(flag string) bool, style *layout.Options) ([]*render.View, error) {
	if err := v.checkCross(); err != nil {
		return nil, err
	}
	var views []*render.View
	for _, name := range v.names {
		view := render.FindView(name)
		if view == nil {
			return nil, usagef("--view %s: choose from %s", name, strings.Join(viewNames(), ", "))
		}
		views = append(views, view)
	}
	tbd := v.has("tbd")
	switch {
	case v.csv != "" && len(views) == 0:
		return nil, usagef("--csv requires --view, one of %s", strings.Join(viewNames(), ", "))
	case v.csv != "" && len(views) > 1:
		return nil, usagef("--csv requires a single --view: %s would share a file", strings.Join(v.names, " and "))
	case v.csv != "" && len(traces) > 1:
		return nil, usagef("--csv requires a single trace; got %d", len(traces))
	case v.csv != "" && s.json:
		return nil, usagef("--csv and --json: choose one of them")
	case v.csv != "" && (v.csv == "-" && s.output != "" || v.csv == s.output):
		return nil, usagef("--csv %s and -o %s: name two files", v.csv, s.output)
	case len(views) > 0 && len(s.by)+len(s.groups) > 0:
		return nil, usagef("--view shows its own table: leave out --by and --group, or --view")
	case len(views) > 0 && s.at != "" && !(v.has("cross") && len(views) == 1):
		return nil, usagef("--at does not apply to views, which have their own moments")
	case len(views) > 0 && s.sum != "":
		return nil, usagef("--expected-sum requires --by category, --rules or --group, and does not apply to views")
	case changed("units") && v.csv == "" && !tbd:
		return nil, usagef("--units requires --csv or --view tbd; other sizes show their unit")
	case changed("depth") && !v.has("modules"):
		return nil, usagef("--depth requires --view modules")
	case changed("depth") && v.depth < 0:
		return nil, usagef("--depth %d: must be a number of levels, or 0 for the root alone", v.depth)
	case changed("period") && !tbd:
		return nil, usagef("--period requires --view tbd")
	case changed("period") && v.period < 1:
		return nil, usagef("--period %d: must be at least 1", v.period)
	case changed("epoch") && !tbd:
		return nil, usagef("--epoch requires --view tbd")
	case changed("epoch") && v.epoch < 1:
		return nil, usagef("--epoch %d: name an epoch, the first is 1", v.epoch)
	}
	if changed("units") {
		unit, err := layout.ParseUnit(v.units)
		if err != nil {
			return nil, usagef("--units: %w", err)
		}
		style.Unit = unit
	}
	style.Depth, style.Period, style.Epoch = layout.DefaultDepth, v.period, v.epoch
	if changed("depth") {
		style.Depth, style.DepthAsked = v.depth, true
	}
	return views, nil
}

// checkCross completes --view cross and --cross, either of which stands for both.
func (v *viewFlags) checkCross() error {
	switch {
	case len(v.cross) == 0 && v.has("cross"):
		v.cross = []string{"module", byCategory}
	case len(v.cross) == 0:
		return nil
	case len(v.cross) != 2 || v.cross[0] == v.cross[1]:
		return usagef("--cross %s: name two groupings, those of the rows and of the columns, such as module,category", strings.Join(v.cross, ","))
	}
	for _, name := range v.cross {
		if !slices.Contains(groupingNames(), name) {
			return usagef("--cross %s: choose from %s", name, strings.Join(groupingNames(), ", "))
		}
	}
	if !v.has("cross") {
		v.names = append(v.names, "cross")
	}
	return nil
}

// askForTraining completes the options for views, and for a report that was not asked for something else.
func (v *viewFlags) askForTraining(s *summaryFlags, o *analyzer.Options) error {
	if len(v.names) == 0 && len(o.Groupings) > 0 {
		return nil
	}
	name := s.rules
	if name == "" {
		name = rulefile.Default
	}
	set, err := rulefile.Open(name)
	if err != nil {
		return usagef("--rules: %w", err)
	}
	if v.has("tbd") || v.has("iterations") && v.csv != "" {
		for _, category := range []string{render.FeatureMaps, render.IntermediateGradients} {
			if !slices.ContainsFunc(set.Rules, func(r rules.Rule) bool { return r.Category == category }) {
				return usagef("--rules %s: has no category %q, which the table is made of; leave out --rules", name, category)
			}
		}
	}
	o.Training, o.Groupings, o.Cross, o.Timeline = true, nil, v.cross, v.timeline
	o.RuleSets = []profile.RuleGrouping{{Name: byCategory, Rules: set}}
	return nil
}

// showViews writes the views of one trace, and its CSV first: text on standard output cannot be taken back.
func (a *app) showViews(w io.Writer, flags *viewFlags, force bool, views []*render.View, r readSummary, style layout.Options) error {
	style.Path = r.path
	if (flags.csv != "" || views[0].Bare()) && !r.summary.Health.Complete {
		a.log.Warn().Msgf("%s: %s; 'memtrace report' says more", r.path, render.Health(r.summary.Health, r.summary.LostRecords))
	}
	if why := render.NothingSelected(r.summary, style); why != "" && flags.has("tbd") {
		a.log.Warn().Msgf("%s: no table: %s", r.path, why)
	}
	switch flags.csv {
	case "":
	case "-":
		return views[0].CSV(w, r.summary, style)
	default:
		if err := a.writeTo(flags.csv, force, visible.Lines, func(w io.Writer) error { return views[0].CSV(w, r.summary, style) }); err != nil {
			return err
		}
	}
	for i, view := range views {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := view.Text(w, r.summary, style); err != nil {
			return err
		}
	}
	return nil
}

// checkViews fails if a trace lacks what a view would show.
func checkViews(views []*render.View, path string, s *report.Summary) error {
	var problems []error
	for _, view := range views {
		if why := view.Missing(s); why != "" {
			problems = append(problems, fmt.Errorf("%s: --view %s: %s", path, view.Name, why))
		}
	}
	return errors.Join(problems...)
}
