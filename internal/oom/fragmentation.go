package oom

import (
	"slices"
	"strings"

	"memtrace/analyzer/report"
)

// growing is the setting that lets segments grow, at the end of what is said of fragmented memory.
const growing = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"

// askFragmentation is for idle memory that is a good part of all: with less, the next request is refused. What growing
// segments cannot give back in pages does not count: they have small holes between blocks as well. How much they give
// back is not known here: blocks would lie elsewhere, which only a replay of all of them tells, see Grown.
func askFragmentation(e *report.OOMEvent, f AdviceFacts) (uint64, words, bool) {
	a := e.Allocator
	if a == nil || !f.torch() || f.expandable() || e.Outcome != report.OOMFailed {
		return 0, nil, false
	}
	c := &a.Common
	applies := c.FreePieces > 1 && c.LargestFreeBytes < e.RequestedBytes &&
		c.PageFreeBytes+e.FreeBytes >= e.RequestedBytes && c.PageFreeBytes >= max(missing(e), leastGrown(e))
	return 0, words{"idle": report.SizeText(c.FreeBytes), "pieces": report.Number(c.FreePieces),
		"largest": report.SizeText(c.LargestFreeBytes)}, applies
}

// leastGrown is what growing segments must give back to be worth the words.
func leastGrown(e *report.OOMEvent) uint64 { return e.OwnBytes() / 20 }

func fragmentation(list []report.Advice) int {
	return slices.IndexFunc(list, func(a report.Advice) bool { return a.Rule == "fragmentation" })
}

// Fragmented reports whether growing segments are advised for a refusal.
func Fragmented(e *report.OOMEvent) bool { return e.Allocator != nil && fragmentation(e.Advice) >= 0 }

// Grown completes the advice to let segments grow by what that gives back, which a replay of all blocks tells. Where it
// is little it is no advice, where it is not enough the text says so.
func Grown(e *report.OOMEvent, frees uint64) {
	at := fragmentation(e.Advice)
	if at < 0 {
		return
	}
	a := e.Advice[at]
	e.Advice = slices.Delete(slices.Clone(e.Advice), at, at+1)
	if frees == 0 || frees < leastGrown(e) {
		return
	}
	a.FreesBytes = frees
	says := growing + " gives back about " + report.SizeText(frees)
	if lacks := missing(e); frees < lacks {
		says += "; that alone is not enough, " + report.SizeText(lacks) + " were missing"
	}
	a.Text = strings.Replace(a.Text, growing, says, 1)
	e.Advice = placed(e.Advice, a)
}

// placed puts the advice to let segments grow before what gives back less and what is vague.
func placed(list []report.Advice, a report.Advice) []report.Advice {
	at := slices.IndexFunc(list, func(b report.Advice) bool {
		return slices.Contains(vagueAdvice, b.Rule) || b.FreesBytes <= a.FreesBytes &&
			!slices.Contains(urgentAdvice, b.Rule)
	})
	if at < 0 {
		at = len(list)
	}
	return slices.Insert(list, at, a)
}
