package main

import (
	"errors"
	"io"
	"path/filepath"

	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/diff"
	"memtrace/internal/page"
	"memtrace/internal/render"
	"memtrace/internal/tracefile"
	"memtrace/internal/version"
)

// oneRun reports whether files are of different ranks of one run. It reads no events.
func oneRun(inputs []tracefile.Input) bool {
	var list []diff.RankProcess
	for _, in := range inputs {
		p, err := tracefile.ProcessOf(in.Path)
		if err != nil {
			return true // the page of the ranks names it
		}
		list = append(list, diff.RankProcess{Path: in.Path, Head: &report.Head{Summary: &report.Summary{Process: *p}}})
	}
	f := diff.FaultsOf(list)
	return len(f.Unranked)+len(f.Others)+len(f.Twice) == 0
}

// htmlRanks writes the page of the ranks of a run. What cannot be read is named on it, and is an error.
func (a *app) htmlRanks(flags *htmlFlags, args []string, inputs []tracefile.Input) error {
	switch {
	case flags.full || flags.blocksGiven:
		return cli.UsageErrorf("--blocks and --full are for the page of one trace: that of many ranks holds no blocks")
	case flags.noSource:
		return cli.UsageErrorf("--no-source is for the page of one or two traces: make copies of the ranks with 'memtrace anonymize' first")
	}
	options, err := flags.filters.PageOptions(0)
	if err != nil {
		return err
	}
	reader := rankReader{app: a, options: options, kept: map[string]*report.Summary{}}
	files := reader.readAll(inputs, false)
	if len(files.processes) == 0 && files.problems == nil {
		return tracefile.NoTraceError(args[0])
	}
	ranks := reader.compare(&files)
	if ranks == nil {
		return errors.Join(files.problems...)
	}
	if len(ranks.Processes) == 1 {
		for _, sentence := range render.LeftOut(ranks) {
			a.Log.Warn().Msg(sentence)
		}
		return errors.Join(append(files.problems, a.html(flags, ranks.Processes[0].Path))...)
	}
	output := ranksPage(args)
	if flags.output != "" {
		output = flags.output
	}
	about := page.RanksOptions{Names: namesOf(args), Folder: filepath.Dir(output), Writer: "memtrace " + version.String}
	for _, problem := range files.problems {
		about.Unread = append(about.Unread, problem.Error())
	}
	for _, path := range files.passed {
		about.Unread = append(about.Unread, path+": another program's file")
	}
	err = a.writePage(flags, output, func(w io.Writer) error { return page.WriteRanks(w, ranks, about) })
	return errors.Join(append(files.problems, err)...)
}

// ranksPage is the default path of the page of ranks: beside their folder, or beside the first file.
func ranksPage(args []string) string {
	first := filepath.Clean(args[0])
	if name := filepath.Base(first); len(args) == 1 && name != "." && name != ".." && name != "/" {
		return first + pageExtension
	} else if len(args) == 1 {
		return filepath.Join(first, ranksName)
	}
	return filepath.Join(filepath.Dir(first), ranksName)
}

const ranksName = "ranks" + pageExtension
