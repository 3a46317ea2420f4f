package analyzer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
	"memtrace/analyzer/rules"
)

// Where the figure comes from that tracked memory is taken from.
const (
	UntrackableExpected = "expected" // Options.Expected, at the ledgers' moment
	UntrackableDevice   = "device"   // the device's word on this process, at the sample of the device ledger
)

// addCategories makes the lists of all groupings that are made of rules. The ledgers must have been made.
func (c *collector) addCategories(s *report.Summary, m *moment, main heap.Account, opts *Options) {
	for _, by := range c.groupings {
		k := by.Categories
		if k == nil {
			continue
		}
		l := s.Ledger(by.Name)
		v := report.Categories{By: by.Name, Rules: k.Set.Name, Mode: k.Set.Mode.String(), Level: l.Level, Moment: l.Moment, TimeNS: l.TimeNS}
		v.Rows = c.categoryRows(k, m.held[main], opts)
		for _, h := range m.held[main] {
			v.TrackedBytes += h.Bytes
		}
		for _, row := range v.Rows {
			v.SumBytes += row.Bytes
		}
		v.ExcessBytes = v.SumBytes - v.TrackedBytes
		if opts.Expected > 0 && !c.filter.Narrowed() {
			v.Untrackable = &report.Untrackable{From: UntrackableExpected, ReportedBytes: opts.Expected, TrackedBytes: l.WholeBytes, Bytes: int64(opts.Expected - l.WholeBytes)}
		} else {
			v.Untrackable = untrackableOnDevices(s, by.Name)
		}
		s.Categories = append(s.Categories, v)
	}
}

// categorySum is a row in the making.
type categorySum struct {
	bytes   uint64
	entries map[report.CategoryEntry]uint64 // entries without their bytes
}

func (c *collector) categoryRows(k *profile.Categorizer, list []profile.Held, opts *Options) []report.Category {
	sums := map[string]*categorySum{rules.Others: {entries: make(map[report.CategoryEntry]uint64)}}
	for i := range list {
		h := &list[i]
		entry := report.CategoryEntry{Tag: c.resolver.TagOf(h.Tag)}
		if opts.Sites {
			entry.Site, entry.User = c.resolver.PlaceOf(profile.StackID(nil, &h.Origin))
		}
		categories := k.Of(&c.resolver, k.ID(&h.Origin))
		if len(categories) == 0 {
			categories = []string{rules.Others}
		}
		for _, name := range categories {
			sum := sums[name]
			if sum == nil {
				sum = &categorySum{entries: make(map[report.CategoryEntry]uint64)}
				sums[name] = sum
			}
			sum.bytes += h.Bytes
			sum.entries[entry] += h.Bytes
		}
	}
	rows := make([]report.Category, 0, len(sums))
	for name, sum := range sums {
		rows = append(rows, sum.row(name, opts.Entries))
	}
	slices.SortFunc(rows, func(a, b report.Category) int {
		return cmp.Or(cmp.Compare(isOthers(a), isOthers(b)), cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Key, b.Key))
	})
	return rows
}

func isOthers(r report.Category) int {
	if r.Key == rules.Others {
		return 1
	}
	return 0
}

// row keeps the largest entries; limit is Options.Entries.
func (s *categorySum) row(name string, limit int) report.Category {
	row := report.Category{Key: name, Bytes: s.bytes, EntryCount: uint64(len(s.entries)), Entries: []report.CategoryEntry{}}
	for entry, bytes := range s.entries {
		entry.Bytes = bytes
		row.Entries = append(row.Entries, entry)
	}
	slices.SortFunc(row.Entries, func(a, b report.CategoryEntry) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Tag, b.Tag), strings.Compare(a.Site, b.Site))
	})
	if limit >= 0 {
		row.Entries = slices.Clip(row.Entries[:min(len(row.Entries), limit)])
	}
	return row
}

// untrackableOnDevices sums up, over the devices that know this process's share, what they count for it and the trace does not: at the moment that was asked for, or at the
// sample at which the process used most. nil if no device knows.
func untrackableOnDevices(s *report.Summary, by string) *report.Untrackable {
	if s.DeviceLedger == nil {
		return nil
	}
	var sum *report.Untrackable
	for _, device := range s.DeviceLedger.Devices {
		for _, l := range device.Ledgers { // the highest sample comes before the last one
			if l.By != by || !l.Sample.ShareKnown {
				continue
			}
			if sum == nil {
				sum = &report.Untrackable{From: UntrackableDevice}
			}
			sum.ReportedBytes += l.Sample.OwnBytes
			sum.TrackedBytes += l.Sample.TrackedBytes
			sum.Bytes = int64(sum.ReportedBytes - sum.TrackedBytes)
			break
		}
	}
	return sum
}

// categoryNotes warn of categories that hold blocks twice.
func categoryNotes(list []report.Categories) (notes []string) {
	for _, v := range list {
		if v.Mode == rules.MultiMatch.String() {
			notes = append(notes, fmt.Sprintf("By %s, a block counts in every category that it matches: the categories add up to %s, which is %s more than the %s that were tracked.",
				v.By, report.SizeText(v.SumBytes), report.SizeText(v.ExcessBytes), report.SizeText(v.TrackedBytes)))
		}
	}
	return notes
}
