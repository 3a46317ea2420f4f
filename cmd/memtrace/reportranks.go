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
}

// maxKept bounds the traces of which the reports are kept after the first reading.
const maxKept = 16

// load returns the report of a process.
func (r *rankReader) load(p *diff.RankProcess) (*report.Summary, error) {
	if s := r.kept[p.Path]; s != nil {
		return s, nil
	}
	s, err := tracefile.Summarize(&r.app.Console, p.Path, r.options)
	if err == nil && len(r.kept) < maxKept {
		r.kept[p.Path] = s
	}
	return s, err
}

// reportRanks shows the processes of a run side by side, then the report of the one to look at, or with --all of each.
// A trace that cannot be read does not prevent the others from being shown.
func (a *app) reportRanks(flags *cli.QueryFlags, args []string, inputs []tracefile.Input, options analyzer.Options,
	style layout.Options) error {
	reader := rankReader{a, options, map[string]*report.Summary{}}
	var list []diff.RankProcess
	var damaged tracefile.DamageList
	var problems []error
	read := func(path string) (tracefile.Rank, error) {
		rank, err := tracefile.ReadRank(&a.Console, path, options)
		if len(inputs) > maxKept {
			rank.Summary = nil
		}
		return rank, err
	}
	err := tracefile.InOrder(inputs, read, func(in tracefile.Input, rank tracefile.Rank, err error) error {
		switch {
		case tracefile.PassOver(&a.Console, in, err):
		case err != nil:
			problems = append(problems, err)
		default:
			if flags.Strict {
				damaged.Add(in.Path, rank.Head.Summary)
			}
			if rank.Summary != nil {
				reader.kept[in.Path] = rank.Summary
			}
			list = append(list, diff.RankProcess{Path: in.Path, Head: rank.Head})
		}
		return nil
	})
	if len(list) == 0 && problems == nil {
		return tracefile.NoTraceError(args[0])
	}
	if len(list) > 0 {
		var ranks *diff.Ranks
		if ranks, err = diff.CompareRanks(list, reader.load, cli.ByCategory); err == nil {
			err = a.WriteTo(flags.Output, flags.Force, flags.Form(style), func(w io.Writer) error {
				return reader.show(w, ranks, namesOf(args), flags.AllProcesses, style)
			})
		}
	}
	return damaged.Join(errors.Join(append(problems, err)...))
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
		if _, err := io.WriteString(w, strings.Repeat("\n", min(len(ranks.Processes)-1, 1))); err != nil {
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
