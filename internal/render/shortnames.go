package render

import (
	"fmt"
	"strings"
	"unicode"

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
