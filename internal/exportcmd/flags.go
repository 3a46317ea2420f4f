package exportcmd

import (
	"strings"

	"github.com/spf13/cobra"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/export"
	"memtrace/internal/version"
)

// Flags are those of the command: what is counted, what is written of it, and where.
type Flags struct {
	filters cli.QueryFlags // what to count; its flags about how to show it are not offered
	value   string
	level   string
	full    bool
	noLines bool
	output  string
	force   bool
	push    pushFlags
	parquet parquetFlags
	limit   int                    // of blocks or events held
	changed func(flag string) bool // a flag was given
}

// Define adds the flags to the command.
func (f *Flags) Define(cmd *cobra.Command) {
	levels := []string{report.LevelFramework, report.LevelDriver}
	set := cmd.Flags()
	set.StringVar(&f.value, "value", export.Peak.String(), "the `VALUE` of each stack: "+
		strings.Join(export.ValueNames(), ", "))
	set.StringVar(&f.level, "level", "", "`LEVEL` "+strings.Join(levels, " or ")+
		" (default: framework, if one reported blocks)")
	set.BoolVar(&f.full, "full-stacks", false, "do not fold the frames inside libraries")
	set.BoolVar(&f.noLines, "no-lines", false, "join the lines of a function")
	set.StringVar(&f.filters.At, "at", "", "use this `MOMENT` instead of the peak: "+cli.MomentHelp)
	f.filters.Window.Define(cmd)
	f.filters.DefineFilters(cmd)
	set.StringVarP(&f.output, "output", "o", "",
		"write to this `FILE`, for csv and parquet a folder; -: to standard output (default: beside the trace)")
	set.BoolVarP(&f.force, "force", "f", false, "replace that file if it exists")
	f.push.define(cmd)
	f.parquet.define(cmd)
	f.changed = set.Changed
	set.IntVar(&f.limit, "limit", historyLimit,
		"hold at most this `NUMBER` of blocks (perfetto, blocks) or events (memory_viz)")
	cli.GroupFlags(cmd, cli.GroupWhat, "value", "level", "limit")
	cli.GroupFlags(cmd, cli.GroupPart, "at")
	cli.GroupFlags(cmd, cli.Layout, "full-stacks", "no-lines")
	cli.GroupFlags(cmd, cli.Output, "output", "force", "push", "push-label", "push-header")
	cli.CompleteFlag(cmd, "limit", cli.CompleteValues())
	cli.CompleteFlag(cmd, "value", cli.CompleteValues(export.ValueNames()...))
	cli.CompleteFlag(cmd, "at", cli.Moments)
	cli.CompleteFlag(cmd, "level", cli.CompleteValues(levels...))
}

// Pushes reports whether the profile goes to a server instead of a file.
func (f *Flags) Pushes() bool { return f.push.enabled() }

// check turns the flags into what to count and what to write, before any trace is read.
func (f *Flags) check() (analyzer.Options, export.Options, error) {
	count, err := f.filters.Options()
	if err != nil {
		return count, export.Options{}, err
	}
	count.FullStacks = f.full
	value, err := export.ParseValue(f.value)
	if err != nil {
		return count, export.Options{}, cli.UsageErrorf("--value: %w", err)
	}
	if f.level != "" && f.level != report.LevelFramework && f.level != report.LevelDriver {
		return count, export.Options{}, cli.UsageErrorf("--level %s: choose %s or %s", f.level, report.LevelFramework,
			report.LevelDriver)
	}
	return count, export.Options{Value: value, NoLines: f.noLines, Full: f.full, Writer: "memtrace " + version.String},
		nil
}
