package exportcmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"memtrace/analyzer"
	"memtrace/internal/cli"
	"memtrace/internal/export"
	"memtrace/internal/profile"
	"memtrace/internal/render/layout"
	"memtrace/internal/rules/rulefile"
	"memtrace/internal/tracefile"
	"memtrace/trace"
)

// historyLimit is how many blocks or events a format holds in memory without --limit: some 100 MB.
const historyLimit = 500_000

// checkApplies refuses flags that mean nothing to a format.
func (f *Flags) checkApplies(format *Format) error {
	takes := format.takes
	if format.replay == nil {
		takes = []string{"value", "level", "full-stacks", "no-lines", "at"}
	}
	flags := slices.Concat([]string{"value", "level", "full-stacks", "no-lines", "at", "limit"}, parquetOnly)
	for _, flag := range flags {
		if f.changed(flag) && !slices.Contains(takes, flag) {
			return cli.UsageErrorf("--%s does not apply to %s; leave it out", flag, format.Name)
		}
	}
	if f.limit < 1 {
		return cli.UsageErrorf("--limit %d: must be at least 1", f.limit)
	}
	return nil
}

// replayed writes a format that is made of blocks as they came and went.
func (e *Exporter) replayed(flags *Flags, format *Format, path string, count analyzer.Options,
	options export.Options) error {
	output := cmp.Or(flags.output, pathOf(path, format))
	first, err := tracefile.Open(e.Console, path) // what cannot be read is an error before a file is made
	if err != nil {
		return err
	}
	bar := e.NewProgress(path, first.Size())
	first.Close()
	defer bar.Finish()
	count.Progress = func(read int64) { bar.Update(read) }
	if err := prepareReplay(&count, flags); err != nil {
		return err
	}
	if err := tracefile.FindIterations(e.Console, path, &count); err != nil {
		return err
	}
	run := &export.Run{Count: count, Level: flags.level, Open: func() (trace.Source, io.Closer, error) {
		source, err := tracefile.OpenAgain(path)
		if err != nil {
			return nil, nil, err
		}
		return source, source, nil
	}}
	var written *export.Written
	err = e.WriteTo(output, flags.force, format.form, func(w io.Writer) error {
		var err error
		if written, err = format.replay(w, run, options); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	bar.Finish()
	e.warnReplayed(path, written)
	if output == "-" || e.Quiet {
		return nil
	}
	e.Say("wrote %s, %s; %s", output, written.Words, format.opens(output))
	return nil
}

// prepareReplay sets what formats count that are replayed: categories are those of the default rules.
func prepareReplay(count *analyzer.Options, flags *Flags) error {
	set, err := rulefile.Open(rulefile.Default)
	if err != nil {
		return err
	}
	count.RuleSets = []profile.RuleGrouping{{Name: cli.ByCategory, Rules: set}}
	count.HistoryBlocks = flags.limit
	return nil
}

// warnReplayed warns of what a file lacks, and why.
func (e *Exporter) warnReplayed(path string, w *export.Written) {
	s := w.Summary
	if main := s.Main(); main.AllocCount == 0 {
		words := ""
		if len(s.Filter) > 0 {
			words = " under the filters " + strings.Join(s.Filter, ", ")
		}
		e.Log.Warn().Msgf("%s: nothing was allocated%s: the file says so", path, words)
	}
	if !s.Health.Complete {
		e.Log.Warn().Msgf("%s: %s; 'memtrace report' says more", path, layout.Health(s.Health, s.LostRecords))
	}
	if s.Bounds != nil {
		e.Log.Warn().Msgf("%s: values are as recorded, without the allocations that were lost", path)
	}
	for _, problem := range s.Health.SymbolProblems {
		e.Log.Warn().Msg(problem)
	}
	for _, limit := range w.Limits {
		e.Log.Warn().Msgf("%s: %s", path, limit)
	}
}
