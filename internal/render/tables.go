package render

import (
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// CSVTable is a table of a summary for other programs: bytes as whole numbers, times in seconds since the trace's time
// base, names unchanged except those that a spreadsheet would read as a formula.
type CSVTable struct {
	Name, Doc string

	columns []string
	rows    func(s *report.Summary) iter.Seq[[]string]
}

var tables = []CSVTable{
	{Name: "totals", Doc: "each level, of all devices and of each", rows: totals,
		columns: []string{"device", "level", "peak_bytes", "peak_seconds", "live_bytes", "alloc_count", "free_count",
			"alloc_bytes", "failed_count"}},
	{Name: "owners", Doc: "the rows of every grouping; of each grouping and level they add up", rows: owners,
		columns: []string{"by", "level", "key", "peak_bytes", "live_bytes",
			"alloc_count", "free_count", "alloc_bytes", "requested_peak_bytes", "rest_peak_bytes",
			"requested_live_bytes",
			"rest_live_bytes"}},
	{Name: "ledgers", Doc: "where all of the driver's memory was at the peak, or at --at", rows: ledgers,
		columns: []string{"by", "level", "moment", "seconds", "owner", "key", "bytes", "requested_bytes",
			"rest_bytes"}},
	{Name: "categories", Doc: "what it was for at that moment", rows: categories,
		columns: []string{"rules", "level", "moment", "seconds", "category", "bytes", "requested_bytes", "rest_bytes"}},
	{Name: "moment", Doc: "the rows of every grouping at --at", rows: moment, columns: []string{"moment", "seconds",
		"by", "level", "key", "live_bytes"}},
	viewTable("cross", "modules of a model by category, at the peak or at --at"),
	{Name: "heights", Doc: "the highest bytes of each level in equal stretches of time", rows: heights,
		columns: []string{"level", "from_seconds", "to_seconds", "peak_bytes"}},
	{Name: "lifetimes", Doc: "how long blocks lived that were freed", rows: lifetimes,
		columns: []string{"level", "below_seconds", "count", "bytes"}},
	{Name: "marks", Doc: "named moments", rows: marks, columns: []string{"name", "count", "first_seconds",
		"last_seconds", "driver_live_bytes", "framework_live_bytes"}},
	{Name: "out_of_memory", Doc: "the times at which memory ran out", rows: outOfMemory,
		columns: []string{"seconds", "device", "outcome", "level", "requested_bytes", "attempts", "allocated_bytes",
			"reserved_bytes", "driver_live_bytes", "total_bytes", "site", "tag", "thread", "call"}},
	{Name: "device_ledgers", Doc: "what filled each device", rows: deviceLedgers,
		columns: []string{"device", "by", "moment", "seconds", "owner", "key", "bytes"}},
	{Name: "device_samples", Doc: "the memory use that each device reported", rows: deviceSamples,
		columns: []string{"device", "seconds", "occasion", "used_bytes", "own_bytes", "others_bytes", "kept_bytes",
			"tracked_bytes", "context_bytes", "remainder_bytes"}},
	{Name: "iterations", Doc: "peak of each iteration of a training loop, divided by category", rows: iterations},
	viewTable("modules", "the tree of modules of a model"),
	viewTable("parameters", "weight, gradient and optimizer state of each parameter"),
	viewTable("timeline", "memory over time: the highest moment of each of up to 1,024 stretches, by category"),
}

// viewTable is a view's table, whose first row names the columns.
func viewTable(name, doc string) CSVTable {
	return CSVTable{Name: name, Doc: doc, rows: FindView(name).Rows}
}

// CSVTables lists every table, in the order in which help texts show them.
func CSVTables() []CSVTable { return tables }

// Empty reports whether a summary has nothing for the table.
func (t *CSVTable) Empty(s *report.Summary) bool {
	for range t.rows(s) {
		return false
	}
	return true
}

// Write writes the table as in RFC 4180, but with line feeds; the first line names the columns.
func (t *CSVTable) Write(w io.Writer, s *report.Summary) error {
	rows := t.rows(s)
	if len(t.columns) == 0 {
		return writeCSV(w, rows)
	}
	return writeCSV(w, func(yield func([]string) bool) {
		if yield(slices.Clone(t.columns)) {
			rows(yield)
		}
	})
}

// writeCSV writes rows one by one: a table may have many.
func writeCSV(w io.Writer, rows iter.Seq[[]string]) error {
	out := csv.NewWriter(w)
	for row := range rows {
		for i, cell := range row {
			row[i] = sanitize.Cell(cell)
		}
		if err := out.Write(row); err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

func totals(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		row := func(device, level string, l report.Level) bool {
			return l.Empty() ||
				yield([]string{device, level, layout.Number(l.PeakBytes), layout.Seconds(l.PeakTimeNS),
					layout.Number(l.LiveBytes), layout.Number(l.AllocCount), layout.Number(l.FreeCount),
					layout.Number(l.AllocBytes),
					layout.Number(l.FailedCount)})
		}
		if !row("all", report.LevelFramework, s.Framework) || !row("all", report.LevelDriver, s.Driver) {
			return
		}
		for _, kind := range slices.Sorted(maps.Keys(s.Other)) {
			if !row("all", kind, s.Other[kind]) {
				return
			}
		}
		for i := range s.Devices {
			d := &s.Devices[i]
			if !row(layout.Number(d.Index), report.LevelFramework, d.Framework) ||
				!row(layout.Number(d.Index), report.LevelDriver, d.Driver) {
				return
			}
		}
	}
}

func owners(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, g := range s.Groups {
			for _, r := range g.Rows {
				row := []string{g.By, g.Level, r.Key, layout.Number(r.PeakBytes), layout.Number(r.LiveBytes),
					layout.Number(r.AllocCount), layout.Number(r.FreeCount), layout.Number(r.AllocBytes)}
				if !yield(slices.Concat(row, requestedCells(r.RequestedAtPeak), requestedCells(r.RequestedLive))) {
					return
				}
			}
		}
	}
}

func ledgers(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, l := range s.Ledgers {
			for _, r := range l.Rows {
				if !yield(append([]string{l.By, l.Level, l.Moment, layout.Seconds(l.TimeNS), r.Owner, r.Key,
					layout.Number(r.Bytes)}, requestedCells(r.Requested)...)) {
					return
				}
			}
			if l.SlackBytes < 0 && !yield([]string{l.By, l.Level, l.Moment, layout.Seconds(l.TimeNS), report.OwnerSlack,
				"", layout.Number(l.SlackBytes), "", ""}) {
				return
			}
		}
	}
}

// requestedCells is the requested bytes of blocks, and the bytes beyond that; empty if either is unknown for any.
func requestedCells(r *report.Requested) []string {
	if r == nil || r.UnknownBytes > 0 {
		return []string{"", ""}
	}
	return []string{layout.Number(r.Bytes), layout.Number(r.RestBytes)}
}

func categories(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, c := range s.Categories {
			for _, r := range c.Rows {
				if !yield(append([]string{c.Rules, c.Level, c.Moment, layout.Seconds(c.TimeNS), r.Key,
					layout.Number(r.Bytes)}, requestedCells(r.Requested)...)) {
					return
				}
			}
		}
	}
}

func moment(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		if s.At == nil {
			return
		}
		for _, g := range s.At.Groups {
			for _, r := range g.Rows {
				if !yield([]string{s.At.What, layout.Seconds(s.At.TimeNS), g.By, g.Level, r.Key,
					layout.Number(r.LiveBytes)}) {
					return
				}
			}
		}
	}
}
