package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"

	"memtrace/analyzer"
	"memtrace/analyzer/export"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/render/layout"
	"memtrace/analyzer/render/phrase"
	"memtrace/analyzer/report"
	"memtrace/analyzer/rules/rulefile"
	"memtrace/internal/console"
	"memtrace/internal/questions"
	"memtrace/internal/tracefile"
	"memtrace/internal/usage"
	"memtrace/internal/visible"
	"memtrace/trace"
)

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
	path, err := tracefile.One(arg)
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
	if err := a.WriteTo(output, flags.force, format.form, func(w io.Writer) error { return format.write(w, sets, options) }); err != nil {
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
	case named == "-" && format.form == visible.Bytes && term.IsTerminal(int(a.Stdout.Fd())):
		return "", usage.Errorf("refusing to write %s to a terminal; name a file with -o", format.name)
	}
	return named, nil
}

// labelStacks asks for what pprof's samples are labelled with. Categories are those of the default rules.
func labelStacks(count *analyzer.Options) error {
	set, err := rulefile.Open(rulefile.Default)
	if err != nil {
		return err
	}
	count.Groupings = []string{questions.ByCategory, "module", "tag", "device"}
	count.RuleSets = []profile.RuleGrouping{{Name: questions.ByCategory, Rules: set}}
	return nil
}

// readStacks returns the stacks of the wanted level, "" for the main one; with both, the other level's follow if it has
// any.
func (a *app) readStacks(path, level string, both bool, count analyzer.Options) ([]*analyzer.StackSet, []trace.Module, error) {
	run, err := tracefile.Open(&a.Console, path)
	if err != nil {
		return nil, nil, err
	}
	defer run.Close()
	done, err := tracefile.LookAhead(path, &count)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	bar := a.NewProgress(path, run.Size())
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
	if output == "-" || a.Quiet {
		return
	}
	hint := format.hint
	if strings.Contains(hint, "%s") {
		hint = "open it with: " + fmt.Sprintf(hint, console.ShellWord(output))
	}
	a.Say("wrote %s, %s %s; %s", output, o.Value.Text(o.Value.Sum(sets[0])), o.Value.Words(sets[0]), hint)
}

// warnExported says what keeps a file from saying more.
func (a *app) warnExported(path string, sets []*analyzer.StackSet, o export.Options) {
	if len(sets[0].Rows) == 0 {
		a.Log.Warn().Msgf("%s: nothing was allocated at the %s level%s: the file says so", path, sets[0].Level, filtered(sets[0]))
	} else if o.Value.Sum(sets[0]) == 0 {
		a.Log.Warn().Msgf("%s: %s is 0 in every stack: --value takes %s", path, o.Value, strings.Join(export.ValueNames(), ", "))
	}
	if !sets[0].Health.Complete {
		a.Log.Warn().Msgf("%s: %s; 'memtrace report' says more", path, phrase.Health(sets[0].Health, sets[0].LostRecords))
	}
	if b := sets[0].Bounds; b != nil {
		a.Log.Warn().Msgf("%s: all values are as recorded: of %s at the %s, %s are certain%s", path, layout.Bytes(export.Peak.Sum(sets[0])), sets[0].Moment, layout.Bytes(sets[0].Certain), mayBeMore(b))
	}
	for _, problem := range sets[0].Problems {
		a.Log.Warn().Msg(problem)
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
