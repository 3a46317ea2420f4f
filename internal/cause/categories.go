package cause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/profile"
	"memtrace/internal/rules"
)

// categorySum is a row in the making.
type categorySum struct {
	bytes   uint64
	entries map[report.CategoryEntry]uint64 // entries without their bytes

	requested *report.Requested
}

// CategoryRows divides what was held by category, with the largest entries of each, including places if sites is set.
// requested returns the request of a part, nil if unknown.
func CategoryRows(r *profile.Resolver, k *profile.Categorizer, list []profile.Held, sites bool, entries int,
	requested func(*profile.Held) *report.Requested) []report.Category {
	sums := map[string]*categorySum{rules.Others: {entries: make(map[report.CategoryEntry]uint64)}}
	for i := range list {
		h := &list[i]
		entry := report.CategoryEntry{Tag: r.TagOf(h.Tag)}
		if sites {
			entry.Site, entry.User = r.PlaceOf(profile.StackID(nil, &h.Origin))
		}
		categories := k.Of(r, k.ID(&h.Origin))
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
			sum.requested = report.PlusRequested(sum.requested, requested(h))
			sum.entries[entry] += h.Bytes
		}
	}
	rows := make([]report.Category, 0, len(sums))
	for name, sum := range sums {
		rows = append(rows, sum.row(name, entries))
	}
	slices.SortFunc(rows, func(a, b report.Category) int {
		return cmp.Or(cmp.Compare(isOthers(a), isOthers(b)), cmp.Compare(b.Bytes, a.Bytes),
			strings.Compare(a.Key, b.Key))
	})
	return rows
}

func isOthers(r report.Category) int {
	if r.Key == rules.Others {
		return 1
	}
	return 0
}

// row keeps the largest entries; limit is how many, negative: all.
func (s *categorySum) row(name string, limit int) report.Category {
	row := report.Category{Key: name, Bytes: s.bytes, EntryCount: uint64(len(s.entries)),
		Entries: []report.CategoryEntry{}, Requested: s.requested}
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

// UntrackableOnDevices sums up, over the devices that know this process's share, the memory that they count for it and
// the trace does not: at the requested moment, or at the sample at which the process used most. nil if no device has
// the figure.
func UntrackableOnDevices(s *report.Summary, by string) *report.Untrackable {
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
				sum = &report.Untrackable{From: report.UntrackableDevice}
			}
			sum.ReportedBytes += l.Sample.OwnBytes
			sum.TrackedBytes += l.Sample.TrackedBytes
			sum.Bytes = int64(sum.ReportedBytes - sum.TrackedBytes)
			break
		}
	}
	return sum
}

// CategoryNotes warn of categories that hold blocks twice.
func CategoryNotes(list []report.Categories) (notes []report.Finding) {
	for i, v := range list {
		if v.Mode == rules.MultiMatch.String() {
			text := fmt.Sprintf(
				"By %s, a block counts in every category that it matches: the categories add up to %s, which is %s more than the %s that were tracked.",
				v.By, report.SizeText(v.SumBytes), report.SizeText(v.ExcessBytes), report.SizeText(v.TrackedBytes))
			notes = append(notes, report.NewFinding("several-categories", text, v.ExcessBytes,
				fmt.Sprintf("categories[%d]", i)))
		}
	}
	return notes
}
