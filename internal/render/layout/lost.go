package layout

import (
	"fmt"

	"memtrace/analyzer/report"
)

// Lost reports how many records are missing, and the effect on the figures.
func Lost(b *report.Bounds) string {
	text := Plural(b.LostRecords, "record", "records")
	if b.LostFrees != nil {
		text += fmt.Sprintf(", of them %s frees", Count(*b.LostFrees))
		if *b.LostFrees == b.LostRecords {
			text = Plural(b.LostRecords, "record, a free", "records, all of them frees")
		}
	} else {
		text += " of unknown kinds"
	}
	switch {
	case b.Placed && b.ExactBeforeNS == 0:
		text += ", from the beginning on. "
	case b.Placed:
		text += ", " + Moment(b.ExactBeforeNS) + " or later: what was before is exact. "
	default:
		text += ", at a time that is not known. "
	}
	text += "A free that is missing leaves its memory counted"
	if b.RecordedIsUpper {
		text += ", so every figure is at most what was recorded; ranges begin at what is certain. "
	} else {
		text += ", an allocation that is missing leaves it out. Ranges go from what is certain to what was recorded; + says that it may have been more. "
	}
	return text +
		"Counts, places and whatever else has no range are as recorded. To lose nothing, record with a larger MEMTRACE_SPOOL_HARD_MAX or MEMTRACE_SPOOL_MAX and with MEMTRACE_OVERFLOW=wait."
}
