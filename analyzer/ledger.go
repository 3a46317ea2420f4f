package analyzer

import (
	"cmp"
	"slices"
	"strings"
)

// ledger says where the memory was at a moment, divided by one grouping. Beside a framework's blocks stand the slack of its allocator and the driver
// memory that it does not hold, so that the rows add up to what the device gave. Filters other than by device leave only the blocks.
func (c *collector) ledger(m *moment, main Account, g int, label string) Ledger {
	l := Ledger{By: c.groupings[g].name, Level: main.String(), Moment: label, TimeNS: m.time, Rows: []LedgerRow{}}
	for _, row := range c.momentRows(m, main, g) {
		l.Rows = append(l.Rows, LedgerRow{Owner: OwnerBlocks, Key: row.Key, Label: row.Label, Bytes: row.LiveBytes})
	}
	if main == AccountFramework && !c.filter.narrowed() {
		c.addDriverSide(&l, m)
	}
	for _, row := range l.Rows {
		l.WholeBytes += row.Bytes
	}
	return l
}

// addDriverSide adds what the driver gave beyond the framework's blocks.
func (c *collector) addDriverSide(l *Ledger, m *moment) {
	var reserved uint64
	for slot := range m.reported {
		if c.filter.hasDevice(int16(slot - 1)) {
			reserved += m.reservedOn(slot, &c.holding)
		}
	}
	if c.holding.source() != "" {
		l.SlackBytes = int64(reserved - m.live(AccountFramework))
	}
	if l.SlackBytes > 0 {
		l.Rows = append(l.Rows, LedgerRow{Owner: OwnerSlack, Key: "slack", Bytes: uint64(l.SlackBytes)})
	}
	if c.holding.fromDriver() {
		var shown [][]uint64
		for slot, byLibrary := range m.byLibrary {
			if c.filter.hasDevice(int16(slot - 1)) {
				shown = append(shown, byLibrary)
			}
		}
		l.Rows = append(l.Rows, c.outsideRows(shown...)...)
		return
	}
	if driver := m.live(AccountDriver); driver > reserved {
		l.Rows = append(l.Rows, LedgerRow{Owner: OwnerOutside, Key: UnknownLibrary, Bytes: driver - reserved})
	}
}

// outsideRows lists the driver memory, given by device and library, of every library but the framework's, most first.
func (c *collector) outsideRows(devices ...[]uint64) []LedgerRow {
	sums := make(map[ownerKey]uint64)
	for _, byLibrary := range devices {
		for library, bytes := range byLibrary {
			if bytes > 0 && uint32(library) != c.holding.library {
				sums[ownerKey{OwnerOutside, c.resolver.libraries.name(uint32(library))}] += bytes
			}
		}
	}
	return ownerRows(sums)
}

// momentRows returns a level's rows at a moment, most first.
func (c *collector) momentRows(m *moment, a Account, g int) []MomentRow {
	if g >= len(m.rows[a]) {
		return []MomentRow{}
	}
	return c.namedRows(a, g, m.rows[a][g])
}

// namedRows names the bytes by row of a level's grouping, most first, rows of the same name as one and rows without bytes left out.
func (c *collector) namedRows(a Account, g int, byRow []uint64) []MomentRow {
	rows := []MomentRow{}
	byKey := make(map[string]int)
	for n, bytes := range byRow {
		if bytes == 0 {
			continue
		}
		key, label := c.rowName(a, g, n)
		i, known := byKey[key]
		if !known {
			i = len(rows)
			byKey[key] = i
			rows = append(rows, MomentRow{Key: key, Label: label})
		}
		rows[i].LiveBytes += bytes
	}
	slices.SortFunc(rows, func(a, b MomentRow) int {
		return cmp.Or(cmp.Compare(b.LiveBytes, a.LiveBytes), strings.Compare(a.Key, b.Key))
	})
	return rows
}

// rowName returns the key and the label of a row.
func (c *collector) rowName(a Account, g, n int) (key, label string) {
	id := c.details[a].groups[g].index.ids[n]
	by := c.groupings[g]
	key = by.key(&c.resolver, id)
	if by.label != nil {
		label = by.label(&c.resolver, id)
	}
	return key, label
}
