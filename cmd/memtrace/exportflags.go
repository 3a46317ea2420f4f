package main

import (
	"strings"

	"github.com/spf13/cobra"

	"memtrace/analyzer"
	"memtrace/analyzer/export"
	"memtrace/analyzer/report"
	"memtrace/internal/cmdline"
	"memtrace/internal/questions"
	"memtrace/internal/usage"
	"memtrace/internal/version"
)

type exportFlags struct {
	filters questions.Flags // what to count; its flags about how to show it are not offered
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

func (e *exportFlags) define(cmd *cobra.Command) {
	levels := []string{report.LevelFramework, report.LevelDriver}
	f := cmd.Flags()
	f.StringVar(&e.value, "value", export.Peak.String(), "the `NUMBER` of each stack: "+strings.Join(export.ValueNames(), ", "))
	f.StringVar(&e.level, "level", "", "the `LEVEL` "+strings.Join(levels, " or ")+" (default: framework if one reported blocks)")
	f.BoolVar(&e.full, "full-stacks", false, "do not fold what libraries and interpreters do inside")
	f.BoolVar(&e.noLines, "no-lines", false, "do not tell lines of a function apart")
	f.StringVar(&e.filters.At, "at", "", "take the `MOMENT` teardown, exit, oom, oom:N, mark:NAME, step:N or a time since the start such as 1.5s for the peak")
	e.filters.Window.Define(cmd)
	e.filters.DefineFilters(cmd)
	f.StringVarP(&e.output, "output", "o", "", "write to a `FILE`, - for standard output (default: beside the trace); for csv a folder")
	e.push.define(cmd)
	e.changed = f.Changed
	f.IntVar(&e.limit, "limit", exportLimit, "hold at most this `NUMBER` of blocks (perfetto) or events (memory_viz)")
	f.BoolVarP(&e.force, "force", "f", false, "replace that file if it exists")
	cmdline.Complete(cmd, "limit", cmdline.Values())
	cmdline.Complete(cmd, "value", cmdline.Values(export.ValueNames()...))
	cmdline.Complete(cmd, "at", cmdline.Moments)
	cmdline.Complete(cmd, "level", cmdline.Values(levels...))
}

// check turns the flags into what to count and what to write, before any trace is read.
func (e *exportFlags) check() (analyzer.Options, export.Options, error) {
	count, err := e.filters.Options()
	if err != nil {
		return count, export.Options{}, err
	}
	count.FullStacks = e.full
	value, err := export.ParseValue(e.value)
	if err != nil {
		return count, export.Options{}, usage.Errorf("--value: %w", err)
	}
	if e.level != "" && e.level != report.LevelFramework && e.level != report.LevelDriver {
		return count, export.Options{}, usage.Errorf("--level %s: choose %s or %s", e.level, report.LevelFramework, report.LevelDriver)
	}
	return count, export.Options{Value: value, NoLines: e.noLines, Full: e.full, Writer: "memtrace " + version.String}, nil
}
