package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/analyzer"
	"memtrace/internal/profile"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
	"memtrace/internal/rules"
	"memtrace/internal/rules/rulefile"
)

// ViewFlags are the flags of report about training: tables of their own instead of the report.
type ViewFlags struct {
	Names []string
	cross []string
	Csv   string

	timeline string // what --view timeline is divided by; "" without it

	units  string
	depth  int
	period int
	epoch  int
}

// ViewHelp is a part of the description of report.
const ViewHelp = `--view shows other tables instead: the modules, parameters or iterations of a training
program, whose names come from PyTorch and MXNet without a change of the program;
tbd, as the TBD memory profiler prints it, with --period and --epoch; memory over time
(timeline: the highest moment of each of equal stretches, divided by category, by
another grouping that --by names, or by use: requested, rounding, idle). --cross
shows two groupings at once, of any program. --csv writes a whole table.`

func viewNames() []string {
	var names []string
	for _, view := range render.Views() {
		names = append(names, view.Name)
	}
	return names
}

// Define adds the flags about views.
func (v *ViewFlags) Define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&v.Names, "view", nil, "show only these `VIEWS`, separated by commas: "+
		strings.Join(viewNames(), ", ")+" (as the TBD profiler's)")
	f.StringSliceVar(&v.cross, "cross", nil,
		"show a table of a `PAIR` of groupings: module,category")
	f.StringVar(&v.Csv, "csv", "",
		"also write the table as CSV to this `FILE`; -: to standard output, instead of the text")
	f.StringVar(&v.units, "units", "", "count in this `UNIT`, "+strings.Join(layout.Units(), ", ")+
		": in CSV (default B) and in tbd (default MB)")
	f.IntVar(&v.depth, "depth", 0, "modules: `LEVELS` to show (default 3)")
	f.IntVar(&v.period, "period", 0, "tbd: list every `N`th iteration (default 1)")
	f.IntVar(&v.epoch, "epoch", 0, "tbd: list only this `EPOCH`, counted from 1 (default all)")
	GroupFlags(cmd, GroupWhat, "view", "cross")
	GroupFlags(cmd, GroupViews, "csv", "units", "depth", "period", "epoch")
	CompleteFlag(cmd, "view", CompleteList(viewNames()...))
	CompleteFlag(cmd, "units", CompleteValues(layout.Units()...))
	CompleteFlag(cmd, "cross", CompleteList(groupingNames()...))
	for _, name := range []string{"depth", "period", "epoch"} {
		CompleteFlag(cmd, name, CompleteValues())
	}
}

// Has reports whether a view was requested.
func (v *ViewFlags) Has(name string) bool {
	return slices.Contains(v.Names, name)
}

// Check finds the views and completes the style, before any trace is read. changed reports whether a flag was given.
func (v *ViewFlags) Check(s *QueryFlags, traces []string, changed func(flag string) bool,
	style *layout.Options) ([]*render.View, error) {
	if err := v.checkCross(); err != nil {
		return nil, err
	}
	views, err := v.find()
	if err != nil {
		return nil, err
	}
	tbd := v.Has("tbd")
	switch {
	case v.Csv != "" && len(views) == 0:
		return nil, UsageErrorf("--csv requires --view, one of %s", strings.Join(viewNames(), ", "))
	case v.Csv != "" && len(views) > 1:
		return nil, UsageErrorf("--csv requires a single --view: %s would share a file",
			strings.Join(v.Names, " and "))
	case v.Csv != "" && len(traces) > 1:
		return nil, UsageErrorf("--csv requires a single trace; got %d", len(traces))
	case v.Csv != "" && s.JSON:
		return nil, UsageErrorf("--csv and --json: choose one of them")
	case v.Csv != "" && (v.Csv == "-" && s.Output != "" || v.Csv == s.Output):
		return nil, UsageErrorf("--csv %s and -o %s: name two files", v.Csv, s.Output)
	case len(views) > 0 && len(s.By)+len(s.Groups) > 0:
		return nil, UsageErrorf("--view shows its own table: leave out --by and --group, or --view")
	case len(views) > 0 && s.At != "" && !(v.Has("cross") && len(views) == 1):
		return nil, UsageErrorf("--at does not apply to views, which have their own moments")
	case len(views) > 0 && s.sum != "":
		return nil,
			UsageErrorf("--expected-sum requires --by category, --rules or --group, and does not apply to views")
	case changed("units") && v.Csv == "" && !tbd:
		return nil, UsageErrorf("--units requires --csv or --view tbd; other sizes show their unit")
	case changed("depth") && !v.Has("modules"):
		return nil, UsageErrorf("--depth requires --view modules")
	case changed("depth") && v.depth < 0:
		return nil, UsageErrorf("--depth %d: must be a number of levels, or 0 for the root alone", v.depth)
	case changed("period") && !tbd:
		return nil, UsageErrorf("--period requires --view tbd")
	case changed("period") && v.period < 1:
		return nil, UsageErrorf("--period %d: must be at least 1", v.period)
	case changed("epoch") && !tbd:
		return nil, UsageErrorf("--epoch requires --view tbd")
	case changed("epoch") && v.epoch < 1:
		return nil, UsageErrorf("--epoch %d: name an epoch, the first is 1", v.epoch)
	}
	if changed("units") {
		unit, err := layout.ParseUnit(v.units)
		if err != nil {
			return nil, UsageErrorf("--units: %w", err)
		}
		style.Unit = unit
	}
	style.Depth, style.Period, style.Epoch = layout.DefaultDepth, v.period, v.epoch
	if changed("depth") {
		style.Depth, style.DepthAsked = v.depth, true
	}
	return views, nil
}

// find returns the views in the order in which they were named.
func (v *ViewFlags) find() (views []*render.View, err error) {
	for _, name := range v.Names {
		found := render.FindView(name)
		if found == nil {
			return nil, UsageErrorf("--view %s: choose from %s", name, strings.Join(viewNames(), ", "))
		}
		views = append(views, found)
	}
	return views, nil
}

// checkCross completes --view cross and --cross, either of which implies both.
func (v *ViewFlags) checkCross() error {
	switch {
	case len(v.cross) == 0 && v.Has("cross"):
		v.cross = []string{"module", ByCategory}
	case len(v.cross) == 0:
		return nil
	case len(v.cross) != 2 || v.cross[0] == v.cross[1]:
		return UsageErrorf(
			"--cross %s: name two groupings, those of the rows and of the columns, such as module,category",
			strings.Join(v.cross, ","))
	}
	for _, name := range v.cross {
		if !slices.Contains(groupingNames(), name) {
			return UsageErrorf("--cross %s: choose from %s", name, strings.Join(groupingNames(), ", "))
		}
	}
	if !v.Has("cross") {
		v.Names = append(v.Names, "cross")
	}
	return nil
}

// RequestLifetimes requests the iterations, which know what a pass frees again, where rules go by that.
func RequestLifetimes(o *analyzer.Options) {
	o.Training = slices.ContainsFunc(o.RuleSets, func(g profile.RuleGrouping) bool {
		return g.Rules.Uses(rules.Lifetime)
	})
}

// RequestTraining completes the options for views, and for a report without other requests.
func (v *ViewFlags) RequestTraining(s *QueryFlags, o *analyzer.Options) error {
	if len(v.Names) == 0 && len(o.Groupings) > 0 {
		RequestLifetimes(o)
		return nil
	}
	name := s.rules
	if name == "" {
		name = rulefile.Default
	}
	set, err := rulefile.Open(name)
	if err != nil {
		return UsageErrorf("--rules: %w", err)
	}
	if v.Has("tbd") || v.Has("iterations") && v.Csv != "" {
		for _, category := range []string{render.FeatureMaps, render.IntermediateGradients} {
			if !slices.ContainsFunc(set.Rules, func(r rules.Rule) bool { return r.Category == category }) {
				return UsageErrorf("--rules %s: has no category %q, which the table is made of; leave out --rules",
					name, category)
			}
		}
	}
	o.Training, o.Groupings, o.Cross, o.Timeline = true, nil, v.cross, v.timeline
	o.RuleSets = []profile.RuleGrouping{{Name: ByCategory, Rules: set}}
	return nil
}
