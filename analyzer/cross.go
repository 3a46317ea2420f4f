package analyzer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Cross divides what was held at the ledgers' moment by two groupings at once. Cells add up to their rows and columns, and these to the whole.
type Cross struct {
	By         [2]string     `json:"by"` // of the rows and of the columns
	Level      string        `json:"level"`
	Moment     string        `json:"moment"` // "peak", or what was asked for
	TimeNS     int64         `json:"time_ns"`
	WholeBytes uint64        `json:"whole_bytes"` // held by blocks of the level
	Columns    []CrossColumn `json:"columns"`     // most first
	Rows       []CrossRow    `json:"rows"`        // most first
}

// CrossColumn is one key of the second grouping.
type CrossColumn struct {
	Key   string `json:"key"`
	Label string `json:"label,omitempty"`
	Bytes uint64 `json:"bytes"`
}

// CrossRow is one key of the first grouping.
type CrossRow struct {
	Key   string   `json:"key"`
	Label string   `json:"label,omitempty"`
	Bytes uint64   `json:"bytes"`
	Cells []uint64 `json:"cells"` // by column
}

// Title returns what people read: the label, or the key.
func (c *CrossColumn) Title() string { return cmp.Or(c.Label, c.Key) }

// Title returns what people read: the label, or the key.
func (r *CrossRow) Title() string { return cmp.Or(r.Label, r.Key) }

// pickCross finds the two groupings of Options.Cross; nil if none were asked for.
func pickCross(wanted []string, byRules []*grouping) ([]*grouping, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	picked, err := pickGroupings(wanted, byRules)
	if err != nil {
		return nil, err
	}
	if len(wanted) != 2 || len(picked) != 2 {
		return nil, fmt.Errorf("a crossed table needs two different groupings; got %s", strings.Join(wanted, ", "))
	}
	return picked, nil
}

// crossTable crosses what an account held at a moment.
func (c *collector) crossTable(m *moment, a Account, label string) *Cross {
	v := &Cross{By: [2]string{c.crossed[0].name, c.crossed[1].name}, Level: a.String(), Moment: label, TimeNS: m.time, Columns: []CrossColumn{}, Rows: []CrossRow{}}
	var index [2]*rowIndex
	for i, by := range c.crossed {
		index[i] = &rowIndex{resolver: &c.resolver, by: by, byID: make(map[uint64]int), byKey: make(map[string]int)}
	}
	cells := make(map[[2]int]uint64)
	for i := range m.held[a] {
		h := &m.held[a][i]
		row, column := index[0].number(index[0].by.id(&c.resolver, &h.origin)), index[1].number(index[1].by.id(&c.resolver, &h.origin))
		cells[[2]int{row, column}] += h.bytes
		v.WholeBytes += h.bytes
	}
	rows, columns := make([]uint64, len(index[0].ids)), make([]uint64, len(index[1].ids))
	for at, bytes := range cells {
		rows[at[0]] += bytes
		columns[at[1]] += bytes
	}
	place := make([]int, len(columns))
	for n, at := range mostFirst(columns, index[1].keys) {
		key, label := index[1].name(index[1].ids[at])
		v.Columns = append(v.Columns, CrossColumn{Key: key, Label: label, Bytes: columns[at]})
		place[at] = n
	}
	rowAt := make([]int, len(rows))
	for n, at := range mostFirst(rows, index[0].keys) {
		key, label := index[0].name(index[0].ids[at])
		v.Rows = append(v.Rows, CrossRow{Key: key, Label: label, Bytes: rows[at], Cells: make([]uint64, len(columns))})
		rowAt[at] = n
	}
	for at, bytes := range cells {
		v.Rows[rowAt[at[0]]].Cells[place[at[1]]] = bytes
	}
	return v
}

// mostFirst returns the order of keys by what they hold.
func mostFirst(bytes []uint64, keys []string) []int {
	order := make([]int, len(bytes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(bytes[b], bytes[a]), strings.Compare(keys[a], keys[b])) })
	return order
}
