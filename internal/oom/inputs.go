package oom

import (
	"fmt"
	"slices"

	"memtrace/analyzer/report"
)

const (
	// usualIterations is how many iterations before an event tell what a usual one holds.
	usualIterations = 3
	// longerShare is how many times the activations of a usual iteration make another one a larger one.
	longerShare = 1.25
	// loadedShare is the least part of what the process has, as a divisor, that is worth saying of a loaded checkpoint.
	loadedShare = 10
)

// longerInput is for an iteration that has more activations of its own already than those before it had at their
// highest: its batch is larger, or its sequences are longer. What an iteration found when it began is not its own. One
// of other code, such as that of another stage, has none that are usual.
func longerInput(t *report.Training, e *report.OOMEvent) []report.Advice {
	n := slices.Index(t.Categories, "Feature maps")
	if n < 0 || e.Composition == nil || 2*e.Composition.NewCodeBytes > e.Composition.IterationFeatureBytes ||
		t.IterationsBy == report.IterationsByNothing ||
		t.IterationsBy == report.IterationsByPeriod { // which may be a loop within one iteration
		return nil
	}
	var usual []uint64
	found := uint64(0) // when the iteration began
	for i := range t.Iterations {
		if it := &t.Iterations[i]; it.Ended && it.EndNS <= e.TimeNS && it.Highest[n] > 0 {
			usual = append(usual, it.Highest[n]-min(it.Highest[n], found))
			found = it.End[n]
		}
	}
	if len(usual) < usualIterations {
		return nil
	}
	median := report.Median(usual)
	now := e.Composition.IterationFeatureBytes
	once := now - min(now, e.Composition.RepeatedBytes) // code that ran more often does not tell of longer inputs
	if float64(once) >= longerShare*float64(median) && sizeable(e, now-median) {
		text := fmt.Sprintf(
			"This iteration holds %s of activations when memory runs out, %.1f times those of a usual iteration (%s, the median of %s): its batch is larger or its sequences are longer. "+
				"Limit them or sort them by length; at the usual size it holds %s less.", report.SizeText(now),
			float64(now)/float64(median), report.SizeText(median), report.Number(uint64(len(usual))),
			report.SizeText(now-median))
		return []report.Advice{{Rule: "longer-input", FreesBytes: now - median, Text: text}}
	}
	return nil
}

// loadedTwice is for a checkpoint that was read onto the device and is still there beside what it was read for.
func loadedTwice(e *report.OOMEvent) []report.Advice {
	bytes := e.Seen.LoadedTwice()
	if bytes == 0 || bytes < e.OwnBytes()/loadedShare {
		return nil
	}
	text := fmt.Sprintf(
		"%s that were read from a checkpoint onto the device stand beside parameters and optimizer state of their own: they are there twice. "+
			"Read the file with map_location=\"cpu\" and delete the loaded dictionary after load_state_dict; that gives back %s.", report.SizeText(bytes), report.SizeText(bytes))
	return []report.Advice{{Rule: "loaded-twice", FreesBytes: bytes, Text: text}}
}
