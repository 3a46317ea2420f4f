package analyzer

import (
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/device"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
)

// answer adds nothing where the recorder did not look at the devices at all.
func (f *sampleFigure) answer(q *query, s *report.Summary) {
	info, samples := q.src.Info(), &f.r.device.Samples
	status := info["nvml"]
	if status == "" && len(samples.Devices) == 0 || q.accounts.filter.Narrowed() {
		return
	}
	r := &report.DeviceReport{Status: "on", Notes: []string{}, Devices: []report.DeviceSamples{}}
	if why, off := strings.CutPrefix(status, "off: "); off {
		r.Status, r.Why = "off", why
	} else if why, stopped := strings.CutPrefix(status, "stopped: "); stopped {
		r.Why = why
	}
	for _, key := range []string{"nvml.share", "nvml.list", "nvml.slice", "nvml.device", "nvml.exit"} {
		if info[key] != "" && (key != "nvml.device" || !allSampled(samples, s)) {
			r.Notes = append(r.Notes, info[key])
		}
	}
	f.noteMoments()
	for slot := range samples.Devices {
		if book := &samples.Devices[slot]; book.Count > 0 {
			r.Devices = append(r.Devices, report.DeviceSamples{Index: int16(slot - 1), SampleCount: book.Count,
				Ledgers: f.ledgers(q, slot, s), Samples: book.List})
		}
	}
	s.DeviceLedger = r
}

// allSampled reports whether every device that the program used was sampled at some time: then an answer before that,
// such as that nothing was in use, was only early.
func allSampled(samples *device.Samples, s *report.Summary) bool {
	for _, d := range s.Devices {
		if slot := int(d.Index) + 1; d.Driver.AllocCount > 0 && (slot >= len(samples.Devices) ||
			samples.Devices[slot].Count == 0) {
			return false
		}
	}
	return len(s.Devices) > 0
}

// ledgers makes the ledgers of a device: at the moment that was asked for, or at the highest and at the last
// sample.
func (f *sampleFigure) ledgers(q *query, slot int, s *report.Summary) []report.DeviceLedger {
	book := f.of(slot)
	list := []report.DeviceLedger{}
	add := func(m *deviceMoment, label string) {
		for _, by := range q.groupings {
			if m != nil {
				list = append(list, f.ledger(q, slot, m, by, label, s))
			}
		}
	}
	if !q.At.IsZero() {
		add(book.nearestTo(q.At), q.At.String())
		return list
	}
	if book.highest != book.latest {
		add(book.highest, report.MomentHighest)
	}
	add(book.latest, report.MomentLast)
	return list
}

func (f *sampleFigure) ledger(q *query, slot int, m *deviceMoment, by *profile.Grouping, label string,
	s *report.Summary) report.DeviceLedger {
	l := report.DeviceLedger{By: by.Name, Moment: label, Sample: m.sample, Rows: f.trackedRows(q, m, by),
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
func (f *sampleFigure) trackedRows(q *query, m *deviceMoment, by *profile.Grouping) []report.DeviceRow {
	if q.accounts.details[heap.AccountFramework].Total.Allocs == 0 {
		rows, _ := q.blockRows(m, heap.AccountDriver, by)
		return rows
	}
	rows, blocks := q.blockRows(m, heap.AccountFramework, by)
	slack := int64(m.sizes.RequestedBytes) - blocks
	var outside []report.DeviceRow
	if f.r.device.Holdings.FromDriver() {
		for _, r := range q.outsideRows(m.byLibrary) {
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
func (q *query) blockRows(m *deviceMoment, a heap.Account, by *profile.Grouping) (rows []report.DeviceRow, sum int64) {
	rows = []report.DeviceRow{}
	for _, r := range q.namedRows(by, m.held[a], q.requestedOf(a)) {
		rows = append(rows, report.DeviceRow{Owner: report.OwnerBlocks, Key: r.Key, Label: r.Label,
			Bytes: int64(r.LiveBytes), Requested: r.Requested})
		sum += int64(r.LiveBytes)
	}
	return rows, sum
}
