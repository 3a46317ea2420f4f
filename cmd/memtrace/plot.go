package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/export"
	"memtrace/internal/plot"
	"memtrace/internal/sanitize"
	"memtrace/internal/tracefile"
	"memtrace/internal/version"
)

const plotLong = `Draw one or more traces as PNG, SVG or PDF, by the ending of -o. Kinds of pictures:

%s`

const plotDetails = `Without --kind, one trace gives a timeline and several give an overlay. --data also
writes the exact values of the picture as CSV. The same traces give the same bytes.

` + cli.WindowHelp + `

` + cli.FilterHelp

const plotExample = `  memtrace plot -o memory.png memtrace.python3.4711.bin
  memtrace plot --kind categories --min-share 1 -o runs.pdf small.bin large.bin
  memtrace plot --kind bars --group layer=mxnet-layers -o bars.png mxnet.bin
  memtrace plot --align --baseline --data values.csv -o kernels.png a.bin b.bin
  memtrace plot --kind segments --at oom -o map.png memtrace.python3.4711.bin`

type plotFlags struct {
	filters cli.QueryFlags
	kind    string
	output  string
	data    string
	force   bool
	axis    string
	show    plot.Options
}

func plotCommand(a *app) *cobra.Command {
	var flags plotFlags
	var list strings.Builder
	var kinds []string
	for _, k := range plot.Kinds {
		fmt.Fprintf(&list, "  %-12s %s\n", k.Name, k.Doc)
		kinds = append(kinds, k.Name+"\t"+k.Doc)
	}
	cmd := &cobra.Command{
		Use:               "plot [flags] -o FILE TRACE...",
		Short:             "Draw memory over time and other charts: PNG, SVG, PDF",
		Long:              fmt.Sprintf(plotLong, strings.TrimRight(list.String(), "\n")),
		Annotations:       map[string]string{cli.DetailsFlag: plotDetails},
		Example:           plotExample,
		Args:              cli.SomeTraces,
		ValidArgsFunction: cli.CompleteTraces,
		RunE:              func(_ *cobra.Command, args []string) error { return a.plot(&flags, args) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.kind, "kind", "", "`KIND` of picture (default: timeline, or overlay)")
	f.StringVar(&flags.show.Title, "title", "", "`TEXT` above the picture")
	f.Float64Var(&flags.show.MinShare, "min-share", 0, "join categories below this `PERCENT` of the total")
	f.BoolVar(&flags.show.Baseline, "baseline", false, "overlay: subtract what each run held at first")
	f.BoolVar(&flags.show.Align, "align", false, "overlay: begin each run at its first allocation")
	f.StringVar(&flags.axis, "axis", "time",
		"timeline, overlay: `AXIS` time, or events, all equally wide")
	f.StringVar(&flags.filters.At, "at", "",
		"flamegraph, segments: use this `MOMENT` instead of the peak: "+cli.MomentHelp)
	f.StringVar(&flags.data, "data", "", "also write the values to this CSV `FILE`")
	f.StringVarP(&flags.output, "output", "o", "", "write to this `FILE`: its name ends in .png, .svg or .pdf")
	f.BoolVarP(&flags.force, "force", "f", false, "replace files that exist")
	flags.filters.Window.Define(cmd)
	flags.filters.DefineFilters(cmd)
	flags.filters.DefineRules(cmd)
	cli.GroupFlags(cmd, cli.GroupWhat, "kind")
	cli.GroupFlags(cmd, cli.GroupPart, "at")
	cli.GroupFlags(cmd, cli.Layout, "title", "min-share", "baseline", "align", "axis")
	cli.GroupFlags(cmd, cli.Output, "data", "output", "force")
	cli.CompleteFlag(cmd, "kind", cli.CompleteValues(kinds...))
	cli.CompleteFlag(cmd, "at", cli.Moments)
	cli.CompleteFlag(cmd, "axis", cli.CompleteValues("time", "events"))
	for _, name := range []string{"title", "min-share"} {
		cli.CompleteFlag(cmd, name, cli.CompleteValues())
	}
	return cmd
}

// check validates the flags before any trace is read, and returns the picture's format and what to count.
func (flags *plotFlags) check() (format string, count analyzer.Options, err error) {
	format = strings.TrimPrefix(strings.ToLower(filepath.Ext(flags.output)), ".")
	switch {
	case flags.output == "":
		return "", count, cli.UsageErrorf("name the picture with -o, such as -o memory.png")
	case !slices.Contains(plot.Formats, format):
		return "", count, cli.UsageErrorf("-o %s: the name of a picture ends in .png, .svg or .pdf", flags.output)
	case flags.kind != "" && !slices.Contains(plot.Names(), flags.kind):
		return "", count, cli.UsageErrorf("--kind %s: choose from %s", flags.kind, strings.Join(plot.Names(), ", "))
	case flags.axis != "time" && flags.axis != "events":
		return "", count, cli.UsageErrorf("--axis %s: choose time or events", flags.axis)
	case !(flags.show.MinShare >= 0 && flags.show.MinShare <= 100):
		return "", count, cli.UsageErrorf("--min-share %v: a percentage from 0 to 100", flags.show.MinShare)
	}
	flags.show.Events = flags.axis == "events"
	if count, err = flags.filters.Options(); err != nil {
		return "", count, err
	}
	if len(flags.filters.Groups) == 0 {
		if err := (&cli.ViewFlags{Names: []string{"iterations"}}).RequestTraining(&flags.filters, &count); err !=
			nil {
			return "", count, err
		}
		count.Groupings, count.HistoryBlocks = []string{cli.ByCategory}, plotBlocks
	}
	return format, count, nil
}

// plotBlocks is how many blocks a timeline is divided by; of a larger trace it shows the levels.
const plotBlocks = 1_000_000

func (a *app) plot(flags *plotFlags, args []string) error {
	format, count, err := flags.check()
	if err != nil {
		return err
	}
	read := readRuns
	if flags.kind == plot.KindFlame {
		read = readFlames
	}
	runs, err := read(a, args, count)
	if err != nil {
		return err
	}
	chart, err := plot.Make(flags.kind, runs, flags.show)
	if err != nil {
		return err
	}
	if flags.data != "" {
		if err := a.WriteTo(flags.data, flags.force, sanitize.Lines, chart.CSV); err != nil {
			return err
		}
	}
	if err := a.WriteTo(flags.output, flags.force, sanitize.Bytes,
		func(w io.Writer) error { return chart.Draw(w, format) }); err != nil {
		return err
	}
	if a.Quiet {
		return nil
	}
	of := "one trace"
	if len(runs) > 1 {
		of = fmt.Sprintf("%d traces", len(runs))
	}
	a.Say("wrote %s: %s of %s", flags.output, chart.Kind, of)
	return nil
}

// runName is what a trace is called in pictures.
func runName(path string) string {
	return strings.TrimPrefix(strings.TrimSuffix(filepath.Base(path), tracefile.Suffix), "memtrace.")
}

// readRuns reads the traces that a picture is of.
func readRuns(a *app, args []string, count analyzer.Options) ([]plot.Run, error) {
	inputs, err := tracefile.Expand(args)
	if err != nil {
		return nil, err
	}
	var runs []plot.Run
	for _, in := range inputs {
		summary, err := tracefile.Summarize(&a.Console, in.Path, count)
		if err != nil {
			if tracefile.PassOver(&a.Console, in, err) {
				continue
			}
			return nil, err
		}
		runs = append(runs, plot.Run{Name: runName(in.Path), Summary: summary})
	}
	if len(runs) == 0 {
		return nil, tracefile.NoTraceError(args[0])
	}
	return runs, nil
}

// readFlame lays out the call stacks of a trace.
func readFlame(a *app, path string, count analyzer.Options) (*plot.Flame, error) {
	count.Training, count.Groupings, count.RuleSets, count.HistoryBlocks = false, nil, nil, 0
	sets, _, err := a.exporter().ReadStacks(path, "", false, count)
	if err != nil {
		return nil, err
	}
	options := export.Options{Value: export.Peak, Writer: "memtrace " + version.String}
	a.exporter().WarnStacks(path, sets, options)
	l := export.LayOut(sets[0], options)
	f := &plot.Flame{Title: l.Headline, Note: l.Subtitle, Sum: l.Sum, Depth: l.Depth}
	for _, c := range export.FlameClasses() {
		f.Legend = append(f.Legend, plot.FrameOwner(c))
	}
	for _, b := range l.Boxes {
		f.Boxes = append(f.Boxes, plot.FlameBox(b))
	}
	return f, nil
}

// readFlames reads the traces of a flame graph, which takes one.
func readFlames(a *app, args []string, count analyzer.Options) ([]plot.Run, error) {
	var runs []plot.Run
	inputs, err := tracefile.Expand(args)
	if err != nil {
		return nil, err
	}
	for _, in := range inputs {
		run := plot.Run{Name: runName(in.Path), Summary: &report.Summary{}}
		if len(inputs) == 1 {
			if run.Flame, err = readFlame(a, in.Path, count); err != nil {
				return nil, err
			}
		}
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		return nil, tracefile.NoTraceError(args[0])
	}
	return runs, nil
}
