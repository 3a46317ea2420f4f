package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// shortOwners is how many owners the table shows unless groupings were requested: the table of the peak has them all.
const shortOwners = 5

// writeDeviceLedgers prints the memory of each device: this process by owner, other users, and the unexplained rest.
// Unless groupings were requested, that is one moment, and none for the device that ran out of memory, whose table is
// at the top.
func writeDeviceLedgers(p *layout.Page, s *report.Summary) {
	r := s.DeviceLedger
	if r == nil || len(s.By) == 0 {
		return
	}
	by := s.By[0]
	for _, d := range r.Devices {
		if !s.Asked && s.At == nil && detailedOOMOn(s, d.Index) {
			continue
		}
		var shown []*report.DeviceLedger
		for i := range d.Ledgers {
			if d.Ledgers[i].By == by {
				shown = append(shown, &d.Ledgers[i])
			}
		}
		if len(shown) > 0 && !s.Asked {
			shown = shown[:1]
		}
		if len(shown) > 0 {
			writeDeviceLedger(p, s, d.Index, by, shown)
		}
	}
	if len(r.Devices) == 0 {
		p.Field("device", noSamples(r))
		p.Gap()
		return
	}
	for _, note := range r.Notes {
		p.Item(sanitize.Text(layout.UpperFirst(note)) + ".")
	}
	if r.Why != "" {
		p.Item("No samples after the last one: " + sanitize.Text(r.Why) + ".")
	}
	p.Gap()
}

// detailedOOMOn reports whether the report begins with a table of the memory of this device, as reported by the device.
func detailedOOMOn(s *report.Summary, device int16) bool {
	if len(s.OOM.Events) == 0 {
		return false
	}
	e := &s.OOM.Events[s.DetailedOOM()]
	return e.Device == device && e.Detailed && e.Sample != nil
}

func noSamples(r *report.DeviceReport) string {
	why := r.Why
	if why == "" {
		why = strings.Join(r.Notes, "; ")
	}
	if why == "" {
		why = "no sample was taken"
	}
	return "device usage unavailable (" + sanitize.Text(why) +
		"): other processes, the CUDA context and code are not counted"
}

// deviceOwner is a printed row: the same owner at each moment.
type deviceOwner struct {
	name  string
	style layout.Style
	bytes []int64 // by moment
}

func writeDeviceLedger(p *layout.Page, s *report.Summary, index int16, by string, moments []*report.DeviceLedger) {
	p.Title(fmt.Sprintf("What fills %s, by %s", layout.DeviceName(index), by))
	p.Gap()
	columns := []layout.Column{{Title: "owner"}}
	for _, l := range moments {
		columns = append(columns, layout.Column{Title: sampleTitle(l), Right: true},
			layout.Column{Title: "of device", Right: true, Optional: 1})
	}
	var rows [][]layout.Cell
	add := func(name string, st layout.Style, bytes func(i int) int64) {
		row := []layout.Cell{{Text: name, Style: st}}
		for i, l := range moments {
			share := ""
			if v := bytes(i); v > 0 && l.TotalBytes > 0 {
				share = layout.PercentOf(uint64(v), l.TotalBytes)
			}
			row = append(row, layout.Cell{Text: deviceBytes(bytes(i))}, layout.Cell{Text: share})
		}
		rows = append(rows, row)
	}
	for _, o := range deviceOwners(p, s, moments) {
		add(o.name, o.style, func(i int) int64 { return o.bytes[i] })
	}
	add("in use", layout.Strong, func(i int) int64 { return int64(moments[i].Sample.UsedBytes) })
	if total := moments[0].TotalBytes; total > 0 {
		add("free", layout.Plain, func(i int) int64 {
			return int64(moments[i].TotalBytes - moments[i].Sample.UsedBytes)
		})
		add("the device", layout.Strong, func(i int) int64 { return int64(moments[i].TotalBytes) })
	}
	p.Table(columns, rows)
	writeDeviceRemarks(p, moments)
	p.Gap()
}

// deviceBytes formats a size, which is highlighted only if negative.
func deviceBytes(n int64) string {
	if n < 0 {
		return layout.SignedBytes(n)
	}
	return layout.Bytes(uint64(n))
}

func sampleTitle(l *report.DeviceLedger) string {
	name := sanitize.Text(l.Moment)
	switch l.Moment {
	case report.MomentHighest:
		name = "highest sample"
	case report.MomentLast:
		name = "last sample"
	}
	return name + ", " + layout.Moment(l.Sample.TimeNS)
}

// deviceOwners joins the moments' rows, in the order of a ledger: blocks, slack and outside memory, then what surrounds
// them.
func deviceOwners(p *layout.Page, s *report.Summary, moments []*report.DeviceLedger) []deviceOwner {
	byKind := make(map[string][]deviceOwner)
	place := make(map[[2]string]int)
	requested := (s.Asked || p.Details) && requestsKnown(moments)
	for i, l := range moments {
		for _, r := range deviceRows(l, requested) {
			list := byKind[r.Owner]
			n, known := place[[2]string{r.Owner, r.Key}]
			if !known {
				n = len(list)
				place[[2]string{r.Owner, r.Key}] = n
				name, st := deviceOwnerName(s, l.By, r, l.Sample.ShareKnown)
				list = append(list, deviceOwner{name, st, make([]int64, len(moments))})
			}
			list[n].bytes[i] = r.Bytes
			byKind[r.Owner] = list
		}
	}
	limit := p.RowLimit()
	if !s.Asked {
		limit = min(limit, shortOwners)
	}
	var owners []deviceOwner
	for _, of := range deviceOwnerKinds {
		owners = append(owners, foldDevice(byKind[of.kind], limit)...)
	}
	return owners
}

// deviceOwnerKinds are the kinds of owners in the order in which they are printed, with the names of those that every
// device has once.
var deviceOwnerKinds = []struct {
	kind, name string
	style      layout.Style
}{
	{report.OwnerBlocks, "", layout.Blocks},
	{ownerRest, "rounding and unsplit remainder of blocks", layout.Slack},
	{report.OwnerSlack, "", layout.Slack},
	{report.OwnerOutside, "", layout.Outside},
	{report.OwnerRounding, "rounding to 512 B", layout.Slack},
	{report.OwnerPoolIdle, "idle in memory pools", layout.Slack},
	{report.OwnerGraphPool, "memory pool of graphs", layout.Slack},
	{report.OwnerContext, "CUDA context and code", layout.Plain},
	{report.OwnerOthers, "other processes", layout.Plain},
	{report.OwnerKept, "kept by driver and firmware", layout.Plain},
	{report.OwnerUnlisted, "in no listed process", layout.Plain},
	{report.OwnerRemainder, "unexplained", layout.Plain},
}

// ownerRest is the owner of what blocks have beyond what was requested.
const ownerRest = "rest"

// requestsKnown reports whether it is known of every block what was requested, and makes a difference.
func requestsKnown(moments []*report.DeviceLedger) bool {
	differs := false
	for _, l := range moments {
		for _, r := range l.Rows {
			if r.Owner != report.OwnerBlocks {
				continue
			}
			if r.Requested == nil ||
				int64(r.Requested.Bytes+r.Requested.RestBytes+r.Requested.UnknownBytes) != r.Bytes {
				return false
			}
			differs = differs || r.Requested.RestBytes > 0
		}
	}
	return differs
}

// deviceRows are a ledger's rows; requested: blocks by requested bytes, and the rest as a separate row.
func deviceRows(l *report.DeviceLedger, requested bool) []report.DeviceRow {
	if !requested {
		return l.Rows
	}
	rows := slices.Clone(l.Rows)
	var rest int64
	for i := range rows {
		if r := rows[i].Requested; rows[i].Owner == report.OwnerBlocks {
			rows[i].Bytes -= int64(r.RestBytes)
			rest += int64(r.RestBytes)
		}
	}
	return append(rows, report.DeviceRow{Owner: ownerRest, Bytes: rest})
}

// foldDevice keeps the owners with most bytes at some moment and sums up the rest.
func foldDevice(list []deviceOwner, limit int) []deviceOwner {
	slices.SortStableFunc(list, func(a, b deviceOwner) int {
		return cmp.Compare(slices.Max(b.bytes), slices.Max(a.bytes))
	})
	return layout.Fewer(list, limit, func(hidden []deviceOwner) deviceOwner {
		rest := deviceOwner{name: layout.Plural(uint64(len(hidden)), "more row", "more rows"), style: hidden[0].style,
			bytes: make([]int64, len(hidden[0].bytes))}
		for _, o := range hidden {
			for i, bytes := range o.bytes {
				rest.bytes[i] += bytes
			}
		}
		return rest
	})
}

func deviceOwnerName(s *report.Summary, by string, r report.DeviceRow, shareKnown bool) (name string, st layout.Style) {
	for _, of := range deviceOwnerKinds {
		if of.kind == r.Owner {
			name, st = of.name, of.style
		}
	}
	switch {
	case r.Owner == report.OwnerBlocks:
		name = sanitize.Text(layout.KeyName(by, cmp.Or(r.Label, r.Key)))
	case r.Owner == report.OwnerOutside:
		name = sanitize.Text(r.Key) + " (driver)"
	case r.Owner == report.OwnerSlack:
		name = layout.FrameworkName(s.Versions) + " reserved, unused (slack)"
	case r.Owner == report.OwnerRemainder && !shareKnown:
		name = "context, code, other processes"
	}
	return name, st
}

// writeDeviceRemarks prints what the reader needs to interpret the table.
func writeDeviceRemarks(p *layout.Page, moments []*report.DeviceLedger) {
	l := moments[len(moments)-1]
	var unexplained int64
	for _, r := range l.Rows {
		if r.Owner == report.OwnerRemainder {
			unexplained = r.Bytes
		}
	}
	switch {
	case !l.Sample.ShareKnown:
		p.Item("The device did not tell this process from others.")
	case unexplained > 0 && l.PartialPageBytes > 0:
		p.Item(fmt.Sprintf("Pages of 2 MiB that are used in part explain up to %s of what is unexplained.",
			layout.Bytes(l.PartialPageBytes)))
	case unexplained < 0:
		p.Item("Less is in use than was tracked: a free was missed, or memory is shared.")
	}
	for _, l := range moments {
		if !l.Sample.Settled {
			p.Item("Memory changed while the device was asked " + layout.Moment(l.Sample.TimeNS) +
				": the last rows are off by that much.")
		}
	}
}

// DeviceSheets are the memory of each device by owner; if that is unknown, the reason.
func DeviceSheets(s *report.Summary, rows int) []layout.Sheet {
	all := *s
	all.Asked = true // every moment that the ledger has, and every owner
	return layout.SheetsOf(rows, func(p *layout.Page) { writeDeviceLedgers(p, &all) })
}
