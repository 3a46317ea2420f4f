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
	"memtrace/analyzer/render"
	"memtrace/analyzer/report"
	"memtrace/internal/console"
	"memtrace/internal/launch"
	"memtrace/internal/questions"
	"memtrace/internal/tracefile"
)

// afterRun shows the report that was asked for and says in one line what was recorded and what to type next.
func (a *app) afterRun(o runOptions, program string, ended launch.Outcome, traces []string) error {
	if o.report == "" && a.Quiet {
		return nil
	}
	var summaries []readSummary
	for _, path := range traces {
		path = console.ShortPath(path)
		options, err := closingOptions(path, o.report == "text")
		if err != nil {
			return err
		}
		summary, err := tracefile.Summarize(&a.Console, path, options)
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
		for i, line := range closingWords(program, o.output, summaries, len(traces)) {
			if i == 0 {
				line = after(endedWords(program, ended), line)
			}
			a.Say("%s", line)
		}
	}
	return err
}

// quickBytes is the size of a trace from which on the closing line does without what takes a second look at it.
const quickBytes = 64 << 20

// closingOptions is what is counted for the closing line and, if that was asked for, the report.
func closingOptions(path string, report bool) (options analyzer.Options, err error) {
	if info, err := os.Stat(path); !report && (err != nil || info.Size() > quickBytes) {
		return options, nil
	}
	options.Sites = true
	options.Symbols, options.Own = questions.Symbols(), questions.Own(nil)
	return options, (&questions.ViewFlags{}).AskForTraining(&questions.Flags{}, &options)
}

// reportAfterRun writes to stderr unless a file is named: standard output is the program's.
func (a *app) reportAfterRun(o runOptions, summaries []readSummary) error {
	beside := *a
	beside.Stdout = a.Stderr
	flags := questions.Flags{Rows: questions.DefaultRows, Color: "auto", Output: o.reportOutput, Force: o.force,
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

// endedWords tells of a signal, since the shell does not: it only sees memtrace end with a status.
func endedWords(program string, ended launch.Outcome) string {
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

// closingWords sums the run up, line by line. wrote counts the traces, of which summaries are those that could be read.
func closingWords(program, output string, summaries []readSummary, wrote int) []string {
	switch {
	case wrote == 0 && noFolder(output) != "":
		return []string{"no trace was written: " + noFolder(output)}
	case wrote == 0:
		return []string{"no trace was written: no CUDA memory call was recorded" + launch.WhyNothing(program)}
	case len(summaries) == 0:
		return []string{"no trace could be read"}
	}
	top := worst(summaries)
	next := "next: memtrace report " + console.ShellWord(top.path)
	if wrote > 1 {
		next = fmt.Sprintf("%s (the highest of %d traces)", next, wrote)
	}
	if madeNoCall(top.summary) {
		if len(top.summary.Health.Unseen) > 0 {
			return []string{"The program bypassed the recorder, so no memory call was recorded; " + next}
		}
		return []string{"CUDA was used but no CUDA memory call was made; " + next}
	}
	if path := sidecar(top); path != "" {
		next = "everything about that moment: " + console.ShellWord(path) + "; " + next
	}
	return []string{strings.Join(render.Verdict(top.summary), " "), next}
}

// noFolder says why no trace can be created where the output pattern points, "" if it can or if the pattern leaves the
// folder open.
func noFolder(pattern string) string {
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
			console.ShellWord(folder), err)
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

func madeNoCall(s *report.Summary) bool {
	for _, level := range s.Other {
		if !level.Empty() {
			return false
		}
	}
	return s.Driver.Empty() && s.Framework.Empty()
}
