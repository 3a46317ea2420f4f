package analyzer

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/device"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

func (q *query) deviceList() []report.Device {
	window, devices, filter := q.replayer.window, &q.replayer.device, q.accounts.filter
	driver, framework := q.accounts.details[heap.AccountDriver], q.accounts.details[heap.AccountFramework]
	slots := max(len(driver.Devices), len(framework.Devices), len(devices.Holdings.Devices), len(devices.Sizes.Devices))
	known := make(map[int16]report.Device)
	for _, d := range q.resolver.Tables.Devices() {
		if filter.HasDevice(d.Index) {
			known[d.Index] = report.Device{Index: d.Index, Name: d.Name, UUID: d.UUID, TotalBytes: d.TotalBytes}
		}
	}
	for slot := range slots {
		index := int16(slot - 1)
		if !filter.HasDevice(index) {
			continue
		}
		d, listed := known[index]
		d.Index = index
		d.Driver = window.level(driver.DeviceLevel(slot), heap.AccountDriver, slot)
		d.Framework = window.level(framework.DeviceLevel(slot), heap.AccountFramework, slot)
		d.Sizes = devices.Sizes.Value(slot)
		if slot < len(devices.Holdings.Devices) && devices.Holdings.Source() != "" {
			held := &devices.Holdings.Devices[slot]
			d.ReservedBytesCurrent = devices.Holdings.Current(slot)
			d.ReservedBytesPeak = devices.Holdings.Peak(slot)
			if held.Counted {
				last := held.Last
				d.Reported = &last
			}
		}
		if listed || !d.Driver.Empty() || !d.Framework.Empty() {
			known[index] = d
		}
	}
	list := make([]report.Device, 0, len(known))
	for _, d := range known {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b report.Device) int { return cmp.Compare(a.Index, b.Index) })
	return list
}

// groupList makes the groups in the order asked for, the framework's before the driver's.
func (q *query) groupList(s *report.Summary) []report.Group {
	device := "all"
	if q.accounts.filter != nil && q.accounts.filter.Devices != nil {
		var list []string
		for _, index := range slices.Sorted(maps.Keys(q.accounts.filter.Devices)) {
			list = append(list, strconv.Itoa(int(index)))
		}
		device = strings.Join(list, ",")
	}
	groups := []report.Group{}
	for _, by := range q.groupings {
		for _, a := range q.detailed(s) {
			groups = append(groups, report.Group{By: by.Name, Level: a.String(), Device: device,
				Rows: q.groupRows(a, by)})
		}
	}
	return groups
}

// groupRows names the rows, puts rows of the same name together, and sorts them by their share of the peak.
func (q *query) groupRows(a heap.Account, by *profile.Grouping) []report.Row {
	d := q.accounts.details[a]
	rows := []report.Row{}
	index := profile.NewRowSet(q.rowIndex(by))
	row := func(id uint64) *report.Row {
		n, isNew := index.Row(id)
		if isNew {
			key, label := index.Name(id)
			rows = append(rows, report.Row{Key: key, Label: label})
		}
		return &rows[n]
	}
	for n := range d.Cells.List {
		// what stood at the peak may be called something else since
		if v := &d.Cells.List[n]; v.Allocs > 0 || v.Peak(d.Total.Epoch) > 0 {
			r := row(index.By.ID(q.resolver, &v.Origin))
			r.PeakBytes += v.Peak(d.Total.Epoch)
			r.LiveBytes += v.Current
			addCounts(r, v.Counts)
			if a == heap.AccountFramework && q.certain.bounds == nil {
				atPeak, live := q.accounts.requests.OfCell(v, d.Total.Epoch)
				r.RequestedAtPeak, r.RequestedLive = report.PlusRequested(r.RequestedAtPeak, atPeak),
					report.PlusRequested(r.RequestedLive, live)
			}
			if c := &q.certain; c.bounds != nil {
				atPeak := func(s *heap.Share) uint64 { return s.Peak(d.Total.Epoch) }
				r.PeakBytesLower = report.Plus(r.PeakBytesLower, c.lowerShare(&d.Cells, n, atPeak(&v.Share), atPeak))
				r.LiveBytesLower = report.Plus(r.LiveBytesLower, c.lowerShare(&d.Cells, n, v.Current, currentShare))
			}
		}
	}
	for id, v := range d.Cells.Retired(by) {
		r := row(id)
		if addCounts(r, v); q.certain.bounds != nil {
			r.PeakBytesLower, r.LiveBytesLower = report.Plus(r.PeakBytesLower, 0), report.Plus(r.LiveBytesLower, 0)
		}
	}
	q.replayer.window.uncount(a, func(o *profile.Origin, older profile.Counts) {
		r := row(index.By.ID(q.resolver, o))
		r.AllocCount -= older.Allocs
		r.AllocBytes -= older.AllocBytes
	})
	slices.SortFunc(rows, func(a, b report.Row) int {
		return cmp.Or(cmp.Compare(b.PeakBytes, a.PeakBytes), cmp.Compare(b.LiveBytes, a.LiveBytes),
			cmp.Compare(b.AllocBytes, a.AllocBytes),
			strings.Compare(a.Key, b.Key))
	})
	return rows
}

func addCounts(r *report.Row, v profile.Counts) {
	r.AllocCount += v.Allocs
	r.FreeCount += v.Frees
	r.AllocBytes += v.AllocBytes
}

// bestGrouping picks from the default groupings the one that says most: tags if the program set any, else places if
// they are the program's own, else libraries if the stacks name any, else calls.
func bestGrouping(s *report.Summary) string {
	if ownSites(s) && !s.HasKeys("tag", report.Untagged) {
		if drivenByLibrary(s) {
			return "inner"
		}
		return "site"
	}
	for _, by := range []struct{ name, unknown string }{{"tag", report.Untagged}, {"library", report.UnknownLibrary}} {
		if s.HasKeys(by.name, by.unknown) {
			return by.name
		}
	}
	return "api"
}

// drivenByLibrary reports whether one line of the program has most of the memory and lines of a library beneath it say
// more, as where a trainer runs the loop.
func drivenByLibrary(s *report.Summary) bool {
	if s.Sites == nil || len(s.Sites.Places) == 0 || !s.Sites.Places[0].User {
		return false
	}
	top, inner := s.Sites.Places[0], s.Ledger("inner")
	return inner != nil && inner.SeesThrough(top.Key, top.Bytes, s.Sites.WholeBytes)
}

// ownSites reports whether places of the program itself were found by name.
func ownSites(s *report.Summary) bool {
	return s.Sites != nil && slices.ContainsFunc(s.Sites.Places, func(p report.Site) bool { return p.User && p.Named })
}

// allocatorReport is what the run's allocator was told; nil where PyTorch took no part and nobody asked how much is
// free.
func (q *query) allocatorReport(info trace.Info, s *report.Summary) *report.Allocator {
	v := q.replayer.allocator.Value(q.accounts.details[heap.AccountFramework].Total.Epoch, q.calledBy)
	blocks := !s.Framework.Empty() && s.Versions["torch"] != ""
	if !blocks && len(v.Asked) == 0 {
		return nil
	}
	if blocks {
		v.StreamCount, v.PoolCount = q.resolver.Places.Counts()
		v.StreamCount++ // the default one
		v.NotRecorded = device.NotRecorded(info)
	}
	return v
}

// calledBy names the place in the program and the library that a call came from.
func (q *query) calledBy(native, python trace.StackID) (place, library string) {
	o := profile.Origin{Stack: native, PyStack: q.accounts.links.Stack(&trace.Event{Stack: native, PyStack: python})}
	if native == 0 && python == 0 {
		return "", ""
	}
	return profile.SiteKey(q.resolver, profile.StackID(q.resolver, &o)),
		q.resolver.Libraries.Name(q.resolver.Libraries.Of(native))
}
