package render

import (
	"fmt"
	"strings"
	"unicode"

	"memtrace/internal/diff"
	"memtrace/internal/render/layout"
	"memtrace/internal/rules"
	"memtrace/internal/sanitize"
)

// knownShort are the short forms of categories that ship with memtrace; others get one made of their letters.
var knownShort = map[string]string{"Parameters": "par", "Weights": "wt", "Gradients": "grad",
	"Weight Gradients": "grad", "Optimizer state": "opt", "Optimizer State": "opt", "Feature maps": "fm",
	"Intermediate gradients": "ig", "Workspace": "ws", "Temporary": "tmp", "Input data": "in", "Library": "lib",
	rules.Others: "oth"}

// shortNames gives every category a short form that no other one has.
func shortNames(categories []string) []string {
	taken := make(map[string]bool)
	list := make([]string, len(categories))
	for i, category := range categories {
		short := knownShort[category]
		if short == "" {
			short = initials(category)
		}
		unique := short
		for n := 2; taken[unique]; n++ {
			unique = fmt.Sprint(short, n)
		}
		taken[unique] = true
		list[i] = unique
	}
	return list
}

// initials are the first letters of several words, or the first three of one.
func initials(category string) string {
	words := strings.FieldsFunc(strings.ToLower(sanitize.Text(category)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	switch len(words) {
	case 0:
		return "cat"
	case 1:
		return string([]rune(words[0])[:min(3, len([]rune(words[0])))])
	}
	var b strings.Builder
	for _, word := range words {
		b.WriteRune([]rune(word)[0])
	}
	return b.String()
}

// legend explains the short forms of the categories that were used.
func legend(categories []string, used []bool) string {
	short := shortNames(categories)
	var parts []string
	for i, category := range categories {
		if used[i] {
			parts = append(parts, short[i]+" "+sanitize.Text(category))
		}
	}
	return strings.Join(parts, ", ")
}

// some lists names, of many the first few.
func some(names []string) string {
	if more := len(names) - maxSentences; more > 0 {
		names = append(names[:maxSentences:maxSentences], fmt.Sprintf("%d others", more))
	}
	return strings.Join(names, ", ")
}

// ProcessName names one of several processes: by rank if it has one, else by its number.
func ProcessName(r *diff.Ranks, i int) string {
	p := &r.Processes[i].Head.Summary.Process
	if p.Rank != nil {
		return fmt.Sprintf("rank %d", *p.Rank)
	}
	return fmt.Sprintf("pid %d", p.PID)
}

// ProcessNames names several processes.
func ProcessNames(r *diff.Ranks, list []int) string {
	var ranks []int
	var names []string
	for _, i := range list {
		if rank := r.Processes[i].Head.Summary.Process.Rank; rank != nil {
			ranks = append(ranks, *rank)
		} else {
			names = append(names, ProcessName(r, i))
		}
	}
	switch {
	case len(ranks) == 0:
		return some(names)
	case len(names) == 0:
		return layout.RankWords(ranks)
	}
	return layout.RankWords(ranks) + ", " + some(names)
}
