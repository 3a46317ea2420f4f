package layout

import (
	"fmt"
	"strings"

	"memtrace/analyzer/report"
)

// SummaryHealth is a summary's line on how far its numbers can be trusted.
func SummaryHealth(s *report.Summary) string {
	text := Health(s.Health, s.LostRecords)
	if s.Thinned != nil {
		text += "; compacted before " + Moment(s.Thinned.UntilTimeNS)
	}
	return text
}

// Health is one line on how reliable the figures of a trace are; the notes have the details.
func Health(h report.Health, lostRecords uint64) string {
	events := Plural(h.Events, "event", "events")
	if h.Complete {
		if len(h.Unseen) > 0 {
			return "NOT ALL WAS SEEN: " + events + ", none lost, but some calls bypassed the recorder, see the notes"
		}
		if h.InFlightCalls > 0 {
			return "complete: " + events + ", nothing lost, " + Plural(h.InFlightCalls, "call", "calls") +
				" in flight at the end"
		}
		return "complete: " + events + ", nothing lost"
	}
	var faults []string
	add := func(n uint64, one, many string) {
		if n > 0 {
			faults = append(faults, Plural(n, one, many))
		}
	}
	add(lostRecords, "record lost", "records lost")
	add(h.LostRings, "thread not recorded", "threads not recorded")
	add(h.LostDictionary, "name or stack lost", "names and stacks lost")
	if h.Truncated {
		faults = append(faults, fmt.Sprintf("cut at byte %d", h.TruncatedAt))
	}
	if h.NoEnd != "" {
		faults = append(faults, "no end")
	}
	if h.Damaged != nil {
		faults = append(faults, fmt.Sprintf("damaged at byte %d", h.Damaged.At))
	}
	if h.Altered != "" {
		faults = append(faults, "changed after it was written")
	}
	add(h.RepeatedEvents, "event twice", "events twice")
	add(h.SequenceGaps, "gap in the order numbers", "gaps in the order numbers")
	add(h.UnknownEvents, "event of an unknown kind", "events of unknown kinds")
	add(h.UnmatchedFrees, "free without allocation", "frees without allocation")
	add(h.UnmatchedMaps, "mapping without handle", "mappings without handle")
	add(h.UnmatchedReferences, "reference without handle", "references without handle")
	add(h.DisplacedBlocks, "block closed by its successor", "blocks closed by their successors")
	add(h.ImplausibleSizes, "size beyond belief", "sizes beyond belief")
	return "INCOMPLETE: " + strings.Join(faults, ", ") + " (" + events + ")"
}
