package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"memtrace/analyzer/report"
	"memtrace/internal/attach"
	"memtrace/internal/cli"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
	"memtrace/internal/tracefile"
)

const reportLong = `Show what held the memory at the peak, what was live at the end, and what grew in
between. Of a folder with several traces or profiles, such as the ranks of a distributed
training, the report compares the processes and shows the one that differs most.`

var reportDetails = `Several traces give one report each, in order; with --all, so does a folder. Several
profiles (memtrace profile) are compared like those of a folder. With
--json, one file gives an object, and several files or a folder an array. The trace of
a program that was killed, or that still runs, is read up to its last record.

` + cli.ViewHelp + `

` + cli.WindowHelp + `

` + cli.RulesHelp + `

` + cli.FilterHelp

const reportExample = `  memtrace report memtrace.python3.4711.bin
  memtrace report --details memtrace.python3.4711.bin
  memtrace report --by module,category memtrace.python3.4711.bin
  memtrace report --at mark:loaded memtrace.python3.4711.bin
  memtrace report --from iteration:10 --to iteration:20 memtrace.python3.4711.bin
  memtrace report --device 1 --focus 'attn|mlp' traces/
  memtrace report --view iterations --csv iterations.csv memtrace.python3.4711.bin
  memtrace report --json memtrace.python3.4711.bin | jq .verdict.peak_bytes`

func reportCommand(a *app) *cobra.Command {
	var flags cli.QueryFlags
	var views cli.ViewFlags
	cmd := &cobra.Command{
		Use:               "report [flags] FILE|DIR...",
		SuggestFor:        []string{"oom", "peak", "leaks"},
		Short:             "Show what held the memory at the peak",
		Long:              reportLong,
		Annotations:       map[string]string{cli.DetailsFlag: reportDetails},
		Example:           reportExample,
		Args:              cli.SomeTraces,
		ValidArgsFunction: cli.CompleteTraces,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.report(&flags, &views, args, cmd.Flags().Changed)
		},
	}
	flags.Define(cmd)
	views.Define(cmd)
	flags.DefineEntries(cmd)
	f := cmd.Flags()
	f.BoolVar(&flags.Details, "details", false, "also show call stacks, ledgers, lifetimes, notes")
	f.BoolVar(&flags.Full, "full-stacks", false, "do not fold the frames inside libraries")
	f.BoolVar(&flags.AllProcesses, "all", false, "of a folder, show the report of every process")
	f.BoolVar(&flags.Brief, "brief", false, "print answer and evidence as JSON, at most 6,000 bytes")
	cli.GroupFlags(cmd, cli.GroupWhat, "details", "all")
	cli.GroupFlags(cmd, cli.Layout, "full-stacks")
	cli.GroupFlags(cmd, cli.Output, "brief")
	return cmd
}

// readSummary is a summary and the file that it was made from.
type readSummary struct {
	path    string
	summary *report.Summary
}

func (a *app) report(flags *cli.QueryFlags, viewed *cli.ViewFlags, args []string,
	changed func(flag string) bool) error {
	if err := viewed.TakeBy(flags); err != nil {
		return err
	}
	options, style, err := flags.Check(&a.Console)
	if err != nil {
		return err
	}
	views, err := viewed.Check(flags, args, changed, &style)
	if err != nil {
		return err
	}
	if err := viewed.RequestTraining(flags, &options); err != nil {
		return err
	}
	options.Sites = len(views) == 0
	if viewed.Csv != "" {
		if args, err = traceOfTable(args[0], viewed.Csv); err != nil {
			return err
		}
	}
	if err := flags.CheckBrief(len(views)); err != nil {
		return err
	}
	if len(views) == 0 && !flags.JSON && !flags.Brief {
		if inputs := sideBySide(args); inputs != nil {
			return a.reportRanks(flags, args, inputs, options, style)
		}
	}
	var damaged tracefile.DamageList
	reports := tracefile.Shown[readSummary]{JSON: flags.JSON || flags.Brief, Form: flags.Form(style)}
	reports.Load = func(path string) (readSummary, error) {
		summary, err := tracefile.Summarize(&a.Console, path, options)
		if err == nil {
			err = checkViews(views, path, summary)
		}
		return readSummary{path, summary}, err
	}
	reports.Show = func(w io.Writer, r readSummary) error { return renderSummary(w, r, flags.JSON, style) }
	if flags.Brief {
		reports.Show = func(w io.Writer, r readSummary) error {
			return render.BriefJSON(w, r.summary, layout.Options{Path: r.path, StillRuns: stillRuns(r.summary)})
		}
	}
	if len(views) > 0 && !flags.JSON {
		reports.Show = func(w io.Writer, r readSummary) error {
			return a.showViews(w, viewed, flags.Force, views, r, style)
		}
	}
	if show := reports.Show; flags.Strict {
		reports.Show = func(w io.Writer, r readSummary) error {
			damaged.Add(r.path, r.summary)
			return show(w, r)
		}
	}
	return damaged.Join(reports.ToFile(&a.Console, args, flags.Output, flags.Force))
}

// traceOfTable returns the one trace whose table becomes a file: that of a folder will do.
func traceOfTable(arg, table string) ([]string, error) {
	path, err := tracefile.One(arg)
	if err != nil {
		return nil, err
	}
	return []string{path}, tracefile.RefuseSame(path, table)
}

func renderSummary(w io.Writer, r readSummary, asJSON bool, style layout.Options) error {
	if asJSON {
		return render.JSON(w, r.summary)
	}
	style.Path, style.StillRuns = r.path, stillRuns(r.summary)
	return render.Text(w, r.summary, style)
}

// stillRuns reports whether the process that a snapshot is of goes on, in the recording that it was taken from.
func stillRuns(s *report.Summary) bool {
	if !s.Process.Snapshot || s.Process.PID == 0 {
		return false
	}
	now := report.ProcessOf(attach.RecordingOf(int(s.Process.PID)))
	return now.PID == s.Process.PID && now.Started == s.Process.Started
}

// showViews writes the views of one trace, and its CSV first: text on standard output cannot be taken back.
func (a *app) showViews(w io.Writer, flags *cli.ViewFlags, force bool, views []*render.View, r readSummary,
	style layout.Options) error {
	style.Path = r.path
	if (flags.Csv != "" || views[0].Bare()) && !r.summary.Health.Complete {
		a.Log.Warn().Msgf("%s: %s; 'memtrace report' says more", r.path,
			layout.Health(r.summary.Health, r.summary.LostRecords))
	}
	if why := render.NothingSelected(r.summary, style); why != "" && flags.Has("tbd") {
		a.Log.Warn().Msgf("%s: no table: %s", r.path, why)
	}
	switch flags.Csv {
	case "":
	case "-":
		return views[0].CSV(w, r.summary, style)
	default:
		if err := a.WriteTo(flags.Csv, force, sanitize.Lines,
			func(w io.Writer) error { return views[0].CSV(w, r.summary, style) }); err != nil {
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
