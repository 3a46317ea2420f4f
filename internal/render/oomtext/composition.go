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
	text := fmt.Sprintf("%s are parameters and what else stays, %s are of %s", layout.Bytes(c.FixedBytes),
		layout.Bytes(c.IterationBytes), now)
	if c.OlderBytes == 0 || c.OlderBytes < (c.FixedBytes+c.IterationBytes+c.OlderBytes)/olderPart {
		return text
	}
	text += fmt.Sprintf(", %s are older", layout.Bytes(c.OlderBytes))
	if c.OlderSite != "" {
		text += ", most of them from " + sanitize.Text(c.OlderSite)
	}
	return text
}
