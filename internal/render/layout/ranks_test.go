package layout

import "testing"

// TestRankWords: stretches of ranks, consecutive or at even distances, are one part each.
func TestRankWords(t *testing.T) {
	every := func(first, step, n int) (list []int) {
		for i := range n {
			list = append(list, first+i*step)
		}
		return list
	}
	for want, ranks := range map[string][]int{
		"rank 7":                                 {7},
		"ranks 3-4":                              {4, 3},
		"ranks 0-511, 513-1023":                  append(every(0, 1, 512), every(513, 1, 511)...),
		"ranks 0-1020 by 4":                      every(0, 4, 256),
		"ranks 0, 4, 8":                          every(0, 4, 3),
		"ranks 1, 3, 7-75 by 2":                  append([]int{1, 3}, every(7, 2, 35)...),
		"ranks 0, 5, 7, 20, 22, 50 and 2 others": {0, 5, 7, 20, 22, 50, 77, 99},
	} {
		if got := RankWords(ranks); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
