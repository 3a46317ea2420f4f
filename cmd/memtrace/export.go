package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"memtrace/analyzer"
	"memtrace/analyzer/export"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/render"
	"memtrace/analyzer/render/layout"
	"memtrace/analyzer/report"
	"memtrace/analyzer/rules/rulefile"
	"memtrace/internal/version"
	"memtrace/internal/visible"
	"memtrace/trace"
	"memtrace/trace/spool"
)

const exportLong = `Write what a trace says about call stacks in the format of another tool, or as a
picture, or its tables as CSV:

%s
The file lies beside the trace, under its name with another ending, unless -o
names another one; '-o -' is standard output. Each stack has four values, one of
which --value chooses: the bytes that stood at the peak, those that were left at
the end, those of all allocations, and the number of allocations. They add up to
what 'memtrace report' says of the level. Stacks are folded as in the report:
--full-stacks keeps the frames of interpreters, dispatchers and allocators.

dhat, perfetto and memory_viz tell of blocks as they came and went. A snapshot for
memory_viz holds what stands at its end, and its readers take the history back from
there: with --at it ends at that moment, not with the run. --limit bounds what is
held in memory: the blocks that perfetto divides among owners, the latest events of
a snapshot's history. What does not fit is reported.

csv writes the tables of the report, those that have rows, for spreadsheets and
other programs. Sizes are whole bytes, times seconds since the start. A name that a
spreadsheet would calculate, such as '=1+1', has an apostrophe before it.

%s
--push sends the profile of pprof to a server instead of writing a file: Pyroscope,
or one that takes what Pyroscope takes.

%s`

const exportExample = `  memtrace export flamegraph memtrace.python3.4711.bin
  memtrace export pprof --value allocated memtrace.python3.4711.bin
  memtrace export speedscope --focus 'attn|mlp' -o attention.json memtrace.python3.4711.bin
  memtrace export collapsed --no-lines -o - memtrace.python3.4711.bin | sort -nrk2 | head
  memtrace export perfetto memtrace.python3.4711.bin
  memtrace export memory_viz --at oom memtrace.python3.4711.bin
  memtrace export csv -o tables memtrace.python3.4711.bin
  memtrace export --push http://localhost:4040 memtrace.python3.4711.bin`

// exportFormat is one way to write stacks. A new format is a row of exportFormats.
type exportFormat struct {
	name, extension, doc string
	form                 visible.Form
	labels               bool   // rows say what their memory is for
	bothLevels           bool   // a file holds all levels unless one was asked for
	hint                 string // a command that opens the file, which stands for %s; "": there is no such command
	write                func(w io.Writer, sets []*analyzer.StackSet, o export.Options) error
	replay               func(w io.Writer, run *export.Run, o export.Options) (*export.Written, error) // instead of write: blocks, as they came and went
	takes                []string                                                                      // of the flags about what to write, those that apply to a format that is replayed
}

var exportFormats = []exportFormat{
	{name: "flamegraph", extension: ".svg", doc: "a picture for the browser; your own lines stand out",
		hint: "open it in a browser", write: oneSet(export.FlameGraph)},
	{name: "pprof", extension: ".pb.gz", doc: "a profile for pprof, with all values and labels", form: visible.Bytes, labels: true,
		hint: "go tool pprof -http=: %s", write: oneSet(export.Pprof)},
	{name: "speedscope", extension: ".speedscope.json", doc: "for speedscope.app, with all values and levels", form: visible.JSON, bothLevels: true,
		hint: "open it at https://www.speedscope.app, which keeps it in your browser", write: export.Speedscope},
	{name: "collapsed", extension: ".collapsed.txt", doc: "one line for each stack, for flamegraph.pl and others",
		hint: "flamegraph.pl --countname bytes %s", write: oneSet(export.Collapsed)},
	{name: "dhat", extension: ".dhat.json", doc: "for Valgrind's dh_view: lifetimes and peak of each stack", form: visible.JSON,
		hint: "open dh_view.html of Valgrind in a browser and load it there", replay: export.DHAT, takes: []string{"level", "at", "full-stacks", "no-lines"}},
	{name: "perfetto", extension: ".pftrace", doc: "for Perfetto's viewer: memory over time, slices, marks", form: visible.Bytes,
		hint: "open it at https://ui.perfetto.dev, which keeps it in your browser", replay: export.Perfetto, takes: []string{"limit"}},
	{name: "memory_viz", extension: ".pickle", doc: "a snapshot for PyTorch's memory_viz, with all device memory", form: visible.Bytes,
		hint: "drop it on https://pytorch.org/memory_viz, which keeps it in your browser", replay: export.Snapshot, takes: []string{"at", "full-stacks", "limit"}},
}

func oneSet(write func(io.Writer, *analyzer.StackSet, export.Options) error) func(io.Writer, []*analyzer.StackSet, export.Options) error {
	return func(w io.Writer, sets []*analyzer.StackSet, o export.Options) error { return write(w, sets[0], o) }
}

type exportFlags struct {
	filters summaryFlags // what to count; its flags about how to show it are not offered
	value   string
	level   string
	full    bool
	noLines bool
	output  string
	force   bool
	push    pushFlags
	limit   int                    // of blocks or events held
	changed func(flag string) bool // a flag was given
}

func (a *app) exportCommand() *cobra.Command {
	var flags exportFlags
	var list strings.Builder
	var names []cobra.Completion
	for _, f := range exportFormats {
		fmt.Fprintf(&list, "  %-12s %s (%s)\n", f.name, f.doc, f.extension)
		names = append(names, cobra.CompletionWithDesc(f.name, f.doc))
	}
	fmt.Fprintf(&list, "  %-12s %s (%s)\n", exportCSVName, "a folder with each table of the report", exportCSVExtension)
	names = append(names, cobra.CompletionWithDesc(exportCSVName, "a folder with each table of the report"))
	cmd := &cobra.Command{
		Use:     "export [flags] FORMAT FILE",
		Short:   "Write a flame graph, files for pprof, Perfetto and others, tables as CSV",
		Long:    fmt.Sprintf(exportLong, list.String(), csvTables(), windowHelp+"\n\n"+filterHelp),
		Example: exportExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 && !(len(args) == 1 && flags.push.asked()) {
				return usagef("name a format (%s) and a trace", strings.Join(exportNames(), ", "))
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return names, cobra.ShellCompDirectiveNoFileComp
			}
			return completeTraces(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 { // a server takes nothing else
				args = []string{"pprof", args[0]}
			}
			if args[0] == exportCSVName {
				return a.exportCSV(&flags, args[1], cmd.Flags().Changed)
			}
			return a.export(cmd.Context(), &flags, args[0], args[1])
		},
	}
	flags.define(cmd)
	return cmd
}

func exportNames() []string {
	var names []string
	for _, f := range exportFormats {
		names = append(names, f.name)
	}
	return append(names, exportCSVName)
}

func (e *exportFlags) define(cmd *cobra.Command) {
	levels := []string{report.LevelFramework, report.LevelDriver}
	f := cmd.Flags()
	f.StringVar(&e.value, "value", export.Peak.String(), "the `NUMBER` of each stack: "+strings.Join(export.ValueNames(), ", "))
	f.StringVar(&e.level, "level", "", "the `LEVEL` "+strings.Join(levels, " or ")+" (default: framework if one reported blocks)")
	f.BoolVar(&e.full, "full-stacks", false, "do not fold what libraries and interpreters do inside")
	f.BoolVar(&e.noLines, "no-lines", false, "do not tell lines of a function apart")
	f.StringVar(&e.filters.at, "at", "", "take the `MOMENT` teardown, exit, oom, oom:N, mark:NAME, step:N or a time since the start such as 1.5s for the peak")
	e.filters.window.define(cmd)
	e.filters.defineFilters(cmd)
	f.StringVarP(&e.output, "output", "o", "", "write to a `FILE`, - for standard output (default: beside the trace); for csv a folder")
	e.push.define(cmd)
	e.changed = f.Changed
	f.IntVar(&e.limit, "limit", exportLimit, "hold at most this `NUMBER` of blocks (perfetto) or events (memory_viz)")
	f.BoolVarP(&e.force, "force", "f", false, "replace that file if it exists")
	mustComplete(cmd, "limit", completeValues())
	mustComplete(cmd, "value", completeValues(export.ValueNames()...))
	mustComplete(cmd, "at", completeMoments)
	mustComplete(cmd, "level", completeValues(levels...))
}

// check turns the flags into what to count and what to write, before any trace is read.
func (e *exportFlags) check() (analyzer.Options, export.Options, error) {
	count, err := e.filters.options()
	if err != nil {
		return count, export.Options{}, err
	}
	count.FullStacks = e.full
	value, err := export.ParseValue(e.value)
	if err != nil {
		return count, export.Options{}, usagef("--value: %w", err)
	}
	if e.level != "" && e.level != report.LevelFramework && e.level != report.LevelDriver {
		return count, export.Options{}, usagef("--level %s: choose %s or %s", e.level, report.LevelFramework, report.LevelDriver)
	}
	return count, export.Options{Value: value, NoLines: e.noLines, Full: e.full, Writer: "memtrace " + version.String}, nil
}

func (a *app) export(ctx context.Context, flags *exportFlags, name, arg string) error {
	format, err := findExport(name)
	if err != nil {
		return err
	}
	target, err := flags.push.target(format, flags.output)
	if err != nil {
		return err
	}
	if err := flags.checkApplies(format); err != nil {
		return err
	}
	count, options, err := flags.check()
	if err != nil {
		return err
	}
	path, err := oneInput(arg)
	if err != nil {
		return err
	}
	if format.replay != nil {
		return a.exportReplayed(flags, format, path, count, options)
	}
	if format.labels {
		if err := labelStacks(&count); err != nil {
			return err
		}
	}
	output, err := a.exportOutput(flags.output, path, format)
	if err != nil {
		return err
	}
	sets, modules, err := a.readStacks(path, flags.level, format.bothLevels, count)
	if err != nil {
		return err
	}
	options.Modules = modules
	if target != nil {
		return a.push(ctx, target, path, &flags.push, sets[0], options)
	}
	if err := a.writeTo(output, flags.force, format.form, func(w io.Writer) error { return format.write(w, sets, options) }); err != nil {
		return err
	}
	a.sayExported(path, output, format, sets, options)
	return nil
}

// exportOutput is the file to write: the one that was named, else one beside the trace.
func (a *app) exportOutput(named, path string, format *exportFormat) (string, error) {
	switch {
	case named == "":
		return exportPath(path, format), nil
	case named == "-" && format.form == visible.Bytes && term.IsTerminal(int(a.stdout.Fd())):
		return "", usagef("refusing to write %s to a terminal; name a file with -o", format.name)
	}
	return named, nil
}

// labelStacks asks for what pprof's samples are labelled with. Categories are those of the default rules.
func labelStacks(count *analyzer.Options) error {
	set, err := rulefile.Open(rulefile.Default)
	if err != nil {
		return err
	}
	count.Groupings = []string{byCategory, "module", "tag", "device"}
	count.RuleSets = []profile.RuleGrouping{{Name: byCategory, Rules: set}}
	return nil
}

func findExport(name string) (*exportFormat, error) {
	for i := range exportFormats {
		if exportFormats[i].name == name {
			return &exportFormats[i], nil
		}
	}
	return nil, usagef("there is no format %q; choose from %s", name, strings.Join(exportNames(), ", "))
}

// exportPath is the trace's path with a format's extension: memtrace.python3.4711.svg for memtrace.python3.4711.bin.
func exportPath(path string, format *exportFormat) string {
	path = strings.TrimSuffix(path, spool.Extension)
	return strings.TrimSuffix(path, traceSuffix) + format.extension
}

// readStacks returns the stacks of the wanted level, "" for the main one; with both, the other level's follow if it has
// any.
func (a *app) readStacks(path, level string, both bool, count analyzer.Options) ([]*analyzer.StackSet, []trace.Module, error) {
	run, err := a.openTrace(path)
	if err != nil {
		return nil, nil, err
	}
	defer run.Close()
	done, err := lookAhead(path, &count)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	bar := a.newProgress(path, run.Size())
	defer bar.finish()
	count.Progress = func(read int64) { bar.update(read) }
	p, err := analyzer.Replay(run, count)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	defer p.Close()
	sets, err := stacksOf(p, level, both, count.Question)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return sets, run.Tables().Modules(), nil
}

// stacksOf asks for the levels of readStacks.
func stacksOf(p *analyzer.Profile, level string, both bool, q analyzer.Question) ([]*analyzer.StackSet, error) {
	set, err := p.Stacks(q, level)
	if err != nil {
		return nil, err
	}
	sets := []*analyzer.StackSet{set}
	if both && level == "" && set.Level == report.LevelFramework {
		other, err := p.Stacks(q, report.LevelDriver)
		if err != nil {
			return nil, err
		}
		if len(other.Rows) > 0 {
			sets = append(sets, other)
		}
	}
	return sets, nil
}

// sayExported tells on stderr where the file is, how to open it, and what keeps it from saying more.
func (a *app) sayExported(path, output string, format *exportFormat, sets []*analyzer.StackSet, o export.Options) {
	a.warnExported(path, sets, o)
	if output == "-" || a.quiet {
		return
	}
	hint := format.hint
	if strings.Contains(hint, "%s") {
		hint = "open it with: " + fmt.Sprintf(hint, shellWord(output))
	}
	a.say("wrote %s, %s %s; %s", output, o.Value.Text(o.Value.Sum(sets[0])), o.Value.Words(sets[0]), hint)
}

// warnExported says what keeps a file from saying more.
func (a *app) warnExported(path string, sets []*analyzer.StackSet, o export.Options) {
	if len(sets[0].Rows) == 0 {
		a.log.Warn().Msgf("%s: nothing was allocated at the %s level%s: the file says so", path, sets[0].Level, filtered(sets[0]))
	} else if o.Value.Sum(sets[0]) == 0 {
		a.log.Warn().Msgf("%s: %s is 0 in every stack: --value takes %s", path, o.Value, strings.Join(export.ValueNames(), ", "))
	}
	if !sets[0].Health.Complete {
		a.log.Warn().Msgf("%s: %s; 'memtrace report' says more", path, render.Health(sets[0].Health, sets[0].LostRecords))
	}
	if b := sets[0].Bounds; b != nil {
		a.log.Warn().Msgf("%s: all values are as recorded: of %s at the %s, %s are certain%s", path, layout.Bytes(export.Peak.Sum(sets[0])), sets[0].Moment, layout.Bytes(sets[0].Certain), mayBeMore(b))
	}
	for _, problem := range sets[0].Problems {
		a.log.Warn().Msg(problem)
	}
}

func mayBeMore(b *report.Bounds) string {
	if b.RecordedIsUpper {
		return ""
	}
	return ", and what lost allocations took is missing"
}

func filtered(set *analyzer.StackSet) string {
	if len(set.Filter) == 0 {
		return ""
	}
	return " under the filters " + strings.Join(set.Filter, ", ")
}
