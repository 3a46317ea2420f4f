package oomtext

import (
	"fmt"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// olderPart is the least part of the blocks, as a divisor, that is worth saying of older ones.
const olderPart = 200

// compositionWords divides the blocks by how long each part is meant to stay.
func compositionWords(c *report.OOMComposition) string {
	now := "this iteration"
	if c.Passes > 1 {
		now = "the latest of " + c.RunWords()
	}
	running, older := c.IterationBytes, c.OlderBytes
	left := c.LeftBytes
	running -= min(c.LeftIterationBytes, running)
	older -= min(left-min(left, c.LeftIterationBytes), older)
	text := fmt.Sprintf("%s are parameters and what else stays, %s are of %s", layout.Bytes(c.FixedBytes),
		layout.Bytes(running), now)
	if !c.KnowsIteration() {
		text = fmt.Sprintf("%s are parameters and what else stays, %s are of %s or older: no step was seen",
			layout.Bytes(c.FixedBytes), layout.Bytes(running), now)
	}
	if left > 0 {
		text += fmt.Sprintf(", %s are of attempts that failed before", layout.Bytes(left))
	}
	if older == 0 || older < c.Bytes()/olderPart {
		return text
	}
	text += fmt.Sprintf(", %s are older", layout.Bytes(older))
	if c.OlderSite != "" {
		text += ", most of them from " + sanitize.Text(c.OlderSite)
	}
	return text
}
