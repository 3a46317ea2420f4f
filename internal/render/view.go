package render

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// View is a table that reports show on request, most of them about a training program: their summary must have been
// made with Options.Training.
type View struct {
	Name, Doc string

	any     bool // shows programs that do not train, too
	bare    bool // prints its table and nothing else
	missing func(s *report.Summary) string
	text    func(p *layout.Page, s *report.Summary)
	// the first row holds the names of columns; rows are valid until the next one
	table func(s *report.Summary, o layout.Options, write layout.UnitWriter) iter.Seq[[]string]
}

var views = []View{
	{Name: "modules",
		Doc:     "the tree of modules: bytes at the peak, and at the peaks of forward, backward and optimizer",
		missing: noModules,
		text:    writeModules, table: moduleRows},
	{Name: "parameters", Doc: "weight, gradient and optimizer state of each parameter", missing: noParameters,
		text: writeParameters, table: parameterRows},
	{Name: "iterations", Doc: "peak and categories of each iteration", missing: noIterations,
		text: writeIterations, table: iterationRows},
	{Name: "cross", Doc: "two groupings at once, module by category unless --cross names others", missing: noCross,
		any:  true,
		text: writeCross, table: crossRows},
	{Name: "timeline", Doc: "memory over time, divided by category unless --by names something else",
		missing: noTimeline, any: true,
		text: writeTimeline, table: timelineTable},
	{Name: "tbd", Doc: "a table per iteration in the shape of the TBD memory profiler for PyTorch",
		missing: noIterations, bare: true,
		text: writeTBD, table: iterationRows},
}

// Views lists every view, in the order in which help texts show them.
func Views() []View { return views }

// FindView returns the view of this name, nil for an unknown name.
func FindView(name string) *View {
	for i := range views {
		if views[i].Name == name {
			return &views[i]
		}
	}
	return nil
}

// Missing explains why a summary has no data for the view, and the remedy; "" if it has.
func (v *View) Missing(s *report.Summary) string {
	if s.Training == nil && !v.any {
		return "an imported trace has no names of modules and parameters, and does not tell iterations apart; 'memtrace report' and --by site show it"
	}
	return v.missing(s)
}

// Bare reports whether the view's text is its table alone, so that limits of the figures must be printed elsewhere.
func (v *View) Bare() bool { return v.bare }

// Text writes the view for people.
func (v *View) Text(w io.Writer, s *report.Summary, o layout.Options) error {
	if why := v.Missing(s); why != "" {
		return errors.New(why)
	}
	p := layout.NewPage(w, o)
	if !v.bare {
		writeViewHeading(p, s)
	}
	v.text(p, s)
	if p.Err() != nil {
		return fmt.Errorf("write the view: %w", p.Err())
	}
	return nil
}

func writeViewHeading(p *layout.Page, s *report.Summary) {
	layout.WriteBeginning(p, s)
	if !s.Health.Complete || len(s.Health.Unseen) > 0 {
		p.Styled(layout.Alarm, "trace", layout.SummaryHealth(s))
	}
	if s.Bounds != nil {
		p.Styled(layout.Alarm, "lost", layout.Lost(s.Bounds))
	}
	layout.WriteSelection(p, s)
	p.Gap()
}

// Rows is the view's whole table in bytes: the first row holds the names of columns, and a row is valid until the next
// one. There is none if data is missing.
func (v *View) Rows(s *report.Summary) iter.Seq[[]string] {
	if v.Missing(s) != "" {
		return func(func([]string) bool) {}
	}
	return v.table(s, layout.Options{}, layout.UnitB.Exact)
}

// CSV writes the view's whole table. The first line is a comment that states the unit; in MB there is none, so that the
// file of iterations has exactly the format of the TBD memory profiler's.
func (v *View) CSV(w io.Writer, s *report.Summary, o layout.Options) error {
	if why := v.Missing(s); why != "" {
		return errors.New(why)
	}
	unit := o.Unit
	if unit == "" {
		unit = layout.UnitB
	}
	if unit != layout.UnitMB {
		if _, err := fmt.Fprintf(w, "# memtrace %s; sizes in %s\n", v.Name, unit.Words()); err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
	}
	return writeCSV(w, v.table(s, o, unit.Exact))
}
