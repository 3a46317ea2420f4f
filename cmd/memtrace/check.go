package main

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/internal/check"
	"memtrace/internal/cli"
	"memtrace/internal/launch"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

const checkLong = `Check traces against a memory budget: limits, conditions, and a baseline. A failure
names who grew, with module and source line. Without a gate, or with --run, memtrace.toml in
the current folder is the budget.`

const checkDetails = `Gates compare allocated and requested bytes, never reserved ones, which may
differ between runs that do the same. An owner counts at its own highest, whatever the
total was then; with --at peak, at the peak of all.

--max takes these, with a limit such as 10GiB:

  peak, requested        allocated bytes at their peak, and what was requested of them
  tag:NAME               a tag and those below it; * stands for any text in a NAME
  category:NAME          a purpose, such as 'Optimizer state' or its beginning
  module:NAME            a module and those below it
  site:PLACE             a place in the program, such as train.py:97
  operator:NAME          an operator, such as aten::mm
  library:NAME           CUDA memory of a library outside the framework's allocator
  driver                 CUDA memory, of programs without a caching allocator
  pinned, managed        host and managed memory at their peak
  growth                 with 1MiB/step, 1MiB/s or 1MiB: growth up to the end of the run
  rank-spread            with 5%: the highest peak of the ranks above the lowest

--assert takes these:

  no-driver-alloc-after=MOMENT     the driver grants nothing from there on
  released-after=MOMENT>=PERCENT   so much of what is live then is freed afterwards
  only-library=NAMES               no other library allocates CUDA memory
  no-finding=NAMES                 findings by name, or by severity and worse

What is freed is counted up to the next mark, or else the last allocation, or in
MOMENT..MOMENT>=PERCENT up to the second one.

--baseline compares with the file that --update writes, with another trace, or with a
folder of either, each rank with its own. A baseline of another rank is refused; with
--any-rank, one of a single process is compared. --noise takes the traces of several runs
that do the same, and shows which gates are too tight.
A trace that is not complete, or of a program that failed, never passes.

--at checks what was live at a moment instead of the peaks, --from and --to the peaks of
a part of the run. A budget may have them, too.

On GitHub Actions, failures also become annotations and a part of the job's summary.

` + cli.FilterHelp

const checkExample = `  memtrace check --max peak=10GiB --max category:optimizer=4GiB memtrace.python3.4711.bin
  memtrace check --assert no-driver-alloc-after=step:3 memtrace.python3.4711.bin
  memtrace check --from step:3 --max peak=10GiB memtrace.python3.4711.bin
  memtrace check --baseline base.json --update memtrace.python3.4711.bin
  memtrace check --baseline base.json --tolerance 2% memtrace.python3.4711.bin
  memtrace check --baseline main/ --max rank-spread=5% traces/
  memtrace check --budget memtrace.toml --run train --junit memory.xml traces/
  memtrace check --noise --baseline base.json runs/`

// checkFlags are those of check beside the shared ones.
type checkFlags struct {
	cli.QueryFlags
	max, assert, compare   []string
	baseline, tolerance    string
	budget, run            string
	runFlag                string // that names the run; "": --run
	update, noise          bool
	incomplete, anyRank    bool
	junit, markdown, sarif string
}

func checkCommand(a *app) *cobra.Command {
	var flags checkFlags
	cmd := &cobra.Command{
		Use:               "check [flags] FILE|DIR...",
		Short:             "Fail where memory is over a budget, or grew",
		Long:              checkLong,
		Annotations:       map[string]string{cli.DetailsFlag: checkDetails},
		Example:           checkExample,
		Args:              cli.SomeTraces,
		ValidArgsFunction: cli.CompleteTraces,
		RunE:              func(_ *cobra.Command, args []string) error { return checker{a, &flags}.check(args) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&flags.max, "max", nil,
		"fail if a gate is above its limit, `GATE=LIMIT`, such as peak=10GiB (repeatable); gates: "+
			strings.Join(check.SubjectNames(), " ")+"; 'memtrace help check' explains them")
	f.StringArrayVar(&flags.assert, "assert", nil,
		"fail unless this `CONDITION` holds (repeatable): "+strings.Join(check.AssertNames(), " "))
	f.StringVar(&flags.baseline, "baseline", "",
		"compare with this `FILE|DIR`: a baseline, a trace, a JSON report, or a folder of these, rank by rank")
	f.StringArrayVar(&flags.compare, "compare", nil,
		"compare this `GATE` with the baseline (default peak and pinned; repeatable)")
	f.StringVar(&flags.tolerance, "tolerance", "",
		"allow this `PERCENT` more than in the baseline (default 2%)")
	f.BoolVar(&flags.anyRank, "any-rank", false, "compare with a baseline of one process whatever its rank")
	f.BoolVar(&flags.update, "update", false, "write the baseline instead of comparing with it")
	f.StringVar(&flags.budget, "budget", "", "take the gates from this `FILE` (default "+check.BudgetFile+
		", with --run or if no gate is given)")
	f.StringVar(&flags.run, "run", "", "take the gates of [run.`NAME`] in the budget")
	f.BoolVar(&flags.noise, "noise", false, "compare several runs, and show which gates are too tight to hold")
	f.BoolVar(&flags.incomplete, "allow-incomplete", false,
		"also check traces that are not complete, or of programs that failed")
	f.StringVar(&flags.At, "at", "", "check what was live at this `MOMENT` instead of the peaks: peak, "+cli.MomentHelp)
	flags.Window.Define(cmd)
	flags.DefineFilters(cmd)
	flags.DefineLook(cmd)
	f.BoolVar(&flags.JSON, "json", false, "print JSON")
	f.StringVar(&flags.junit, "junit", "", "also write JUnit's XML to this `FILE`")
	f.StringVar(&flags.markdown, "markdown", "", "also write Markdown to this `FILE`; without =FILE: print it instead")
	f.Lookup("markdown").NoOptDefVal = "-"
	f.StringVar(&flags.sarif, "sarif", "", "also write SARIF to this `FILE`")
	f.BoolVarP(&flags.Force, "force", "f", false, "replace these files if they exist")
	cli.CompleteFlag(cmd, "at", cli.Moments)
	cli.GroupFlags(cmd, cli.GroupPart, "at")
	cli.GroupFlags(cmd, cli.Gates, "max", "assert", "baseline", "compare", "tolerance", "any-rank", "update",
		"budget", "run", "noise", "allow-incomplete")
	cli.GroupFlags(cmd, cli.Output, "json", "junit", "markdown", "sarif", "force")
	completeGates(cmd)
	return cmd
}

// completeGates offers the names of gates and conditions.
func completeGates(cmd *cobra.Command) {
	offers := func(names []string, behind string) cobra.CompletionFunc {
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var list []string
			for _, name := range names {
				if !strings.HasSuffix(name, ":") && !strings.HasSuffix(name, "=") {
					name += behind
				}
				list = append(list, name)
			}
			return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
	}
	cli.CompleteFlag(cmd, "max", offers(check.SubjectNames(), "="))
	cli.CompleteFlag(cmd, "compare", offers(check.SubjectNames(), ""))
	cli.CompleteFlag(cmd, "assert", offers(check.AssertNames(), ""))
	cli.CompleteFlag(cmd, "run", func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		path := c.Flag("budget").Value.String()
		if path == "" {
			path = check.BudgetFile
		}
		var names []string
		if budget, err := check.LoadBudget(path); err == nil {
			for i := range budget.Runs {
				names = append(names, budget.Runs[i].Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	cli.CompleteFlag(cmd, "tolerance", cli.CompleteValues())
}

// gates are those of the flags and of the budget. budget is the budget's path, "" without one.
func (f *checkFlags) gates() (run check.Run, budget string, err error) {
	tolerance := check.Amount{Value: 2, Unit: check.Percent}
	named := len(f.max)+len(f.assert)+len(f.compare) > 0 || f.baseline != ""
	if f.budget == "" && (f.run != "" || !named) {
		if _, err := os.Stat(check.BudgetFile); err == nil {
			f.budget = check.BudgetFile
		} else if !errors.Is(err, fs.ErrNotExist) {
			return run, "", err
		} else if f.run != "" {
			return run, "", cli.UsageErrorf(
				"--run names a run of a budget: there is no %s here; --budget names another", check.BudgetFile)
		} else if !f.noise {
			return run, "", cli.UsageErrorf("name a gate, such as --max peak=10GiB, or write a budget, %s",
				check.BudgetFile)
		}
	}
	if f.budget != "" {
		file, err := check.LoadBudget(f.budget)
		if err != nil {
			return run, "", err
		}
		picked, err := file.Pick(f.run, cmp.Or(f.runFlag, "--run"))
		if err != nil {
			return run, "", cli.UsageErrorf("%w", err)
		}
		run, tolerance = *picked, picked.Tolerance
	}
	f.takeMoments(&run)
	if f.tolerance != "" {
		if tolerance, err = check.ParseTolerance(f.tolerance); err != nil {
			return run, "", cli.UsageErrorf("--tolerance: %w", err)
		}
	}
	return run, f.budget, f.add(&run, tolerance)
}

// takeMoments makes the flags' moments those of the run, and those of a budget the flags' where there are none.
func (f *checkFlags) takeMoments(run *check.Run) {
	run.At, run.From, run.To = cmp.Or(f.At, run.At), cmp.Or(f.Window.From, run.From), cmp.Or(f.Window.To, run.To)
	f.At, f.Window.From, f.Window.To = run.At, run.From, run.To
}

// add adds the gates of the flags to those of a budget.
func (f *checkFlags) add(run *check.Run, tolerance check.Amount) error {
	for i := range run.Compare {
		run.Compare[i].Limit = tolerance
	}
	for _, text := range f.max {
		g, err := check.ParseMax(text)
		if err != nil {
			return cli.UsageErrorf("--max: %w", err)
		}
		run.Override(g)
	}
	for _, text := range f.assert {
		g, err := check.ParseAssert(text)
		if err != nil {
			return cli.UsageErrorf("--assert: %w", err)
		}
		run.Gates = append(run.Gates, g)
	}
	if f.baseline != "" {
		run.Baseline = f.baseline
	}
	compare := f.compare
	if len(compare)+len(run.Compare) == 0 && (run.Baseline != "" || f.noise && len(run.Gates) == 0) {
		compare = check.DefaultCompare(run.At != "")
	}
	for _, text := range compare {
		g, err := check.ParseCompare(text, tolerance)
		if err != nil {
			return cli.UsageErrorf("--compare: %w", err)
		}
		run.Compare = append(run.Compare, g)
	}
	switch {
	case f.update && f.noise:
		return cli.UsageErrorf("--update and --noise: choose one of them")
	case run.Baseline == "" && f.update:
		return cli.UsageErrorf("--update requires --baseline, the file to write")
	case f.noise: // compares the runs with each other
	case run.Baseline == "" && len(f.compare) > 0:
		return cli.UsageErrorf("--compare requires --baseline")
	case run.Baseline == "" && len(run.Compare) > 0:
		return cli.UsageErrorf(
			"%s: compare needs a baseline: give one with --baseline, or write baseline = \"base.json\"", f.budget)
	case run.Baseline == "" && f.tolerance != "":
		return cli.UsageErrorf("--tolerance requires --baseline")
	case run.Baseline == "" && f.anyRank:
		return cli.UsageErrorf("--any-rank requires --baseline")
	case len(run.Gates)+len(run.Compare) == 0:
		return cli.UsageErrorf("%s has no gates; name one, such as --max peak=10GiB", f.budget)
	}
	return nil
}

// exitOverBudget is the status of check, and of diff with --fail-on, where a gate fails.
const exitOverBudget = 1

// errOverBudget ends a verb that has shown what failed.
var errOverBudget = &launch.StatusError{Status: exitOverBudget}

// checker runs the verb with its flags.
type checker struct {
	*app
	flags *checkFlags
}

func (c checker) check(args []string) error {
	flags := c.flags
	run, budget, err := flags.gates()
	if err != nil {
		return err
	}
	style, err := flags.Style(c.Stdout)
	if err != nil {
		return err
	}
	reader, err := newCheckReader(c.app, flags)
	if err != nil {
		return err
	}
	if flags.noise {
		return c.noise(reader, run, args, style)
	}
	outcome, err := reader.outcome(run, args, flags.update)
	if err != nil {
		return err
	}
	if flags.update && len(outcome.Results) == 0 {
		return nil // only the baseline was written
	}
	outcome.Budget, outcome.Run = budget, run.Name
	return c.show(outcome, style)
}

// show writes the outcome in every form that was requested, and returns the verb's status as an error.
func (c checker) show(o *check.Outcome, style layout.Options) error {
	flags, root := c.flags, sourceRoot()
	form, write := flags.Form(style), func(w io.Writer) error { return check.Text(w, o, style) }
	switch {
	case flags.JSON:
		write = func(w io.Writer) error { return render.WriteJSON(w, o) }
	case flags.markdown == "-":
		form, write = sanitize.Lines, func(w io.Writer) error { return check.Markdown(w, o) }
	}
	problems := o.Problems()
	problems = append(problems, c.WriteTo("", false, form, write))
	for _, file := range []struct {
		path  string
		form  sanitize.Form
		write func(w io.Writer) error
	}{{flags.junit, sanitize.Lines, func(w io.Writer) error { return check.JUnit(w, o) }},
		{flags.markdown, sanitize.Lines, func(w io.Writer) error { return check.Markdown(w, o) }},
		{flags.sarif, sanitize.JSON, func(w io.Writer) error { return check.SARIF(w, o, root) }}} {
		if file.path != "" && file.path != "-" {
			problems = append(problems, c.WriteTo(file.path, flags.Force, file.form, file.write))
		}
	}
	problems = append(problems, c.toGitHub(o, root))
	err := errors.Join(problems...)
	if err == nil && o.Status == check.Failed {
		return errOverBudget
	}
	return err
}
