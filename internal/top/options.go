package top

import (
	"slices"
	"strings"
	"time"

	"memtrace/internal/profile"
)

// MinInterval prevents the view from stalling the programs that it shows: a query of a device's processes takes
// milliseconds under a lock of the driver.
const MinInterval = time.Second

// categoryGrouping is the grouping by the preset's rules.
const categoryGrouping = "category"

// Options are the values of the command's flags.
type Options struct {
	Once, JSON    bool
	ASCII         bool
	Interval      time.Duration
	IntervalGiven bool
	Devices       []int // only these; all if there are none
	PIDs          []int // only these; all if there are none
	By            string
	Rows          int // of owners of each process, 0 for all

	Listen, Textfile string // where metrics go
}

func (o *Options) check(h *Host) error {
	if o.Interval < MinInterval {
		return h.Usage("--interval %s: the shortest is %s: more often would slow down the programs on the device",
			o.Interval, MinInterval)
	}
	for _, index := range o.Devices {
		if index < 0 {
			return h.Usage("--device %d: name the device's number, such as 0", index)
		}
	}
	for _, pid := range o.PIDs {
		if pid <= 0 {
			return h.Usage("--pid %d: name the number of a process", pid)
		}
	}
	if o.By != "" && !slices.Contains(profile.GroupingNames(), o.By) {
		return h.Usage("--by %s: choose from %s", o.By, strings.Join(profile.GroupingNames(), ", "))
	}
	if o.Rows < 0 {
		return h.Usage("-n %d: must be a number of rows, or 0 for all", o.Rows)
	}
	return o.checkMetrics(h)
}
