package advice

import (
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

// iterated is trainingOOM after iterations whose feature maps had these bytes at their highest.
func iterated(held ...uint64) *report.Summary {
	s := trainingOOM()
	s.Training.IterationsBy = report.IterationsByOptimizer
	for i, bytes := range held {
		s.Training.Iterations = append(s.Training.Iterations, report.Iteration{Number: uint64(i + 1), Ended: true,
			EndNS: int64(i), Highest: []uint64{bytes, 0, 0, 0}})
	}
	return s
}

// TestLongerInput: an iteration that holds more than those before it is told of, one that holds as much is not, and
// what is usual takes some iterations to know.
func TestLongerInput(t *testing.T) {
	for _, c := range []struct {
		name string
		held []uint64
		says bool
	}{
		{"twice as much", []uint64{3 * gib, 3 * gib, 3 * gib}, true},
		{"one was as large", []uint64{3 * gib, 6 * gib, 3 * gib}, true},
		{"as usual", []uint64{6 * gib, 6 * gib, 6 * gib}, false},
		{"hardly more", []uint64{5 * gib, 5 * gib, 5 * gib}, false},
		{"too few", []uint64{3 * gib, 3 * gib}, false},
		{"none", nil, false},
	} {
		s := iterated(c.held...)
		ByCategory(s, Followed{})
		const words = "This iteration holds 6.00 GiB of activations when memory runs out, 2.0 times those of a usual iteration (3.00 GiB, the median of 3)"
		if text := adviceTexts(s); strings.Contains(text, words) != c.says ||
			strings.Contains(text, "This iteration") != c.says {
			t.Errorf("%s: %q", c.name, text)
		}
	}
	later := iterated(3*gib, 3*gib, 3*gib)
	for i := range later.Training.Iterations {
		later.Training.Iterations[i].EndNS += 10 // after memory ran out
	}
	if ByCategory(later, Followed{}); strings.Contains(adviceTexts(later), "This iteration") {
		t.Errorf("iterations after it count: %q", adviceTexts(later))
	}
}

// TestLoadedTwice: what was read from a checkpoint counts where the same is there by name, and where it is much.
func TestLoadedTwice(t *testing.T) {
	for _, c := range []struct {
		seen report.OOMSeen
		says string
	}{
		{report.OOMSeen{LoadedBytes: 2 * gib, NamedBytes: 2 * gib}, "gives back 2.00 GiB"},
		{report.OOMSeen{LoadedBytes: 3 * gib, NamedBytes: 2 * gib}, "gives back 2.00 GiB"},
		{report.OOMSeen{LoadedBytes: 2 * gib}, ""},
		{report.OOMSeen{NamedBytes: 2 * gib}, ""},
		{report.OOMSeen{LoadedBytes: gib / 2, NamedBytes: 2 * gib}, ""},
	} {
		s := trainingOOM()
		s.OOM.Events[0].Seen = c.seen
		ByCategory(s, Followed{})
		text := adviceTexts(s)
		if c.says == "" && strings.Contains(text, "twice") || !strings.Contains(text, c.says) {
			t.Errorf("%+v: %q", c.seen, text)
		}
	}
}

// A with statement of autocast shows in the stacks of operators only.
func TestAutocastIsSeenInOperators(t *testing.T) {
	s := trainingOOM()
	s.OOM.Events[0].Seen.Autocast = true
	if ByCategory(s, Followed{}); strings.Contains(adviceTexts(s), "autocast") {
		t.Errorf("%q", adviceTexts(s))
	}
}
