package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/diff"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
	"memtrace/internal/runprofile"
	"memtrace/internal/tracefile"
)

// sideBySide returns the processes of one run, if the arguments are that: a folder with several traces, profiles, or
// files of which at least two are of a rank, as a shell lists those of a folder.
func sideBySide(args []string) []tracefile.Input {
	inputs, err := tracefile.Expand(args)
	if err != nil || len(inputs) < 2 || len(args) == 1 && !inputs[0].FromFolder {
		return nil
	}
	if len(args) > 1 && !ranked(inputs) && slices.ContainsFunc(inputs, func(in tracefile.Input) bool {
		return !strings.HasSuffix(in.Path, runprofile.Suffix)
	}) {
		return nil
	}
	return inputs
}

// ranked reports whether at least two files are of a rank.
func ranked(inputs []tracefile.Input) bool {
	found := 0
	for _, in := range inputs {
		if p, err := tracefile.ProcessOf(in.Path); err == nil && p.Rank != nil {
			if found++; found == 2 {
				return true
			}
		}
	}
	return false
}

// rankReader reads the processes of a run. The reports of a few are kept: they may be needed again.
type rankReader struct {
	app     *app
	options analyzer.Options
	kept    map[string]*report.Summary
	failed  string // the last file of which load could not read the report
}

// maxKept bounds the traces of which the reports are kept after the first reading.
const maxKept = 16

// load returns the report of a process.
func (r *rankReader) load(p *diff.RankProcess) (*report.Summary, error) {
	if s := r.kept[p.Path]; s != nil {
		return s, nil
	}
	s, err := tracefile.Summarize(&r.app.Console, p.Path, r.options)
	switch {
	case err != nil:
		r.failed = p.Path
	case len(r.kept) < maxKept:
		r.kept[p.Path] = s
	}
	return s, err
}

// compare compares what was read; nil if there is nothing. A profile whose head can be read and whose body cannot is
// found only where its body is needed, and is a problem like those of other files.
func (r *rankReader) compare(files *rankFiles) *diff.Ranks {
	for before := -1; len(files.processes) > 0 && len(files.processes) != before; {
		ranks, err := diff.CompareRanks(files.processes, r.load, cli.ByCategory)
		if err == nil {
			return ranks
		}
		before = len(files.processes)
		files.problems = append(files.problems, err)
		files.processes = slices.DeleteFunc(files.processes,
			func(p diff.RankProcess) bool { return p.Path == r.failed })
	}
	return nil
}

// rankFiles is what was found in the files of a run.
type rankFiles struct {
	processes []diff.RankProcess
	passed    []string // other programs' files
	problems  []error  // of those that could not be read
	damaged   tracefile.DamageList
}

// readAll reads all files. One that cannot be read does not prevent the others from being read.
func (r *rankReader) readAll(inputs []tracefile.Input, strict bool) (files rankFiles) {
	read := func(path string) (tracefile.Rank, error) {
		rank, err := tracefile.ReadRank(&r.app.Console, path, r.options)
		if len(inputs) > maxKept {
			rank.Summary = nil
		}
		return rank, err
	}
	_ = tracefile.InOrder(inputs, read, func(in tracefile.Input, rank tracefile.Rank, err error) error {
		switch {
		case tracefile.PassOver(&r.app.Console, in, err):
			files.passed = append(files.passed, in.Path)
		case err != nil:
			files.problems = append(files.problems, err)
		default:
			if strict {
				files.damaged.Add(in.Path, rank.Head.Summary)
			}
			if rank.Summary != nil {
				r.kept[in.Path] = rank.Summary
			}
			files.processes = append(files.processes, diff.RankProcess{Path: in.Path, Head: rank.Head})
		}
		return nil
	})
	return files
}

// reportRanks shows the processes of a run side by side, then the report of the one to look at, or with --all of each.
func (a *app) reportRanks(flags *cli.QueryFlags, args []string, inputs []tracefile.Input, options analyzer.Options,
	style layout.Options) error {
	reader := rankReader{app: a, options: options, kept: map[string]*report.Summary{}}
	files := reader.readAll(inputs, flags.Strict)
	if len(files.processes) == 0 && files.problems == nil {
		return tracefile.NoTraceError(args[0])
	}
	var err error
	if ranks := reader.compare(&files); ranks != nil {
		err = a.WriteTo(flags.Output, flags.Force, flags.Form(style), func(w io.Writer) error {
			return reader.show(w, ranks, namesOf(args), flags.AllProcesses, style)
		})
	}
	return files.damaged.Join(errors.Join(append(files.problems, err)...))
}

// namesOf are the arguments as a command line has them, the first and the last of many.
func namesOf(args []string) string {
	if len(args) > 2 {
		return fmt.Sprintf("%s … %s", args[0], args[len(args)-1])
	}
	return strings.Join(args, " ")
}

func (r *rankReader) show(w io.Writer, ranks *diff.Ranks, names string, all bool, style layout.Options) error {
	if len(ranks.Processes) > 1 {
		style.Path = names
		if err := render.RanksText(w, ranks, style); err != nil {
			return err
		}
	} else {
		for _, sentence := range render.LeftOut(ranks) {
			r.app.Log.Warn().Msg(sentence)
		}
	}
	for i := range ranks.Processes {
		if !all && i != ranks.Worst {
			continue
		}
		heading := ""
		switch {
		case len(ranks.Processes) == 1:
		case all:
			heading = "\n"
		default:
			heading = style.Paint(layout.Strong, render.RankHeading(ranks, i)) + "\n\n"
		}
		if _, err := io.WriteString(w, heading); err != nil {
			return err
		}
		p := &ranks.Processes[i]
		s, err := r.load(p)
		if err != nil {
			return err
		}
		style.Path = p.Path
		if err := render.Text(w, s, style); err != nil {
			return err
		}
	}
	if all || len(ranks.Processes) == 1 {
		return nil
	}
	_, err := fmt.Fprintf(w, "      memtrace report --all %s  # the report of every process\n", names)
	return err
}
