package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"memtrace/internal/cli"
	"memtrace/internal/launch"
	"memtrace/internal/render/layout"
	"memtrace/internal/spool"
)

type runOptions struct {
	job          string
	output       string
	force        bool
	spoolDir     string
	spoolMax     cli.Size
	hardMax      cli.Size
	traceMax     cli.Size
	overflow     string
	guestMemory  string
	stacks       string
	report       string
	reportOutput string
	embedSymbols bool
	profile      bool
	check        string
	checkRun     string
	nullGPU      launch.NullGPU
}

const runLong = `Run a program with libmemtrace.so preloaded. Every process of it that uses CUDA writes
a trace. -o names it, with these placeholders:

  %p         process id
  %e         program name
  %h         host name
  %t         start in UTC
  %r         rank
  %n         the lowest number for which the file does not exist
  %q{VAR}    environment variable
  %%         a percent sign

The program's standard streams, signals and exit status are left alone.`

const runDetails = `The exit status is the program's, 128 plus the number of a signal that ended it, 127 if
there is no such program, 126 if it cannot be executed, and 2 if memtrace itself could
not start it. Flags override the variables of the environment.

--null-gpu needs no GPU, and hides those of the machine: the CUDA libraries that the
program loads are those of the null GPU, which counts memory and runs no kernels. Sizes
are true, results and times mean nothing. It has one device of 80 GiB, or as many and as
large ones as are given: 2, 24GiB or 2x24GiB. All processes of the run share them.

--check holds the traces against a budget afterwards. If the program succeeds, the exit
status is that of 'memtrace check': 1 over the budget, 2 if it could not be checked.

The library is the one that MEMTRACE_LIBRARY names, or the first that is found beside
the command, in ../lib/memtrace and in ../lib.`

const runExample = `  memtrace run -- python3 train.py
  memtrace run --job traces -- torchrun --nproc-per-node 8 train.py
  memtrace run --report text -- ./solver --size 4096
  memtrace run --check memtrace.toml -- python3 train.py
  memtrace run --null-gpu=24GiB -- pytest --memtrace`

func runCommand(a *app) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:         "run [flags] -- PROGRAM [ARGUMENT...]",
		Short:       "Run a program and record its GPU memory",
		Long:        runLong,
		Annotations: map[string]string{cli.DetailsFlag: runDetails},
		Example:     runExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.UsageErrorf("name a program to run: memtrace run -- PROGRAM [ARGUMENT...]")
			}
			if o.nullGPU != (launch.NullGPU{}) && new(launch.NullGPU).Set(args[0]) == nil {
				return cli.UsageErrorf("--null-gpu has its value behind an equals sign: --null-gpu=%s", args[0])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.run(o, args) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	o.define(cmd)
	return cmd
}

// define adds the flags of memtrace run.
func (o *runOptions) define(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SetInterspersed(false) // flags after the program's name are the program's
	f.StringVarP(&o.output, "output", "o", "", "name of the traces, a `PATTERN` (default "+launch.DefaultOutput+")")
	f.StringVar(&o.job, "job", "", "collect the ranks of a job in this `DIR`: -o DIR/"+jobPattern+" with --profile")
	f.BoolVarP(&o.force, "force", "f", false, "replace traces that exist")
	f.StringVar(&o.spoolDir, "spool-dir", "",
		"keep the working files in this `DIR` instead of beside the traces")
	f.Var(&o.spoolMax, "spool-max", "usual size of a process's working file, such as 256M (default 64M)")
	f.Var(&o.hardMax, "spool-hard-max",
		"largest `SIZE` of that file, while events come faster than they are written "+
			"(default 1G, or a tenth of the free disk space)")
	f.Var(&o.traceMax, "trace-max",
		"compact a trace before it exceeds this `SIZE`, such as 2G (default no limit)")
	f.StringVar(&o.overflow, "overflow", "",
		"when --spool-hard-max is reached: `MODE` wait (a bounded time, the default) or drop (records)")
	f.StringVar(&o.stacks, "stacks", "",
		"`DEPTH` of call stacks: native:N, python:N, frees (joined by commas), full, or none; none has no lines or "+
			"functions, and modules only of parameters (default native:64,python:128)")
	f.StringVar(&o.report, "report", "", "print a report on stderr afterwards, in this `FORMAT`: text or json")
	f.StringVar(&o.reportOutput, "report-output", "", "write that report to this `FILE` instead")
	f.BoolVar(&o.embedSymbols, "embed-symbols", false,
		"write the names of functions into the traces, for other machines")
	f.BoolVar(&o.profile, "profile", switchedOn(os.Getenv("MEMTRACE_PROFILE")),
		"write the profile of each trace beside it, for comparing many ranks")
	f.StringVar(&o.check, "check", "", "check the traces against the budget in this `FILE` afterwards")
	f.StringVar(&o.checkRun, "check-run", "", "take the gates of [run.`NAME`] in that file")
	f.Var(&o.nullGPU, "null-gpu", "run without a GPU, on this many devices of this size: 2, 24GiB or 2x24GiB ("+
		launch.DefaultNullGPU+" without a value); sizes are true, results mean nothing")
	f.Lookup("null-gpu").NoOptDefVal = launch.DefaultNullGPU
	f.StringVar(&o.guestMemory, "guest-memory", "",
		"host memory, of this `SIZE`, that the recorder may use to know what is live when memory runs out, for the text "+
			"beside the trace; 0: no text (default 256M)")
	cli.GroupFlags(cmd, cli.Recording, "stacks", "embed-symbols", "null-gpu", "guest-memory")
	cli.GroupFlags(cmd, cli.Output, "output", "job", "force", "trace-max", "spool-dir", "spool-max", "spool-hard-max",
		"overflow")
	cli.GroupFlags(cmd, cli.Afterwards, "report", "report-output", "check", "check-run", "profile")
	cli.CompleteFlag(cmd, "report", cli.CompleteValues("text", "json"))
	cli.CompleteFlag(cmd, "stacks", cli.CompleteValues("full", "none", "frees", "native:", "python:"))
}

// jobPattern names the traces of a job, of whatever run and machine, so that all lie in one folder.
const jobPattern = "rank%r.%h.%p.bin"

// withJob returns the options with what --job stands for.
func withJob(o runOptions) (runOptions, error) {
	if o.job == "" {
		return o, nil
	}
	if o.output != "" {
		return o, cli.UsageErrorf("--job names the traces: leave out -o")
	}
	o.output, o.profile = filepath.Join(strings.ReplaceAll(o.job, "%", "%%"), jobPattern), true
	return o, nil
}

func (a *app) run(o runOptions, argv []string) error {
	o, err := withJob(o)
	if err != nil {
		return err
	}
	settings, err := a.guestSettings(o)
	if err != nil {
		return err
	}
	checked, err := newCheckAfterRun(o)
	if err != nil {
		return err
	}
	list, err := launch.NewManifest()
	if err != nil {
		return err
	}
	defer list.Remove()
	settings.RunDir = list.Dir
	outer := os.Getenv(launch.ManifestEnv)
	a.Log.Debug().Str("library", settings.Library).Str("output", settings.Output).Msg("starting the program")
	env, err := a.nullGPU(o.nullGPU, list, os.Environ())
	if err != nil {
		return err
	}
	ended, err := launch.Run(argv, launch.AllowSanitizer(settings.Apply(env), argv[0]))
	if err != nil {
		return err
	}
	if outer != "" {
		if err := list.PassOn(outer); err != nil {
			a.Log.Warn().Msg(err.Error())
		}
	}
	traces := a.finishedTraces(list, ended)
	if o.embedSymbols {
		embedAfterRun(a, traces)
	}
	var profiles map[string]string
	if o.profile {
		profiles = a.profilesAfterRun(traces, o.force)
	}
	if err := a.afterRun(o, argv[0], ended, traces, profiles); err != nil {
		a.Complain("memtrace run", err) // the status stays the program's
	}
	if checked != nil && ended.Status == 0 {
		return a.checkAfterRun(checked, traces)
	}
	return &launch.StatusError{Status: ended.Status}
}

// switchedOn reports whether a variable that is a switch is on, as the library reads it.
func switchedOn(value string) bool {
	return !slices.Contains([]string{"", "0", "false", "no", "off"}, value)
}

// nullGPU returns the environment with the null GPU in it, if the run is to have one, and says so.
func (a *app) nullGPU(n launch.NullGPU, list *launch.Manifest, env []string) ([]string, error) {
	if n == (launch.NullGPU{}) {
		return env, nil
	}
	env, err := n.Apply(env, list.NullAccount())
	if err == nil && !a.Quiet {
		a.Say("the null GPU, %d of %s: sizes are true, but kernels do not run, and results and times mean nothing",
			n.Devices, layout.Bytes(uint64(n.Bytes)))
	}
	return env, err
}

func (a *app) guestSettings(o runOptions) (launch.Settings, error) {
	g := launch.Settings{Force: o.force, SpoolMax: int64(o.spoolMax), HardMax: int64(o.hardMax),
		TraceMax: int64(o.traceMax), Overflow: o.overflow, GuestMemory: o.guestMemory, Log: a.guestLogLevel(),
		Stacks: o.stacks}
	if o.report != "" && o.report != "text" && o.report != "json" {
		return g, cli.UsageErrorf("--report %s: choose text or json", o.report)
	}
	if o.overflow != "" && o.overflow != "wait" && o.overflow != "drop" {
		return g, cli.UsageErrorf("--overflow %s: choose wait or drop", o.overflow)
	}
	if o.guestMemory != "" && o.guestMemory != "0" {
		size, err := cli.ParseSize(o.guestMemory)
		if err != nil {
			return g, cli.UsageErrorf("--guest-memory %s: give a size such as 64M, or 0", o.guestMemory)
		}
		g.GuestMemory = strconv.FormatInt(size, 10)
	}
	if err := launch.CheckStacks(o.stacks); err != nil {
		return g, err
	}
	if o.reportOutput != "" && o.report == "" {
		return g, cli.UsageErrorf("--report-output needs --report text or --report json")
	}
	var err error
	if o.output != "" {
		if g.Output, err = launch.OutputPattern(o.output, o.force); err != nil {
			return g, err
		}
	}
	if o.spoolDir != "" {
		if g.SpoolDir, err = filepath.Abs(o.spoolDir); err != nil {
			return g, err
		}
	}
	g.Library, err = launch.FindLibrary()
	return g, err
}

// guestLogLevel is the recorder's log level on the program's stderr; "" keeps that of the user's environment.
func (a *app) guestLogLevel() string {
	switch {
	case a.Quiet:
		return "off"
	case a.Verbose == 1:
		return "info"
	case a.Verbose > 1:
		return "debug"
	}
	return ""
}

// unfinished describes what became of records that could not be moved into their trace.
func unfinished(path string, err error) string {
	if errors.Is(err, unix.ENOSPC) {
		return fmt.Sprintf("no space is left for the rest of %s, which stays in %s%s; memtrace report reads both", path,
			filepath.Base(path), spool.Extension)
	}
	return fmt.Sprintf("the last records of %s stay in %s%s: %v", path, filepath.Base(path), spool.Extension, err)
}

// finishedTraces returns the traces that the program's processes wrote. What a killed process left in its spool is
// moved into its trace.
func (a *app) finishedTraces(list *launch.Manifest, ended launch.Outcome) []string {
	paths, problems := list.Traces()
	for _, err := range problems {
		a.Log.Warn().Msg(err.Error())
	}
	for _, path := range paths {
		switch err := spool.FinalizeEnded(path, ended.PID, ended.SignalName()); {
		case errors.Is(err, spool.ErrRunning):
			a.Log.Info().Msgf("%s: its process outlives the program and goes on recording", path)
		case err != nil:
			a.Log.Warn().Msg(unfinished(path, err))
		}
	}
	return paths
}
