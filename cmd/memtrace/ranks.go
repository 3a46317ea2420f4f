package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"memtrace/analyzer"
	"memtrace/analyzer/ranks"
	"memtrace/analyzer/render"
	"memtrace/analyzer/render/layout"
	"memtrace/analyzer/report"
)

// sideBySide reports whether the arguments are one folder with several traces, which are the processes of one run.
func sideBySide(args []string) bool {
	if len(args) != 1 {
		return false
	}
	inputs, err := expandInputs(args)
	return err == nil && len(inputs) > 1 && inputs[0].fromFolder
}

// reportRanks shows the processes of a folder side by side, then the report of the one to look at, or with all of each.
// A trace that cannot be read does not keep the others from being shown.
func (a *app) reportRanks(flags *summaryFlags, folder string, options analyzer.Options, style layout.Options) error {
	inputs, err := expandInputs([]string{folder})
	if err != nil {
		return err
	}
	var list []ranks.Process
	var damaged damageList
	var problems []error
	load := func(path string) (*report.Summary, error) { return a.summarize(path, options) }
	err = inOrder(inputs, load, func(in input, summary *report.Summary, err error) error {
		switch {
		case a.passOver(in, err):
		case err != nil:
			problems = append(problems, err)
		default:
			if flags.strict {
				damaged.add(in.path, summary)
			}
			list = append(list, ranks.Process{Path: in.path, Summary: summary})
		}
		return nil
	})
	if len(list) == 0 && problems == nil {
		return noTracesError(folder)
	}
	if len(list) > 0 {
		err = a.writeTo(flags.output, flags.force, flags.form(style), func(w io.Writer) error {
			return showRanks(w, ranks.Compare(list, byCategory), folder, flags.allProcesses, style)
		})
	}
	return damaged.join(errors.Join(append(problems, err)...))
}

func showRanks(w io.Writer, r *ranks.Ranks, folder string, all bool, style layout.Options) error {
	if len(r.Processes) > 1 {
		style.Path = folder
		if err := render.Ranks(w, r, style); err != nil {
			return err
		}
	}
	for i, p := range r.Processes {
		if !all && i != r.Worst {
			continue
		}
		if _, err := io.WriteString(w, strings.Repeat("\n", min(len(r.Processes)-1, 1))); err != nil {
			return err
		}
		style.Path = p.Path
		if err := render.Text(w, p.Summary, style); err != nil {
			return err
		}
	}
	if all || len(r.Processes) == 1 {
		return nil
	}
	_, err := fmt.Fprintf(w, "      memtrace report --all %s  # the report of every process\n", folder)
	return err
}
