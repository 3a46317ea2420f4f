package analyzer

import (
	"strings"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// deviceReport returns nil where the recorder did not look at the devices at all.
func (c *answer) deviceReport(info trace.Info, s *report.Summary) *report.DeviceReport {
	status := info["nvml"]
	if status == "" && len(c.device.Samples.Devices) == 0 || c.filter.Narrowed() {
		return nil
	}
	r := &report.DeviceReport{Status: "on", Notes: []string{}, Devices: []report.DeviceSamples{}}
	if why, off := strings.CutPrefix(status, "off: "); off {
		r.Status, r.Why = "off", why
	} else if why, stopped := strings.CutPrefix(status, "stopped: "); stopped {
		r.Why = why
	}
	for _, key := range []string{"nvml.share", "nvml.list", "nvml.slice", "nvml.device", "nvml.exit"} {
		if info[key] != "" && (key != "nvml.device" || !c.allSampled(s)) {
			r.Notes = append(r.Notes, info[key])
		}
	}
	c.noteMoments()
	for slot := range c.device.Samples.Devices {
		if book := &c.device.Samples.Devices[slot]; book.Count > 0 {
			r.Devices = append(r.Devices, report.DeviceSamples{Index: int16(slot - 1), SampleCount: book.Count,
				Ledgers: c.deviceLedgers(slot, s), Samples: book.List})
		}
	}
	return r
}

// allSampled reports whether every device that the program used was sampled at some time: then an answer before that,
// such as that nothing was in use, was only early.
func (c *collector) allSampled(s *report.Summary) bool {
	for _, d := range s.Devices {
		if slot := int(d.Index) + 1; d.Driver.AllocCount > 0 && (slot >= len(c.device.Samples.Devices) ||
			c.device.Samples.Devices[slot].Count == 0) {
			return false
		}
	}
	return len(s.Devices) > 0
}

// deviceLedgers makes the ledgers of a device: at the moment that was asked for, or at the highest and at the last
// sample.
func (c *answer) deviceLedgers(slot int, s *report.Summary) []report.DeviceLedger {
	book := c.picks.of(slot)
	list := []report.DeviceLedger{}
	add := func(m *deviceMoment, label string) {
		for _, by := range c.groupings {
			if m != nil {
				list = append(list, c.deviceLedger(slot, m, by, label, s))
			}
		}
	}
	if !c.At.IsZero() {
		add(book.nearestTo(c.At), c.At.String())
		return list
	}
	if book.highest != book.latest {
		add(book.highest, report.MomentHighest)
	}
	add(book.latest, report.MomentLast)
	return list
}

func (c *answer) deviceLedger(slot int, m *deviceMoment, by *profile.Grouping, label string,
	s *report.Summary) report.DeviceLedger {
	l := report.DeviceLedger{By: by.Name, Moment: label, Sample: m.sample, Rows: c.trackedRows(m, by),
		PartialPageBytes: m.sizes.PartialPages()}
	for _, d := range s.Devices {
		if d.Index == int16(slot-1) {
			l.TotalBytes = d.TotalBytes + m.sample.KeptBytes
		}
	}
	v := &m.sample
	add := func(owner string, bytes int64, always bool) {
		if bytes != 0 || always {
			l.Rows = append(l.Rows, report.DeviceRow{Owner: owner, Bytes: bytes})
		}
	}
	add(report.OwnerRounding, int64(m.sizes.RoundedBytes-m.sizes.RequestedBytes), false)
	add(report.OwnerPoolIdle, int64(m.sizes.PoolIdleBytes), false)
	add(report.OwnerGraphPool, int64(m.sizes.GraphPoolBytes), false)
	add(report.OwnerContext, int64(v.ContextBytes), false)
	add(report.OwnerOthers, int64(v.OthersBytes), false)
	add(report.OwnerKept, int64(v.KeptBytes), false)
	var unlisted int64
	if v.ShareKnown {
		unlisted = int64(v.UsedBytes - v.OwnBytes - v.OthersBytes - v.KeptBytes)
	}
	add(report.OwnerUnlisted, unlisted, false)
	add(report.OwnerRemainder, v.RemainderBytes-unlisted, true)
	return l
}

// trackedRows lists the owners of the driver's memory on a device, which the rows add up to: a framework's blocks, its
// allocator's slack and the memory of other libraries, or without a framework the driver's blocks. A framework that
// took no driver memory under its own name has what is there through another library, and then nothing is outside.
func (c *answer) trackedRows(m *deviceMoment, by *profile.Grouping) []report.DeviceRow {
	if c.details[heap.AccountFramework].Total.Allocs == 0 {
		rows, _ := c.blockRows(m, heap.AccountDriver, by)
		return rows
	}
	rows, blocks := c.blockRows(m, heap.AccountFramework, by)
	slack := int64(m.sizes.RequestedBytes) - blocks
	var outside []report.DeviceRow
	if c.device.Holdings.FromDriver() {
		for _, r := range c.outsideRows(m.byLibrary) {
			outside = append(outside, report.DeviceRow{Owner: r.Owner, Key: r.Key, Bytes: int64(r.Bytes)})
			slack -= int64(r.Bytes)
		}
	}
	if slack != 0 {
		rows = append(rows, report.DeviceRow{Owner: report.OwnerSlack, Bytes: slack})
	}
	return append(rows, outside...)
}

// blockRows lists an account's keys, most first, and their sum.
func (c *answer) blockRows(m *deviceMoment, a heap.Account, by *profile.Grouping) (rows []report.DeviceRow, sum int64) {
	rows = []report.DeviceRow{}
	for _, r := range c.namedRows(by, m.held[a], c.requestedOf(a)) {
		rows = append(rows, report.DeviceRow{Owner: report.OwnerBlocks, Key: r.Key, Label: r.Label,
			Bytes: int64(r.LiveBytes), Requested: r.Requested})
		sum += int64(r.LiveBytes)
	}
	return rows, sum
}
