package importer

import (
	"encoding/binary"
	"maps"
	"strings"
	"testing"
)

// TestRMM imports what RMM 26.10 wrote, and logs that begin late, are cut, joined or edited.
func TestRMM(t *testing.T) {
	line := func(time, action, addr, size string) string {
		return "7," + time + "," + action + "," + addr + "," + size + ",0\n"
	}
	const heading = rmmHeading + "\n"
	first := line("23:59:59.9", "allocate", "0x302000000", "1000")
	for _, c := range []struct {
		name, text string
		peak, live uint64
		end        int64  // nanoseconds
		words      string // of what is lacking, or of the error if the peak is 0
	}{
		{"as written", string(sample(t, "rmm.csv")), 15000 + 1<<22, 14000 + 3<<20, 2769000, ""},
		{"UTF-16", in16(heading+first, binary.LittleEndian, true), 1000, 1000, 0, ""},
		{"midnight", heading + first + line("00:00:00.1", "free", "0x302000000", "1000"), 1000, 0, 2e8, ""},
		{"backwards", heading + first + line("23:59:59.1", "free", "0x302000000", "1000"), 1000, 0, 0,
			"Lines whose time is before that of the one above: 1"},
		{"seconds", heading + line("1634567890.123456", "allocate", "0x1000", "8") +
			line("1634567890.223456", "deallocate", "0x1000", "8"), 8, 0, 1e8, ""},
		{"begins late", heading + first + line("23:59:59.9", "free", "0x5", "1000"), 1000, 1000, 0,
			"Frees of blocks that the log does not allocate were left out: 1"},
		{"a free is missing", heading + first + line("23:59:59.9", "allocate", "0x302000000", "9"), 1000, 9, 0,
			"Allocations at addresses whose free is missing: 1"},
		{"another size", heading + first + line("23:59:59.9", "free", "0x302000000", "9"), 1000, 0, 0,
			"Frees with another size than the allocation: 1"},
		{"two logs", heading + first + heading + first, 1000, 1000, 0, "whose free is missing: 1"},
		{"cut", heading + first + "7,23:59:59.9,allocate,0x7,12", 1000, 1000, 0, "The last line is cut"},
		{"empty blocks", heading + first + line("23:59:59.9", "allocate", "(nil)", "0") +
			line("23:59:59.9", "free", "(nil)", "0"), 1000, 1000, 0, ""},
		{"nothing", heading, 0, 0, 0, "holds no allocation"},
		{"a number with commas", heading + line("23:59:59.9", "allocate", "0x1", "1,024"), 0, 0, 0,
			"line 2: \"7,23:59:59.9,allocate,0x1,1,024,0\": a line has 6 fields"},
		{"a decimal comma", heading + line("23:59:59,9", "allocate", "0x1", "1"), 0, 0, 0, "a line has 6 fields"},
		{"a negative size", heading + line("23:59:59.9", "allocate", "0x1", "-1"), 0, 0, 0, "not a number of bytes"},
		{"a fraction", heading + line("23:59:59.9", "allocate", "0x1", "1.5"), 0, 0, 0, "not a number of bytes"},
		{"too large", heading + line("23:59:59.9", "allocate", "0x1", "9999999999999999"), 0, 0, 0,
			"more than any device"},
		{"a pointer", heading + line("23:59:59.9", "allocate", "here", "1"), 0, 0, 0, "the pointer is not a number"},
		{"an action", heading + line("23:59:59.9", "lend", "0x1", "1"), 0, 0, 0, "the action is none of"},
		{"a time", heading + line("noon", "allocate", "0x1", "1"), 0, 0, 0, "the time is not like"},
	} {
		events, _, result, err := run(t, Find("rmm"), []byte(c.text))
		if c.peak == 0 {
			if err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%s: %v, want %q", c.name, err, c.words)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		successes := events[:0]
		for _, e := range events {
			if e.Status == 0 {
				successes = append(successes, e)
			}
		}
		last := successes[len(successes)-1]
		lacks := strings.Join(result.Lacks, "\n")
		if got := peaks(t, successes); !maps.Equal(got, map[int16]uint64{0: c.peak, -1: c.peak}) ||
			last.Allocated != c.live || last.Time != c.end || !strings.Contains(lacks, c.words) ||
			c.words == "" && strings.Contains(lacks, "left out") {
			t.Errorf("%s: %v, at the end %d at %d ns, lacks %q; want %d, %d, %d, %q", c.name, got, last.Allocated,
				last.Time, lacks, c.peak, c.live, c.end, c.words)
		}
	}
}
