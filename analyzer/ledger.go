package analyzer

import (
	"cmp"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
)

// ledger says where the memory was at a moment, divided by one grouping. Beside a framework's blocks stand the slack of
// its allocator and the driver memory that it does not hold, so that the rows add up to what the device gave. Filters
// other than by device leave only the blocks.
func (q *query) ledger(m *moment.State, main heap.Account, by *profile.Grouping, label string) report.Ledger {
	l := report.Ledger{By: by.Name, Level: main.String(), Moment: label, TimeNS: m.Time, Rows: []report.LedgerRow{}}
	for _, row := range q.momentRows(m, main, by) {
		l.Rows = append(l.Rows, report.LedgerRow{Owner: report.OwnerBlocks, Key: row.Key, Label: row.Label,
			Bytes: row.LiveBytes, BytesLower: row.LiveBytesLower, Requested: row.Requested})
		l.Requested = report.PlusRequested(l.Requested, row.Requested)
	}
	if main == heap.AccountFramework && !q.accounts.filter.Narrowed() {
		q.addDriverSide(&l, m)
	}
	if q.certain.bounds != nil {
		boundLedger(&l, q.certain.exactMoment(m))
	}
	for _, row := range l.Rows {
		l.WholeBytes += row.Bytes
	}
	return l
}

// boundLedger adds the lower bounds of what is no block of the level: it is a difference, of which nothing is certain
// once records were lost.
func boundLedger(l *report.Ledger, exact bool) {
	l.BeforeLoss = exact
	for i := range l.Rows {
		if r := &l.Rows[i]; r.BytesLower == nil {
			r.BytesLower = report.Plus(nil, 0)
			if exact {
				*r.BytesLower = r.Bytes
			}
		}
	}
}

// addDriverSide adds what the driver gave beyond the framework's blocks.
func (q *query) addDriverSide(l *report.Ledger, m *moment.State) {
	var reserved uint64
	for slot := range m.Reported {
		if q.accounts.filter.HasDevice(int16(slot - 1)) {
			reserved += m.ReservedOn(slot, &q.replayer.device.Holdings)
		}
	}
	if q.replayer.device.Holdings.Source() != "" {
		l.SlackBytes = int64(reserved - m.Live(heap.AccountFramework))
	}
	for slot, bytes := range m.Waiting {
		if q.accounts.filter.HasDevice(int16(slot - 1)) {
			l.Waiting += bytes
		}
	}
	if l.SlackBytes > 0 {
		l.Rows = append(l.Rows, report.LedgerRow{Owner: report.OwnerSlack, Key: "slack", Bytes: uint64(l.SlackBytes)})
	}
	if q.replayer.device.Holdings.FromDriver() {
		var shown [][]uint64
		for slot, byLibrary := range m.ByLibrary {
			if q.accounts.filter.HasDevice(int16(slot - 1)) {
				shown = append(shown, byLibrary)
			}
		}
		l.Rows = append(l.Rows, q.outsideRows(shown...)...)
		return
	}
	if driver := m.Live(heap.AccountDriver); driver > reserved {
		l.Rows = append(l.Rows, report.LedgerRow{Owner: report.OwnerOutside, Key: report.UnknownLibrary,
			Bytes: driver - reserved})
	}
}

// outsideRows lists the driver memory, given by device and library, of every library but the framework's, most first.
func (q *query) outsideRows(devices ...[]uint64) []report.LedgerRow {
	sums := make(map[report.OwnerKey]uint64)
	for _, byLibrary := range devices {
		for library, bytes := range byLibrary {
			if bytes > 0 && !q.replayer.device.Holdings.Reports(uint32(library)) {
				sums[report.OwnerKey{Owner: report.OwnerOutside,
					Key: q.resolver.Libraries.Name(uint32(library))}] += bytes
			}
		}
	}
	return report.OwnerRows(sums)
}

// momentRows returns a level's rows at a moment, most first.
func (q *query) momentRows(m *moment.State, a heap.Account, by *profile.Grouping) []report.MomentRow {
	return q.namedRows(by, m.Held[a], q.requestedOf(a))
}

// requestedOf returns what says how much of an account's blocks was requested: nothing where nobody tells, and where
// records were lost.
func (q *query) requestedOf(a heap.Account) func(*profile.Held) *report.Requested {
	if a != heap.AccountFramework || q.certain.bounds != nil {
		return func(*profile.Held) *report.Requested { return nil }
	}
	return q.accounts.requests.OfHeld
}

// namedRows sums up what was held by a grouping's keys, most first, and leaves out rows without bytes.
func (q *query) namedRows(by *profile.Grouping, list []profile.Held,
	requested func(*profile.Held) *report.Requested) []report.MomentRow {
	rows := []report.MomentRow{}
	index := profile.NewRowSet(q.rowIndex(by))
	for i := range list {
		id := index.By.ID(q.resolver, &list[i].Origin)
		n, isNew := index.Row(id)
		if isNew {
			key, label := index.Name(id)
			rows = append(rows, report.MomentRow{Key: key, Label: label})
		}
		rows[n].LiveBytes += list[i].Bytes
		rows[n].Requested = report.PlusRequested(rows[n].Requested, requested(&list[i]))
		if q.certain.bounds != nil {
			rows[n].LiveBytesLower = report.Plus(rows[n].LiveBytesLower, q.certain.lowerHeld(&list[i]))
		}
	}
	slices.SortFunc(rows, func(a, b report.MomentRow) int {
		return cmp.Or(cmp.Compare(b.LiveBytes, a.LiveBytes), strings.Compare(a.Key, b.Key))
	})
	return rows
}

// rowIndex returns the index of a grouping. Every answer makes new ones, since more is known by then.
func (q *query) rowIndex(by *profile.Grouping) *profile.RowIndex {
	index := q.rowIndexes[by]
	if index == nil {
		index = profile.NewRowIndex(q.resolver, by)
		q.rowIndexes[by] = index
	}
	return index
}
