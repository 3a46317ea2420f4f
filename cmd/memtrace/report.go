package main

import (
	"io"

	"github.com/spf13/cobra"

	"memtrace/analyzer/render"
	"memtrace/analyzer/render/layout"
	"memtrace/analyzer/report"
)

const reportLong = `Show where the memory was: the peak and who stood at it, what was live at the
end, and what happened on the way.

A folder with several traces is taken for one run, such as the ranks of a
distributed training: a table sets its processes side by side and says which of
them differs and why, and the report of the one to look at follows; with --all
the report of each. Several files give one report each, in order. With --json,
one file gives an object, and several files or a folder an array. A trace whose program was killed, or still runs, is read as far as it
goes.

` + viewHelp + `

` + windowHelp + `

` + rulesHelp + `

` + filterHelp

const reportExample = `  memtrace report memtrace.python3.4711.bin
  memtrace report --by tag,library --at mark:loaded memtrace.python3.4711.bin
  memtrace report --from step:10 --to step:20 memtrace.python3.4711.bin
  memtrace report --device 1 --focus 'attn|mlp' traces/
  memtrace report --by category memtrace.python3.4711.bin
  memtrace report --group layer=mxnet-layers --group data=mine.toml memtrace.python3.4711.bin
  memtrace report --by site --full-stacks memtrace.python3.4711.bin
  memtrace report --view modules --depth 2 memtrace.python3.4711.bin
  memtrace report --view iterations --csv iterations.csv --units MB memtrace.python3.4711.bin
  memtrace report --view timeline --by module --csv - memtrace.python3.4711.bin
  memtrace report --brief memtrace.python3.4711.bin
  memtrace report --json memtrace.python3.4711.bin | jq .driver.peak_bytes`

func (a *app) reportCommand() *cobra.Command {
	var flags summaryFlags
	var views viewFlags
	cmd := &cobra.Command{
		Use:               "report [flags] FILE|DIR...",
		Short:             "Show where the memory was",
		Long:              reportLong,
		Example:           reportExample,
		Args:              someTraces,
		ValidArgsFunction: completeTraces,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.report(&flags, &views, args, cmd.Flags().Changed)
		},
	}
	flags.define(cmd)
	views.define(cmd)
	flags.defineEntries(cmd)
	cmd.Flags().BoolVar(&flags.details, "details", false, "show everything: call stacks, device ledgers, lifetimes, notes")
	cmd.Flags().BoolVar(&flags.brief, "brief", false, "print the answer, what it rests on and what to run next as JSON of at most 6,000 bytes")
	cmd.Flags().BoolVar(&flags.allProcesses, "all", false, "for a folder: show the report of every process, not only of the one to look at")
	cmd.Flags().BoolVar(&flags.full, "full-stacks", false, "show every frame of call stacks, also what libraries do among themselves")
	return cmd
}

// readSummary is a summary and the file that it was made from.
type readSummary struct {
	path    string
	summary *report.Summary
}

func (a *app) report(flags *summaryFlags, viewed *viewFlags, args []string, changed func(flag string) bool) error {
	if err := viewed.takeBy(flags); err != nil {
		return err
	}
	options, style, err := flags.check(a)
	if err != nil {
		return err
	}
	views, err := viewed.check(flags, args, changed, &style)
	if err != nil {
		return err
	}
	if err := viewed.askForTraining(flags, &options); err != nil {
		return err
	}
	options.Sites = len(views) == 0
	if viewed.csv != "" { // a folder will do if it holds one trace
		path, err := oneInput(args[0])
		if err != nil {
			return err
		}
		if err := refuseSame(path, viewed.csv); err != nil {
			return err
		}
		args = []string{path}
	}
	if err := flags.checkBrief(len(views)); err != nil {
		return err
	}
	if len(views) == 0 && !flags.json && !flags.brief && sideBySide(args) {
		return a.reportRanks(flags, args[0], options, style)
	}
	var damaged damageList
	reports := shown[readSummary]{json: flags.json || flags.brief, form: flags.form(style)}
	reports.load = func(path string) (readSummary, error) {
		summary, err := a.summarize(path, options)
		if err == nil {
			err = checkViews(views, path, summary)
		}
		return readSummary{path, summary}, err
	}
	reports.show = func(w io.Writer, r readSummary) error { return renderSummary(w, r, flags.json, style) }
	if flags.brief {
		reports.show = func(w io.Writer, r readSummary) error {
			return render.BriefJSON(w, r.summary, layout.Options{Path: r.path})
		}
	}
	if len(views) > 0 && !flags.json {
		reports.show = func(w io.Writer, r readSummary) error { return a.showViews(w, viewed, flags.force, views, r, style) }
	}
	if show := reports.show; flags.strict {
		reports.show = func(w io.Writer, r readSummary) error {
			damaged.add(r.path, r.summary)
			return show(w, r)
		}
	}
	return damaged.join(reports.toFile(a, args, flags.output, flags.force))
}

func renderSummary(w io.Writer, r readSummary, asJSON bool, style layout.Options) error {
	if asJSON {
		return render.JSON(w, r.summary)
	}
	style.Path = r.path
	return render.Text(w, r.summary, style)
}

// checkBrief refuses what --brief leaves no room for.
func (f *summaryFlags) checkBrief(views int) error {
	switch {
	case !f.brief:
		return nil
	case f.json:
		return usagef("--brief and --json exclude each other: both print JSON")
	case views > 0 || f.details || f.full:
		return usagef("--brief excludes --view, --details and --full-stacks: they show more than it may print")
	}
	return nil
}
