package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/render/layout"
	"memtrace/internal/runprofile"
	"memtrace/internal/spool"
	"memtrace/internal/tracefile"
)

const profileLong = `Write the profile of a trace: its report in some kilobytes, for runs of so many ranks
that their traces are too much to keep or to copy. report, diff and check read profiles
like traces, and a folder of them as the ranks of one run.`

const profileDetails = `A profile has the report, what was live at the peak, after the last allocation, at the
end, at marks and when memory ran out, by category, module and call stack, and a table
of the iterations. It has no events: what only they can answer, such as a part of the
run, filters, other rules and pages, is refused with the reason. Of more than 64
iterations it has some one by one. docs/profiles.md describes the file.`

const profileExample = `  memtrace profile memtrace.python3.4711.bin
  memtrace profile traces/
  memtrace report traces/*.mtp`

func profileCommand(a *app) *cobra.Command {
	var output string
	var force bool
	cmd := &cobra.Command{
		Use:               "profile [flags] FILE|DIR...",
		Short:             "Write the report of a trace as a file of some kilobytes",
		Long:              profileLong,
		Annotations:       map[string]string{cli.DetailsFlag: profileDetails},
		Example:           profileExample,
		Args:              cli.SomeTraces,
		ValidArgsFunction: cli.CompleteTraces,
		RunE:              func(_ *cobra.Command, args []string) error { return a.profile(args, output, force) },
	}
	f := cmd.Flags()
	f.StringVarP(&output, "output", "o", "", "write to this `FILE` instead of one beside the trace; -: standard output")
	f.BoolVarP(&force, "force", "f", false, "replace that file if it exists")
	return cmd
}

func (a *app) profile(args []string, output string, force bool) error {
	inputs, err := tracefile.Expand(args)
	if err != nil {
		return err
	}
	if output != "" && len(inputs) > 1 {
		return cli.UsageErrorf("-o %s: %d traces have a profile each; leave out -o", output, len(inputs))
	}
	var problems []error
	written := 0
	for _, in := range inputs {
		to := output
		if to == "" {
			to = profileOf(in.Path)
		}
		size, err := a.writeProfile(in.Path, to, force)
		switch {
		case err == nil:
			written++
			if to != "-" && !a.Quiet {
				a.Say("%s: %s", to, layout.Bytes(size))
			}
		case !tracefile.PassOver(&a.Console, in, err):
			problems = append(problems, err)
		}
	}
	if written == 0 && problems == nil {
		return tracefile.NoTraceError(args[0])
	}
	return errors.Join(problems...)
}

// profilesAfterRun writes the profiles of a run's traces and returns where, by trace. Its failure is not the program's.
func (a *app) profilesAfterRun(traces []string, force bool) map[string]string {
	made, total := make(map[string]string), uint64(0)
	for _, path := range traces {
		to := profileOf(path)
		size, err := a.writeProfile(cli.ShortPath(path), cli.ShortPath(to), force)
		if err != nil {
			a.Log.Warn().Msg("no profile: " + err.Error())
			continue
		}
		made[path], total = to, total+size
	}
	if len(made) > 0 && !a.Quiet {
		a.Say("wrote %s beside the traces, %s", report.Count(uint64(len(made)), "profile", "profiles"),
			layout.Bytes(total))
	}
	return made
}

// profileOf is where the profile of a trace is written.
func profileOf(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, spool.Extension), tracefile.Suffix) + runprofile.Suffix
}

// writeProfile writes the profile of a trace and returns how many bytes it has.
func (a *app) writeProfile(path, to string, force bool) (bytes uint64, err error) {
	if err := tracefile.RefuseSame(path, to); err != nil {
		return 0, err
	}
	made, err := tracefile.MakeProfile(&a.Console, path, cli.OwnFlags(nil))
	if err != nil {
		return 0, err
	}
	var size counter
	if err := a.WriteOwn(to, force, func(w io.Writer) error {
		return made.Write(io.MultiWriter(w, &size))
	}); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	s := made.Head.Summary
	if s.Process.Ended == report.EndedRunning {
		a.Log.Warn().Msgf("%s: the program still runs, so its profile is a snapshot of the first %s; write it again with -f",
			path, layout.Duration(s.Process.DurationNS))
	}
	return uint64(size), nil
}

// counter counts what is written to it.
type counter uint64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
