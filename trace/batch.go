package trace

import "slices"

// Batch is up to 1,024 events, in the order of the file, column by column. It belongs to the source that returned it
// and is valid until the next read from there.
type Batch struct {
	runs   []Columns
	length int
	kinds  [batchEvents]EventKind
	values [fieldCount][]uint64 // buffers of the columns that vary, allocated on first use

	rows []Event // of a batch of rows: its events
	made []Event // buffer of Rows
	same []uint64
}

// RowBatch returns a batch of events that are rows already, as those of a spool are.
func RowBatch(events []Event) *Batch { return &Batch{rows: events, length: len(events)} }

// Len returns the number of events.
func (b *Batch) Len() int { return b.length }

// Runs returns the events as columns, in order; none where they are rows already.
func (b *Batch) Runs() []Columns { return b.runs }

// Rows returns the events as rows, which are valid as long as the batch is.
func (b *Batch) Rows() []Event {
	if b.rows != nil || b.length == 0 {
		return b.rows
	}
	if b.made == nil {
		b.made = make([]Event, batchEvents)
	}
	rows, at := b.made[:b.length], 0
	for i := range b.runs {
		c := &b.runs[i]
		c.Rows(rows[at:][:c.n])
		at += c.n
	}
	return rows
}

func (b *Batch) reset() { b.runs, b.length, b.rows = b.runs[:0], 0, nil }

// Dense reports whether the events are numbered without a hole, from first on, none of them being late or an account of
// lost ones.
func (b *Batch) Dense() (first uint64, ok bool) {
	next := uint64(0)
	for i := range b.runs {
		c := &b.runs[i]
		if i == 0 {
			first = c.at(FieldSeq, 0)
			next = first
		}
		if !c.countsUp(next) || c.mayBeSpecial() {
			return 0, false
		}
		next += uint64(c.n)
	}
	return first, len(b.runs) > 0 && next > first
}

// column returns the buffer for the values of a field.
func (b *Batch) column(f Field) []uint64 {
	if b.values[f] == nil {
		b.values[f] = make([]uint64, batchEvents)
	}
	return b.values[f]
}

// Columns are adjacent events of a batch that have the same fields.
type Columns struct {
	batch   *Batch
	start   int
	n       int
	fields  uint64             // that the events have and that were decoded
	varying uint64             // of them, those whose values differ or may
	fixed   [fieldCount]uint64 // the value of each other field
}

// at returns the value of a field of one event.
func (c *Columns) at(f Field, i int) uint64 {
	if c.varying>>f&1 == 0 {
		return c.fixed[f]
	}
	return c.batch.values[f][c.start+i]
}

// countsUp reports whether the events' numbers are first, first+1, and so on.
func (c *Columns) countsUp(first uint64) bool {
	if v, fixed := c.Fixed(FieldSeq); fixed {
		return c.n == 1 && v == first
	}
	var differs uint64
	for i, seq := range c.Values(FieldSeq) {
		differs |= seq ^ (first + uint64(i))
	}
	return differs == 0
}

// mayBeSpecial reports whether there may be late events or accounts of lost ones.
func (c *Columns) mayBeSpecial() bool {
	flags, fixed := c.Fixed(FieldFlags)
	if !fixed {
		for _, f := range c.Values(FieldFlags) {
			flags |= f
		}
	}
	if Flags(flags)&FlagLate != 0 {
		return true
	}
	return slices.Contains(c.Kinds(), EventLost)
}

// Len returns the number of events, at least one.
func (c *Columns) Len() int { return c.n }

// Kinds returns the kind of each event.
func (c *Columns) Kinds() []EventKind { return c.batch.kinds[c.start:][:c.n:c.n] }

// Fixed returns the value that a field has in all of the events; ok is false if there may be several. Signed fields are
// two's complement; fields that the events do not have are 0.
func (c *Columns) Fixed(f Field) (v uint64, ok bool) { return c.fixed[f], c.varying>>f&1 == 0 }

// Values returns the values of a field that is not fixed, one per event.
func (c *Columns) Values(f Field) []uint64 {
	if c.varying>>f&1 == 0 {
		return nil
	}
	return c.batch.values[f][c.start:][:c.n:c.n]
}

// Column is one field of several events: a value for each, or one for all.
type Column struct {
	values []uint64
	mask   int // what a position is cut to: 0 for one value
}

// At returns the value of event i.
func (v Column) At(i int) uint64 { return v.values[i&v.mask] }

// Column returns a field, fixed or not.
func (c *Columns) Column(f Field) Column {
	if c.varying>>f&1 == 0 {
		return Column{c.fixed[f : f+1], 0}
	}
	return Column{c.Values(f), -1}
}

// Rows writes the events to rows, of which there are as many.
func (c *Columns) Rows(rows []Event) { c.rows(0, rows) }

// Row writes one of the events to e.
func (c *Columns) Row(i int, e *Event) {
	var one [1]Event
	c.rows(i, one[:])
	*e = one[0]
}

// rows writes the events from i on.
func (c *Columns) rows(i int, rows []Event) {
	clear(rows)
	for n, kind := range c.Kinds()[i:][:len(rows)] {
		rows[n].Kind = kind
	}
	for f := range fieldCount {
		switch {
		case c.fields>>f&1 == 0:
		case c.varying>>f&1 != 0:
			scatter(c.Values(f)[i:][:len(rows)], f, rows)
		case c.fixed[f] != 0:
			scatter(c.batch.repeat(c.fixed[f], len(rows)), f, rows)
		}
	}
}

// repeat returns a column of equal values.
func (b *Batch) repeat(v uint64, n int) []uint64 {
	if b.same == nil {
		b.same = make([]uint64, batchEvents)
	}
	fill(b.same[:n], v)
	return b.same[:n]
}
