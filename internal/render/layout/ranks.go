package layout

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxStretches bounds the stretches of ranks that are named.
const maxStretches = 6

// RankWords names ranks, consecutive ones and those at even distances as one stretch: "ranks 0-511, 513-1023", "ranks
// 0-1020 by 4".
func RankWords(ranks []int) string {
	ranks = slices.Clone(ranks)
	slices.Sort(ranks)
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	var parts []string
	left := ranks
	for len(left) > 0 && len(parts) < maxStretches {
		n := stretch(left)
		first, last := left[0], left[n-1]
		switch {
		case n == 1:
			parts = append(parts, strconv.Itoa(first))
		case last-first == n-1:
			parts = append(parts, fmt.Sprintf("%d-%d", first, last))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d by %d", first, last, left[1]-first))
		}
		left = left[n:]
	}
	text := "ranks " + strings.Join(parts, ", ")
	if len(left) > 0 {
		text += fmt.Sprintf(" and %d others", len(left))
	}
	return text
}

// stretch is how many of the first ranks are at even distances: 1, or at least 2 consecutive ones, or at least 4.
func stretch(ranks []int) int {
	if len(ranks) < 2 {
		return len(ranks)
	}
	step, n := ranks[1]-ranks[0], 2
	for n < len(ranks) && ranks[n]-ranks[n-1] == step {
		n++
	}
	if step == 1 || n >= 4 {
		return n
	}
	return 1
}
