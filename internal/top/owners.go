package top

import (
	"fmt"
	"time"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// ownership is what holds a recorded process's memory.
type ownership struct {
	ReadAt time.Time `json:"read_at"`
	By     string    `json:"by"`
	// whose blocks the rows divide: the framework's if it reported any, else the driver's
	Level          string  `json:"level"`
	DriverBytes    uint64  `json:"driver_bytes"`
	FrameworkBytes uint64  `json:"framework_bytes"`
	DriverLower    *uint64 `json:"driver_bytes_lower,omitempty"` // what is certain where records were lost
	FrameworkLower *uint64 `json:"framework_bytes_lower,omitempty"`
	// managed, pinned and foreign memory, which occupies no device by itself
	OtherBytes  map[string]uint64  `json:"other_bytes"`
	Framework   string             `json:"framework"`
	Devices     []trackedLevel     `json:"devices"`
	Rows        []report.LedgerRow `json:"rows"`
	LostRecords uint64             `json:"lost_records"`
	// what lost records mean for the figures; nil if none were
	Bounds *report.Bounds `json:"bounds,omitempty"`
	// how memory grows, of several kinds the first; nil if it does not, or that is unknown
	Trend   *report.Trend `json:"trend,omitempty"`
	Problem string        `json:"problem"` // why the figures may be wrong
	// in a distributed run, as its launcher numbers it; nil without one
	Rank        *int `json:"rank"`
	OutOfMemory oom  `json:"out_of_memory"`

	parts          []devicePart            // by device, for metrics only
	levels         map[string]report.Level // of all devices
	container, pod string                  // that the process runs in; "" outside, or unknown

	trendKnown bool // Trend is nil because nothing grows

	heights *report.Heights // of the main level; nil while nothing was allocated
	peak    report.Level    // that level
}

// oom counts the times at which memory ran out.
type oom struct {
	Failed    uint64 `json:"failed"`    // the program did not get it
	Recovered uint64 `json:"recovered"` // it got it after giving something back
}

// trackedLevel is what a trace knows of one device.
type trackedLevel struct {
	Index          int16  `json:"index"` // as the process counts
	UUID           string `json:"uuid"`
	DriverBytes    uint64 `json:"driver_bytes"`
	FrameworkBytes uint64 `json:"framework_bytes"`
}

// on returns what the trace knows of the device with a UUID.
func (o *ownership) on(uuid string) (bytes uint64, known bool) {
	for _, d := range o.Devices {
		if d.UUID == uuid && uuid != "" {
			return d.DriverBytes, true
		}
	}
	return 0, false
}

// frameworkName is the framework's common name.
func (o *ownership) frameworkName() string {
	return layout.FrameworkName(map[string]string{o.Framework: "known"})
}

// recorded is what the trace knows of the process's device memory, with a sign where lost records may have changed it:
// it fits the column.
func (o *ownership) recorded(ascii bool) string {
	text := layout.Bytes(o.DriverBytes)
	switch {
	case o.Bounds == nil || o.Bounds.RecordedIsUpper && *o.DriverLower >= o.DriverBytes:
		return text
	case o.Bounds.RecordedIsUpper && ascii:
		return "<= " + text
	case o.Bounds.RecordedIsUpper:
		return "≤ " + text
	}
	return "~ " + text
}

// lostText explains lost records.
func (o *ownership) lostText() string {
	return fmt.Sprintf(
		"%s records were lost: of the device memory recorded, %s; a larger MEMTRACE_SPOOL_HARD_MAX or MEMTRACE_SPOOL_MAX, and MEMTRACE_OVERFLOW=wait, keep more",
		layout.Count(o.LostRecords), layout.Range(o.DriverLower, o.DriverBytes, o.Bounds))
}

// ownersOf takes from a summary what top shows.
func ownersOf(s *report.Summary) *ownership {
	o := &ownership{LostRecords: s.LostRecords, Bounds: s.Bounds, DriverLower: s.Driver.LiveBytesLower,
		FrameworkLower: s.Framework.LiveBytesLower, DriverBytes: s.Driver.LiveBytes,
		FrameworkBytes: s.Framework.LiveBytes, OtherBytes: map[string]uint64{},
		Devices: []trackedLevel{}, Rows: []report.LedgerRow{}, Framework: "framework",
		Rank: s.Process.Rank, container: s.Process.Container, pod: s.Process.Pod,
		OutOfMemory: oom{s.OOM.Count, s.OOM.RecoveredCount}, levels: map[string]report.Level{levelDriver: s.Driver,
			levelFramework: s.Framework}}
	for name := range s.Versions {
		if name == "torch" || name == "mxnet" {
			o.Framework = name
		}
	}
	for name, level := range s.Other {
		if level.LiveBytes > 0 {
			o.OtherBytes[name] = level.LiveBytes
		}
	}
	for _, d := range s.Devices {
		o.Devices = append(o.Devices, trackedLevel{Index: d.Index, UUID: d.UUID, DriverBytes: d.Driver.LiveBytes,
			FrameworkBytes: d.Framework.LiveBytes})
	}
	if growing := s.Growing(); len(growing) > 0 {
		o.Trend = growing[0]
	}
	o.trendKnown = s.GrowthKind() == report.GrowthNone
	if len(s.Heights) > 0 && len(s.Heights[0].PeakBytes) > 0 {
		o.heights, o.peak = &s.Heights[0], s.Main()
	}
	if len(s.By) > 0 {
		o.By = s.By[0]
	}
	if l := s.Ledger(o.By); l != nil {
		o.Level = l.Level
		o.Rows = append(o.Rows, l.Rows...)
	}
	return o
}
