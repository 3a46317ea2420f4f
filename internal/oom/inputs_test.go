package oom

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
			EndNS: int64(i), Highest: []uint64{bytes, 0, 0, 0}, End: make([]uint64, 4)})
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
		text := advise(s, Followed{})
		const words = "This iteration holds 6.00 GiB of activations when memory runs out, 2.0 times those of a usual iteration (3.00 GiB, the median of 3)"
		if strings.Contains(text, words) != c.says ||
			strings.Contains(text, "This iteration") != c.says {
			t.Errorf("%s: %q", c.name, text)
		}
		if strings.Contains(text, "Half the batch") == c.says { // it need not be enough for inputs of this size
			t.Errorf("%s: half the batch: %q", c.name, text)
		}
	}
	later := iterated(3*gib, 3*gib, 3*gib)
	for i := range later.Training.Iterations {
		later.Training.Iterations[i].EndNS += 10 // after memory ran out
	}
	if text := advise(later, Followed{}); strings.Contains(text, "This iteration") {
		t.Errorf("iterations after it count: %q", text)
	}
}

// More passes of the same size, over data that stays on the device, are no longer input.
func TestRepeatedRunsAreNoLongerInput(t *testing.T) {
	for _, c := range []struct {
		repeated uint64
		says     bool
	}{{0, true}, {gib, true}, {3 * gib, false}, {5 * gib, false}} {
		s := iterated(3*gib, 3*gib, 3*gib)
		s.OOM.Events[0].Composition.RepeatedBytes = c.repeated
		if text := advise(s, Followed{}); strings.Contains(text, "sequences are longer") != c.says {
			t.Errorf("%d repeated: %q", c.repeated, text)
		}
	}
}

// The first iteration of another stage of training, which has code of its own, was said to hold 287.8 times as much as
// a usual one.
func TestOtherCodeIsNoLongerInput(t *testing.T) {
	for _, c := range []struct {
		newCode uint64
		says    bool
	}{{0, true}, {2 * gib, true}, {5 * gib, false}} {
		s := iterated(3*gib, 3*gib, 3*gib)
		s.OOM.Events[0].Composition.NewCodeBytes = c.newCode
		if text := advise(s, Followed{}); strings.Contains(text, "sequences are longer") != c.says {
			t.Errorf("%d of new code: %q", c.newCode, text)
		}
	}
}

// The first screen shows two items: the setting that the program's own text said was not among them.
func TestSettingComesBeforeSecondChange(t *testing.T) {
	s := iterated(3*gib, 3*gib, 3*gib)
	s.OOM.Events[0].Allocator.Common = report.Fragments{FreeBytes: 2 * gib, FreePieces: 40,
		LargestFreeBytes: 600 * oneMiB, PageFreeBytes: 3 * gib / 2}
	advise(s, Followed{})
	got := strings.Join(ruleNames(s.OOM.Events[0].Advice), " ")
	if want := "longer-input fragmentation activations"; got != want {
		t.Errorf("%s, want %s", got, want)
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
		text := advise(s, Followed{})
		if c.says == "" && strings.Contains(text, "twice") || !strings.Contains(text, c.says) {
			t.Errorf("%+v: %q", c.seen, text)
		}
	}
}

// A with statement of autocast shows in the stacks of operators only.
func TestAutocastIsSeenInOperators(t *testing.T) {
	s := trainingOOM()
	s.OOM.Events[0].Seen.Autocast = true
	if text := advise(s, Followed{}); strings.Contains(text, "autocast") {
		t.Errorf("%q", text)
	}
}

// Nobody who knows no names of native functions says that autocast is not in use.
func TestAutocastIsNotKnownWithoutNames(t *testing.T) {
	if text := advise(trainingOOM(), Followed{Nameless: true}); strings.Contains(text, "autocast") ||
		!strings.Contains(text, "Half the batch") {
		t.Errorf("%q", text)
	}
}

// What an iteration finds when it begins is not its own: a leak is no longer input.
func TestLeakIsNoLongerInput(t *testing.T) {
	s := iterated(1*gib, 2*gib, 3*gib, 4*gib, 5*gib)
	for i := range s.Training.Iterations {
		s.Training.Iterations[i].EndNS = int64(i)
		s.Training.Iterations[i].End[0] = uint64(i+1) * gib // each leaves one behind
	}
	e := &s.OOM.Events[0]
	e.Composition = &report.OOMComposition{OlderBytes: 5 * gib, OlderPasses: 5, IterationBytes: gib,
		IterationFeatureBytes: gib}
	if text := advise(s, Followed{}); strings.Contains(text, "This iteration") || strings.Contains(text, "batch") {
		t.Errorf("%q", text)
	}
}

// A program that tries again while it holds what failed attempts made is told that, and not to do what it did.
func TestFailedAttempts(t *testing.T) {
	for _, c := range []struct {
		left uint64
		says bool
	}{{7 * gib, true}, {gib, false}} {
		s := trainingOOM()
		s.OOM.Retries = []report.OOMRetries{{FailedCount: 3, FirstTimeNS: 5, LeftTimeNS: 9, LeftBytes: c.left,
			LiveBytes: 8 * gib}}
		text := advise(s, Followed{})
		const words = "At a later refusal, 7.00 GiB of the 8.00 GiB in blocks had been made by attempts that failed before"
		if strings.HasPrefix(text, words) != c.says || strings.Contains(text, "Half the batch") == c.says {
			t.Errorf("%d left: %q", c.left, text)
		}
	}
}

// Iterations that were inferred from a recurring allocation may be a loop within one.
func TestInferredIterationsAreNotCompared(t *testing.T) {
	s := iterated(3*gib, 3*gib, 3*gib)
	s.Training.IterationsBy = report.IterationsByPeriod
	if text := advise(s, Followed{}); strings.Contains(text, "This iteration") {
		t.Errorf("%q", text)
	}
}
