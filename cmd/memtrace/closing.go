package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/launch"
	"memtrace/internal/render"
	"memtrace/internal/tracefile"
)

// afterRun prints the requested report, and one line with what was recorded and the next command.
func (a *app) afterRun(o runOptions, program string, ended launch.Outcome, traces []string,
	profiles map[string]string) error {
	if o.report == "" && a.Quiet {
		return nil
	}
	var summaries []readSummary
	for _, path := range traces {
		from := path
		if made := profiles[path]; made != "" && o.report == "" {
			from = made // what the closing lines need is there, and need not be replayed again
		}
		path = cli.ShortPath(path)
		options, err := closingOptions(from, o.report == "text")
		if err != nil {
			return err
		}
		summary, err := tracefile.Summarize(&a.Console, cli.ShortPath(from), options)
		if err != nil {
			a.Log.Error().Msg(err.Error())
			continue
		}
		summaries = append(summaries, readSummary{path, summary})
	}
	var err error
	if o.report != "" && len(summaries) > 0 {
		err = a.reportAfterRun(o, summaries)
	}
	if !a.Quiet {
		for i, line := range closingLines(program, o.output, summaries, len(traces)) {
			if i == 0 {
				line = after(describeSignal(program, ended), line)
			}
			a.Say("%s", line)
		}
	}
	return err
}

// quickBytes is the size of a trace from which on the closing line omits what needs a second pass.
const quickBytes = 64 << 20

// closingOptions are the options for the closing line and, if requested, the report.
func closingOptions(path string, report bool) (options analyzer.Options, err error) {
	if info, err := os.Stat(path); !report && (err != nil || info.Size() > quickBytes) {
		return options, nil
	}
	options.Sites = true
	options.Symbols, options.Own = cli.SymbolOptions(), cli.OwnFlags(nil)
	return options, (&cli.ViewFlags{}).RequestTraining(&cli.QueryFlags{}, &options)
}

// reportAfterRun writes to stderr unless a file is named: standard output is the program's.
func (a *app) reportAfterRun(o runOptions, summaries []readSummary) error {
	beside := *a
	beside.Stdout = a.Stderr
	flags := cli.QueryFlags{Rows: cli.DefaultRows, Color: "auto", Output: o.reportOutput, Force: o.force,
		JSON: o.report == "json"}
	style, err := flags.Style(flags.OutputFile(&beside.Console))
	if err != nil {
		return err
	}
	return beside.WriteTo(flags.Output, flags.Force, flags.Form(style), func(w io.Writer) error {
		show := func(w io.Writer, r readSummary) error { return renderSummary(w, r, flags.JSON, style) }
		return tracefile.Shown[readSummary]{JSON: flags.JSON, Show: show}.Values(w, summaries)
	})
}

// describeSignal describes a signal, since the shell does not: it only sees memtrace's exit status.
func describeSignal(program string, ended launch.Outcome) string {
	if ended.Signal == 0 {
		return ""
	}
	name := unix.SignalName(ended.Signal)
	if name == "" {
		name = fmt.Sprintf("signal %d", ended.Signal)
	}
	return fmt.Sprintf("%s was ended by %s", filepath.Base(program), name)
}

// after joins two statements, of which the second may be a sentence of its own.
func after(first, second string) string {
	switch {
	case first == "":
		return second
	case second != "" && unicode.IsUpper([]rune(second)[0]):
		return first + ". " + second
	}
	return first + "; " + second
}

// closingLines summarizes the run, one string a line. wrote counts the traces, of which summaries are those that could
// be read.
func closingLines(program, output string, summaries []readSummary, wrote int) []string {
	switch {
	case wrote == 0 && missingFolder(output) != "":
		return []string{"no trace was written: " + missingFolder(output)}
	case wrote == 0:
		return []string{"no trace was written: no CUDA memory call was recorded" + launch.Diagnose(program)}
	case len(summaries) == 0:
		return []string{"no trace could be read"}
	}
	if ranks := ranksOf(summaries); ranks != nil {
		return rankLines(ranks, summaries)
	}
	top := worst(summaries)
	next := "next: memtrace report " + cli.ShellWord(top.path)
	if wrote > 1 {
		next = fmt.Sprintf("%s (the highest of %d traces)", next, wrote)
	}
	if withoutCalls(top.summary) {
		if len(top.summary.Health.Unseen) > 0 {
			return []string{"The program bypassed the recorder, so no memory call was recorded; " + next}
		}
		return []string{"CUDA was used but no CUDA memory call was made; " + next}
	}
	sentences := render.Verdict(top.summary)
	if advice := toTry(top.summary); advice != "" {
		return []string{sentences[0], "to try: " + advice, beside(top) + next}
	}
	return []string{strings.Join(sentences, " "), beside(top) + next}
}

// beside names the text about running out of memory before the next command, if there is one.
func beside(r readSummary) string {
	if path := sidecar(r); path != "" {
		return "more about that moment: " + cli.ShellWord(path) + "; "
	}
	return ""
}

// toTry is the first advice where memory ran out, "" where it did not or nothing is known to try.
func toTry(s *report.Summary) string {
	if e := s.FirstFailure(); e != nil && len(e.Advice) > 0 && e.Advice[0].Rule != "null-gpu" {
		return e.Advice[0].Text
	}
	return ""
}

// missingFolder returns why no trace can be created at the output pattern, or "" if it can or the pattern leaves the
// folder open.
func missingFolder(pattern string) string {
	if pattern == "" {
		pattern = os.Getenv("MEMTRACE_OUTPUT")
	}
	folder := filepath.Dir(pattern)
	if strings.Contains(folder, "%") {
		return ""
	}
	if err := unix.Access(folder, unix.W_OK|unix.X_OK); err != nil {
		if here, err := filepath.Abs(folder); err == nil {
			folder = here
		}
		return fmt.Sprintf("%s cannot be written to (%v); name a file elsewhere: memtrace run -o /tmp/trace.bin -- ...",
			cli.ShellWord(folder), err)
	}
	return ""
}

// worst returns the first trace in which memory ran out, else the one with the highest peak.
func worst(summaries []readSummary) readSummary {
	top := summaries[0]
	for _, r := range summaries[1:] {
		out, was := r.summary.OOM.Count > 0, top.summary.OOM.Count > 0
		if out && !was || out == was && r.summary.Main().PeakBytes > top.summary.Main().PeakBytes {
			top = r
		}
	}
	return top
}

// sidecar returns the path of the text that the recorder wrote when memory ran out, "" without one.
func sidecar(r readSummary) string {
	for _, e := range r.summary.OOM.Events {
		if e.Sidecar != "" && e.Outcome == report.OOMFailed {
			return filepath.Join(filepath.Dir(r.path), e.Sidecar)
		}
	}
	return ""
}

func withoutCalls(s *report.Summary) bool {
	for _, level := range s.Other {
		if !level.Empty() {
			return false
		}
	}
	return s.Driver.Empty() && s.Framework.Empty()
}
