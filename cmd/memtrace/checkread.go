package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/check"
	"memtrace/internal/cli"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
	"memtrace/internal/safefile"
	"memtrace/internal/sanitize"
	"memtrace/internal/tracefile"
)

// maxReport bounds a JSON report or a baseline, in bytes.
const maxReport = 256 << 20

// checkReader reads what gates are held against.
type checkReader struct {
	app        *app
	options    analyzer.Options
	incomplete bool
	anyRank    bool
}

func newCheckReader(a *app, flags *checkFlags) (*checkReader, error) {
	flags.Entries = -1 // none are shown
	options, err := flags.Options()
	if err != nil {
		return nil, err
	}
	if err := (&cli.ViewFlags{}).RequestTraining(&flags.QueryFlags, &options); err != nil {
		return nil, err
	}
	options.Sites, options.Groupings = true, check.Groupings()
	return &checkReader{a, options, flags.incomplete, flags.anyRank}, nil
}

// one reads a trace, or a JSON report.
func (r *checkReader) one(path string) (*check.Trace, error) {
	if isJSONFile(path) {
		if o := &r.options; !o.At.IsZero() || !o.From.IsZero() || !o.To.IsZero() {
			return nil, fmt.Errorf("%s: a JSON report is about the part of the run that it was made for; leave out --at, --from and --to",
				path)
		}
		text, err := safefile.Read(path, maxReport)
		if err != nil {
			return nil, err
		}
		return check.ParseReport(path, text)
	}
	summary, err := tracefile.Summarize(&r.app.Console, path, r.options)
	if err != nil {
		return nil, err
	}
	if summary.FromProfile {
		return check.NewTrace(path, summary, nil), nil
	}
	again := func(asks ...func(o *analyzer.Options)) ([]*report.Summary, error) {
		questions := make([]analyzer.Options, len(asks))
		for i, ask := range asks {
			questions[i] = r.options
			ask(&questions[i])
		}
		return tracefile.SummarizeEach(r.app.Quieted(), path, questions)
	}
	return check.NewTrace(path, summary, again), nil
}

// isJSONFile looks at the beginning of a file, which may be missing.
func isJSONFile(path string) bool {
	file, err := safefile.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	begin := make([]byte, 64)
	n, _ := io.ReadFull(file, begin)
	return check.IsJSON(begin[:n])
}

// all reads the traces that arguments name. One that cannot be read is an error: the others say nothing of it.
func (r *checkReader) all(args []string) (list []*check.Trace, err error) {
	inputs, err := tracefile.Expand(args)
	if err != nil {
		return nil, err
	}
	var problems []error
	var seen report.Recordings
	err = tracefile.InOrder(inputs, r.one, func(in tracefile.Input, t *check.Trace, err error) error {
		switch {
		case tracefile.PassOver(&r.app.Console, in, err):
		case err != nil:
			problems = append(problems, err)
		case tracefile.Again(&r.app.Console, &seen, in.Path, &t.Summary.Process):
		default:
			list = append(list, t)
		}
		return nil
	})
	if len(list) == 0 && problems == nil && err == nil {
		err = tracefile.NoTraceError(args[0])
	}
	return list, errors.Join(append(problems, err)...)
}

// baseline reads a baseline, or those of a folder.
func (r *checkReader) baseline(path string, gates []check.Gate) (*check.Baseline, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%s: no such baseline; --update writes it", path)
	case err == nil && info.IsDir():
		return r.baselines(path, gates)
	}
	return r.baselineFile(path, gates)
}

// baselineFile reads a baseline: its own form, a JSON report or a trace.
func (r *checkReader) baselineFile(path string, gates []check.Gate) (*check.Baseline, error) {
	if isJSONFile(path) {
		text, err := safefile.Read(path, maxReport)
		if err != nil {
			return nil, err
		}
		return check.ParseBaseline(path, text)
	}
	t, err := r.one(path)
	if err != nil {
		return nil, err
	}
	return check.NewBaseline(path, []*check.Trace{t}, gates)
}

// baselines reads the baselines, JSON reports and traces of a folder as one baseline. Other JSON files are passed over.
func (r *checkReader) baselines(folder string, gates []check.Gate) (*check.Baseline, error) {
	inputs, err := tracefile.ExpandFolder(folder, ".json")
	if err != nil {
		return nil, err
	}
	var list []*check.Baseline
	var problems []error
	err = tracefile.InOrder(inputs, func(path string) (*check.Baseline, error) { return r.baselineFile(path, gates) },
		func(in tracefile.Input, b *check.Baseline, err error) error {
			switch {
			case tracefile.PassOver(&r.app.Console, in, err):
			case errors.Is(err, check.ErrNotBaseline):
				r.app.Log.Info().Msgf("%v; it is passed over", err)
			case err != nil:
				problems = append(problems, err)
			default:
				list = append(list, b)
			}
			return nil
		})
	if err := errors.Join(append(problems, err)...); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: no baseline and no trace in this folder", folder)
	}
	return check.JoinBaselines(folder, list)
}

// outcome holds a run's gates against traces.
func (r *checkReader) outcome(run check.Run, args []string, update bool) (*check.Outcome, error) {
	plan := check.Plan{Gates: run.Gates, Incomplete: r.incomplete, AnyRank: r.anyRank}
	var err error
	if info, err := os.Stat(run.Baseline); update && err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder; --update writes one file for all ranks, such as %s", run.Baseline,
			filepath.Join(run.Baseline, "baseline.json"))
	}
	if run.Baseline != "" && !update {
		plan.Gates = append(plan.Gates, run.Compare...)
		if plan.Baseline, err = r.baseline(run.Baseline, slices.Concat(run.Gates, run.Compare)); err != nil {
			return nil, err
		}
	}
	traces, err := r.all(args)
	if err != nil {
		return nil, err
	}
	outcome := plan.Check(traces)
	if update && outcome.Status != check.Broken { // a gate that fails is no reason to keep an old baseline
		return outcome, r.update(&run, traces)
	}
	return outcome, nil
}

// update writes a baseline, unless the traces are not complete.
func (r *checkReader) update(run *check.Run, traces []*check.Trace) error {
	path := run.Baseline
	for _, t := range traces {
		if why := t.Incomplete(); why != "" && !r.incomplete {
			return fmt.Errorf("%s: the trace is not complete, so it is no baseline: %s", t.Path, why)
		}
	}
	base, err := check.NewBaseline(path, traces, slices.Concat(run.Gates, run.Compare))
	if err != nil {
		return err
	}
	text, err := base.JSON()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, t := range traces {
		if err := tracefile.RefuseSame(t.Path, path); err != nil {
			return err
		}
	}
	err = r.app.WriteTo(path, true, sanitize.JSON, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err == nil && !r.app.Quiet {
		r.app.Say("%s: baseline of %s written, peak %s", path, layout.Plural(uint64(len(traces)), "trace", "traces"),
			layout.Bytes(traces[0].Summary.Main().PeakBytes))
	}
	return err
}

// noise shows which gates are narrower than the difference of several runs.
func (c checker) noise(reader *checkReader, run check.Run, args []string, style layout.Options) error {
	flags := c.flags
	traces, err := reader.all(args)
	if err != nil {
		return err
	}
	noise, err := check.Learn(append(run.Gates, run.Compare...), traces, flags.incomplete)
	if err != nil {
		return err
	}
	err = c.WriteTo("", false, flags.Form(style), func(w io.Writer) error {
		if flags.JSON {
			return render.WriteJSON(w, noise)
		}
		return check.NoiseText(w, noise, style)
	})
	if err == nil && noise.TooTight() > 0 {
		return errOverBudget
	}
	return err
}

// newCheckAfterRun reads the budget before the program starts; nil without one.
func newCheckAfterRun(o runOptions) (*checkFlags, error) {
	if o.check == "" {
		if o.checkRun != "" {
			return nil, cli.UsageErrorf("--check-run requires --check")
		}
		return nil, nil
	}
	flags := &checkFlags{budget: o.check, run: o.checkRun, runFlag: "--check-run"}
	flags.Color = "auto"
	_, _, err := flags.gates()
	return flags, err
}

// checkAfterRun holds the traces of a program against a budget. Standard output is the program's.
func (a *app) checkAfterRun(flags *checkFlags, traces []string) error {
	beside := *a
	beside.Stdout = a.Stderr
	if len(traces) == 0 {
		return fmt.Errorf("no trace was written, so %s could not be checked", flags.budget)
	}
	for i := range traces {
		traces[i] = cli.ShortPath(traces[i])
	}
	return checker{&beside, flags}.check(traces)
}

// Variables that GitHub's runner sets.
const (
	githubActions   = "GITHUB_ACTIONS"
	githubSummary   = "GITHUB_STEP_SUMMARY"
	githubWorkspace = "GITHUB_WORKSPACE"
)

// sourceRoot is the folder from which annotations name source files.
func sourceRoot() string {
	if root := os.Getenv(githubWorkspace); root != "" {
		return root
	}
	root, err := os.Getwd()
	if err != nil {
		return ""
	}
	return root
}

// toGitHub writes annotations and the job's summary where GitHub's runner started this.
func (c checker) toGitHub(o *check.Outcome, root string) error {
	if os.Getenv(githubActions) != "true" {
		return nil
	}
	err := check.Annotations(sanitize.NewWriter(c.Stderr, sanitize.Lines), o, root)
	if path := os.Getenv(githubSummary); path != "" {
		err = errors.Join(err, appendSummary(path, o))
	}
	return err
}

// appendSummary adds to the file that the runner shows: other steps write to it, too.
func appendSummary(path string, o *check.Outcome) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("write the job's summary: %w", err)
	}
	return errors.Join(check.Markdown(file, o), file.Close())
}
