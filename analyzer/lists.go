package analyzer

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func (c *collector) deviceList() []Device {
	slots := max(len(c.details[AccountDriver].devices), len(c.details[AccountFramework].devices), len(c.holding.devices), len(c.sizes.devices))
	known := make(map[int16]Device)
	for _, d := range c.resolver.tables.Devices() {
		if c.filter.hasDevice(d.Index) {
			known[d.Index] = Device{Index: d.Index, Name: d.Name, UUID: d.UUID, TotalBytes: d.TotalBytes}
		}
	}
	fromDriver := c.holding.fromDriver()
	for slot := range slots {
		index := int16(slot - 1)
		if !c.filter.hasDevice(index) {
			continue
		}
		d, listed := known[index]
		d.Index = index
		d.Driver = c.details[AccountDriver].deviceLevel(slot)
		d.Framework = c.details[AccountFramework].deviceLevel(slot)
		d.Sizes = c.sizes.value(slot)
		if slot < len(c.holding.devices) && c.holding.source() != "" {
			held := &c.holding.devices[slot]
			d.ReservedBytesCurrent = held.current(c.holding.library, fromDriver)
			d.ReservedBytesPeak = held.peak(c.holding.library, fromDriver)
			if held.counted {
				last := held.last
				d.Reported = &last
			}
		}
		if listed || !d.Driver.Empty() || !d.Framework.Empty() {
			known[index] = d
		}
	}
	list := make([]Device, 0, len(known))
	for _, d := range known {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Device) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

func (d *detail) deviceLevel(slot int) Level {
	if slot < len(d.devices) {
		return d.devices[slot].level()
	}
	return Level{}
}

// groupList makes the groups in the order asked for, the framework's before the driver's.
func (c *collector) groupList(s *Summary) []Group {
	device := "all"
	if c.filter != nil && c.filter.devices != nil {
		var list []string
		for _, index := range slices.Sorted(maps.Keys(c.filter.devices)) {
			list = append(list, strconv.Itoa(int(index)))
		}
		device = strings.Join(list, ",")
	}
	groups := []Group{}
	for g, by := range c.groupings {
		for _, a := range c.detailed(s) {
			groups = append(groups, Group{By: by.name, Level: a.String(), Device: device, Rows: c.groupRows(a, g)})
		}
	}
	return groups
}

// groupRows names the rows, puts rows of the same name together, and sorts them by their share of the peak.
func (c *collector) groupRows(a Account, g int) []Row {
	d := c.details[a]
	rows := []Row{}
	byKey := make(map[string]int)
	for n := range d.groups[g].rows {
		v := &d.groups[g].rows[n]
		key, label := c.rowName(a, g, n)
		i, known := byKey[key]
		if !known {
			i = len(rows)
			byKey[key] = i
			rows = append(rows, Row{Key: key, Label: label})
		}
		row := &rows[i]
		row.PeakBytes += v.share.peak(d.total.epoch)
		row.LiveBytes += v.current
		row.AllocCount += v.allocs
		row.FreeCount += v.frees
		row.AllocBytes += v.allocBytes
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.PeakBytes, a.PeakBytes), cmp.Compare(b.LiveBytes, a.LiveBytes), cmp.Compare(b.AllocBytes, a.AllocBytes),
			strings.Compare(a.Key, b.Key))
	})
	return rows
}

func (c *collector) markList() []Mark {
	list := []Mark{}
	for _, m := range c.marks {
		m.Name = c.resolver.tables.String(m.id)
		list = append(list, m.Mark)
	}
	return list
}

// bestGrouping picks from the default groupings the one that says most: tags if the program set any, else libraries if the stacks name any, else calls.
func bestGrouping(s *Summary) string {
	for _, by := range []struct{ name, unknown string }{{"tag", Untagged}, {"library", UnknownLibrary}} {
		group := s.Group(by.name, s.MainLevel())
		if group != nil && slices.ContainsFunc(group.Rows, func(r Row) bool { return r.Key != by.unknown }) {
			return by.name
		}
	}
	return "api"
}
