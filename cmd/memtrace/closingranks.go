package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/cli"
	"memtrace/internal/diff"
	"memtrace/internal/render"
	"memtrace/internal/tracefile"
)

// ranksOf compares the processes of a run that a launcher gave a rank; nil if there are not several.
func ranksOf(summaries []readSummary) *diff.Ranks {
	byPath := make(map[string]*report.Summary)
	var list []diff.RankProcess
	for _, r := range summaries {
		if r.summary.Process.Rank != nil && !withoutCalls(r.summary) {
			byPath[r.path] = r.summary
			list = append(list, diff.RankProcess{Path: r.path, Head: report.HeadOf(r.summary)})
		}
	}
	if len(list) < 2 {
		return nil
	}
	ranks, err := diff.CompareRanks(list, func(p *diff.RankProcess) (*report.Summary, error) {
		return byPath[p.Path], nil
	}, cli.ByCategory)
	if err != nil || len(ranks.Processes) < 2 {
		return nil
	}
	return ranks
}

// rankLines are the closing lines of a run of several ranks. Ranks of other machines are no part of them.
func rankLines(ranks *diff.Ranks, summaries []readSummary) []string {
	worst := &ranks.Processes[ranks.Worst]
	top := summaries[slices.IndexFunc(summaries, func(r readSummary) bool { return r.path == worst.Path })]
	lines := []string{strings.Join(render.RanksVerdict(ranks), " ")}
	next := "next: memtrace report " + cli.ShellWord(worst.Path)
	if folder := folderOf(summaries); folder != "" {
		next = "next: memtrace report " + cli.ShellWord(folder)
	}
	if top.summary.OOM.Count == 0 && len(ranks.Different)+len(ranks.Growing) > 0 {
		return append(lines, next)
	}
	lines = append(lines, fmt.Sprintf("rank %d: %s", *top.summary.Process.Rank, render.Verdict(top.summary)[0]))
	if advice := toTry(top.summary); advice != "" {
		lines = append(lines, "to try: "+advice)
	}
	return append(lines, beside(top)+next)
}

// folderOf is the folder that has these traces and no other; "" if there is none.
func folderOf(summaries []readSummary) string {
	folder := filepath.Dir(summaries[0].path)
	inputs, err := tracefile.Expand([]string{folder})
	if err != nil || len(inputs) != len(summaries) {
		return ""
	}
	for _, r := range summaries {
		if filepath.Dir(r.path) != folder {
			return ""
		}
	}
	return folder
}
