package symbol

import (
	"strconv"
	"strings"
)

// span is a range of addresses, the end excluded.
type span struct{ start, end uint64 }

func (s span) contains(address uint64) bool { return address >= s.start && address < s.end }

func containsAddress(spans []span, address uint64) bool {
	for _, s := range spans {
		if s.contains(address) {
			return true
		}
	}
	return false
}

// parseSpans reads hexadecimal ranges, "start-end", separated by commas. Invalid ranges are skipped.
func parseSpans(text string) []span {
	var spans []span
	for part := range strings.SplitSeq(text, ",") {
		first, last, _ := strings.Cut(strings.TrimSpace(part), "-")
		start, err1 := strconv.ParseUint(strings.TrimPrefix(first, "0x"), 16, 64)
		end, err2 := strconv.ParseUint(strings.TrimPrefix(last, "0x"), 16, 64)
		if err1 == nil && err2 == nil && start < end {
			spans = append(spans, span{start, end})
		}
	}
	return spans
}
