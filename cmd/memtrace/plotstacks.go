package main

import (
	"memtrace/analyzer"
	"memtrace/analyzer/export"
	"memtrace/analyzer/plot"
	"memtrace/analyzer/report"
	"memtrace/internal/version"
)

// readFlame lays out the call stacks of a trace.
func (a *app) readFlame(path string, count analyzer.Options) (*plot.Flame, error) {
	count.Training, count.Groupings, count.RuleSets, count.HistoryBlocks = false, nil, nil, 0
	sets, _, err := a.readStacks(path, "", false, count)
	if err != nil {
		return nil, err
	}
	options := export.Options{Value: export.Peak, Writer: "memtrace " + version.String}
	a.warnExported(path, sets, options)
	l := export.LayOut(sets[0], options)
	f := &plot.Flame{Title: l.Headline, Note: l.Subtitle, Sum: l.Sum, Depth: l.Depth}
	for _, c := range export.FlameClasses() {
		f.Legend = append(f.Legend, plot.FlameWhose(c))
	}
	for _, b := range l.Boxes {
		f.Boxes = append(f.Boxes, plot.FlameBox(b))
	}
	return f, nil
}

// readFlames reads the traces of a flame graph, which takes one.
func (a *app) readFlames(args []string, count analyzer.Options) ([]plot.Run, error) {
	var runs []plot.Run
	inputs, err := expandInputs(args)
	if err != nil {
		return nil, err
	}
	for _, in := range inputs {
		run := plot.Run{Name: runName(in.path), Summary: &report.Summary{}}
		if len(inputs) == 1 {
			if run.Flame, err = a.readFlame(in.path, count); err != nil {
				return nil, err
			}
		}
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		return nil, noTracesError(args[0])
	}
	return runs, nil
}
