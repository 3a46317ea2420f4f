package exportcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/export"
	"memtrace/internal/profile"
	"memtrace/internal/render/layout"
	"memtrace/internal/rules/rulefile"
	"memtrace/internal/tracefile"
	"memtrace/trace"
)

// Stacks writes a trace's call stacks, or its blocks as they came and went, in the format of that name.
func (e *Exporter) Stacks(ctx context.Context, flags *Flags, name, arg string) error {
	format, err := find(name)
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
	path, err := tracefile.One(arg)
	if err != nil {
		return err
	}
	if format.replay != nil {
		return e.replayed(flags, format, path, count, options)
	}
	if format.labels {
		if err := labelStacks(&count); err != nil {
			return err
		}
	}
	var sets []*analyzer.StackSet
	read := func() (err error) {
		sets, options.Modules, err = e.ReadStacks(path, flags.level, format.bothLevels, count)
		return err
	}
	if target != nil {
		if err := read(); err != nil {
			return err
		}
		return e.push(ctx, target, path, &flags.push, sets[0], options)
	}
	output := cmp.Or(flags.output, pathOf(path, format))
	err = e.WriteTo(output, flags.force, format.form, func(w io.Writer) error {
		if err := read(); err != nil {
			return err
		}
		return format.write(w, sets, options)
	})
	if err != nil {
		return err
	}
	e.printWritten(path, output, format, sets, options)
	return nil
}

// labelStacks requests the labels of pprof's samples. Categories are those of the default rules.
func labelStacks(count *analyzer.Options) error {
	set, err := rulefile.Open(rulefile.Default)
	if err != nil {
		return err
	}
	count.Groupings = []string{cli.ByCategory, "module", "tag", "device"}
	count.RuleSets = []profile.RuleGrouping{{Name: cli.ByCategory, Rules: set}}
	return nil
}

// ReadStacks returns the stacks of the wanted level, "" for the main one; with both, the other level's follow if it has
// any.
func (e *Exporter) ReadStacks(path, level string, both bool,
	count analyzer.Options) ([]*analyzer.StackSet, []trace.Module, error) {
	run, err := tracefile.Open(e.Console, path)
	if err != nil {
		return nil, nil, err
	}
	defer run.Close()
	if err := tracefile.FindIterations(e.Console, path, &count); err != nil {
		return nil, nil, err
	}
	done, err := tracefile.LookAhead(path, &count)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	bar := e.NewProgress(path, run.Size())
	defer bar.Finish()
	count.Progress = func(read int64) { bar.Update(read) }
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

// stacksOf requests the levels of ReadStacks.
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

// printWritten prints on stderr where the file is, how to open it, and what it lacks.
func (e *Exporter) printWritten(path, output string, format *Format, sets []*analyzer.StackSet, o export.Options) {
	e.WarnStacks(path, sets, o)
	if output == "-" || e.Quiet {
		return
	}
	e.Say("wrote %s, %s %s; %s", output, o.Value.Text(o.Value.Sum(sets[0])), o.Value.Words(sets[0]),
		format.opens(output))
}

// WarnStacks warns of what a file lacks, and why.
func (e *Exporter) WarnStacks(path string, sets []*analyzer.StackSet, o export.Options) {
	if len(sets[0].Rows) == 0 {
		e.Log.Warn().Msgf("%s: nothing was allocated at the %s level%s: the file says so", path, sets[0].Level,
			filtered(sets[0]))
	} else if o.Value.Sum(sets[0]) == 0 {
		e.Log.Warn().Msgf("%s: %s is 0 in every stack: --value takes %s", path, o.Value,
			strings.Join(export.ValueNames(), ", "))
	}
	if !sets[0].Health.Complete {
		e.Log.Warn().Msgf("%s: %s; 'memtrace report' says more", path,
			layout.Health(sets[0].Health, sets[0].LostRecords))
	}
	if b := sets[0].Bounds; b != nil {
		e.Log.Warn().Msgf("%s: all values are as recorded: of %s at the %s, %s are certain%s", path,
			layout.Bytes(export.Peak.Sum(sets[0])), sets[0].Moment, layout.Bytes(sets[0].Certain), mayBeMore(b))
	}
	for _, problem := range sets[0].Problems {
		e.Log.Warn().Msg(problem)
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
