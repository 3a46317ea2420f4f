package analyzer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/rules"
)

// Categories divide what was held at the ledgers' moment by a set of rules.
type Categories struct {
	By           string       `json:"by"`
	Rules        string       `json:"rules"` // name of the set
	Mode         string       `json:"mode"`  // "first-match" or "multi-match"
	Level        string       `json:"level"`
	Moment       string       `json:"moment"`
	TimeNS       int64        `json:"time_ns"`
	TrackedBytes uint64       `json:"tracked_bytes"` // held by blocks of the level
	SumBytes     uint64       `json:"sum_bytes"`     // of all rows
	ExcessBytes  uint64       `json:"excess_bytes"`  // SumBytes less TrackedBytes: counted more than once; 0 unless multi-match
	Rows         []Category   `json:"rows"`          // most first, then rules.Others, which is always there
	Untrackable  *Untrackable `json:"untrackable,omitempty"`
}

// Category is one row.
type Category struct {
	Key        string          `json:"key"`
	Bytes      uint64          `json:"bytes"`
	EntryCount uint64          `json:"entry_count"` // tags and places that it is made of
	Entries    []CategoryEntry `json:"entries"`     // the largest of them, as many as Options.Entries
}

// CategoryEntry is what one tag held from one place.
type CategoryEntry struct {
	Tag   string `json:"tag,omitempty"`
	Site  string `json:"site,omitempty"` // only with Options.Sites
	User  bool   `json:"user"`           // the site is the program's own code
	Bytes uint64 `json:"bytes"`
}

// Untrackable is what somebody else counts beyond what the trace accounts for. It may be negative.
type Untrackable struct {
	From          string `json:"from"`           // UntrackableExpected or UntrackableDevice
	ReportedBytes uint64 `json:"reported_bytes"` // by whom From says
	TrackedBytes  uint64 `json:"tracked_bytes"`  // by the trace, of the driver's memory, at the same moment
	Bytes         int64  `json:"bytes"`          // the difference
}

// Where the figure comes from that tracked memory is taken from.
const (
	UntrackableExpected = "expected" // Options.Expected, at the ledgers' moment
	UntrackableDevice   = "device"   // the device's word on this process, at the sample of the device ledger
)

// addCategories makes the lists of all groupings that are made of rules. The ledgers must have been made.
func (c *collector) addCategories(s *Summary, m *moment, main Account, opts *Options) {
	for _, by := range c.groupings {
		k := by.categories
		if k == nil {
			continue
		}
		l := s.Ledger(by.name)
		v := Categories{By: by.name, Rules: k.set.Name, Mode: k.set.Mode.String(), Level: l.Level, Moment: l.Moment, TimeNS: l.TimeNS}
		v.Rows = c.categoryRows(k, m.held[main], opts)
		for _, h := range m.held[main] {
			v.TrackedBytes += h.bytes
		}
		for _, row := range v.Rows {
			v.SumBytes += row.Bytes
		}
		v.ExcessBytes = v.SumBytes - v.TrackedBytes
		if opts.Expected > 0 && !c.filter.narrowed() {
			v.Untrackable = &Untrackable{UntrackableExpected, opts.Expected, l.WholeBytes, int64(opts.Expected - l.WholeBytes)}
		} else {
			v.Untrackable = untrackableOnDevices(s, by.name)
		}
		s.Categories = append(s.Categories, v)
	}
}

// categorySum is a row in the making.
type categorySum struct {
	bytes   uint64
	entries map[CategoryEntry]uint64 // entries without their bytes
}

func (c *collector) categoryRows(k *categorizer, list []held, opts *Options) []Category {
	sums := map[string]*categorySum{rules.Others: {entries: make(map[CategoryEntry]uint64)}}
	for i := range list {
		h := &list[i]
		entry := CategoryEntry{Tag: c.resolver.tagOf(h.tag)}
		if opts.Sites {
			entry.Site, entry.User = c.resolver.placeOf(stackID(nil, &h.origin))
		}
		categories := k.of(&c.resolver, k.id(&h.origin))
		if len(categories) == 0 {
			categories = []string{rules.Others}
		}
		for _, name := range categories {
			sum := sums[name]
			if sum == nil {
				sum = &categorySum{entries: make(map[CategoryEntry]uint64)}
				sums[name] = sum
			}
			sum.bytes += h.bytes
			sum.entries[entry] += h.bytes
		}
	}
	rows := make([]Category, 0, len(sums))
	for name, sum := range sums {
		rows = append(rows, sum.row(name, opts.Entries))
	}
	slices.SortFunc(rows, func(a, b Category) int {
		return cmp.Or(cmp.Compare(isOthers(a), isOthers(b)), cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Key, b.Key))
	})
	return rows
}

func isOthers(r Category) int {
	if r.Key == rules.Others {
		return 1
	}
	return 0
}

// row keeps the largest entries; limit is Options.Entries.
func (s *categorySum) row(name string, limit int) Category {
	row := Category{Key: name, Bytes: s.bytes, EntryCount: uint64(len(s.entries)), Entries: []CategoryEntry{}}
	for entry, bytes := range s.entries {
		entry.Bytes = bytes
		row.Entries = append(row.Entries, entry)
	}
	slices.SortFunc(row.Entries, func(a, b CategoryEntry) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Tag, b.Tag), strings.Compare(a.Site, b.Site))
	})
	if limit >= 0 {
		row.Entries = slices.Clip(row.Entries[:min(len(row.Entries), limit)])
	}
	return row
}

// untrackableOnDevices sums up, over the devices that know this process's share, what they count for it and the trace does not: at the moment that was asked for, or at the
// sample at which the process used most. nil if no device knows.
func untrackableOnDevices(s *Summary, by string) *Untrackable {
	if s.DeviceLedger == nil {
		return nil
	}
	var sum *Untrackable
	for _, device := range s.DeviceLedger.Devices {
		for _, l := range device.Ledgers { // the highest sample comes before the last one
			if l.By != by || !l.Sample.ShareKnown {
				continue
			}
			if sum == nil {
				sum = &Untrackable{From: UntrackableDevice}
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
func categoryNotes(list []Categories) (notes []string) {
	for _, v := range list {
		if v.Mode == rules.MultiMatch.String() {
			notes = append(notes, fmt.Sprintf("By %s, a block counts in every category that it matches: the categories add up to %s, which is %s more than the %s that were tracked.",
				v.By, SizeText(v.SumBytes), SizeText(v.ExcessBytes), SizeText(v.TrackedBytes)))
		}
	}
	return notes
}
