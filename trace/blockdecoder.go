package trace

import (
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"
)

// blockKind is a row of a block's list of kinds.
type blockKind struct {
	kind  EventKind
	mask  uint64
	known bool
}

// blockDecoder returns the events of a block in batches; all columns advance together.
type blockDecoder struct {
	watermark uint64
	left      int // events not decoded yet
	kinds     []byte
	listed    []blockKind
	columns   [fieldCount]columnCursor
	fields    uint64
	unknown   uint64 // events dropped because their kind is not known, since the decoder was made

	skip   *atomic.Uint64 // set of fields that no reader needs; nil: none
	wanted uint64         // fields of the open block that are decoded

	lanes columnLanes
}

// open starts on a block. The decoder refers to payload until the block's last event was decoded.
func (b *blockDecoder) open(payload []byte) error {
	b.left = 0
	d := decoder{data: payload}
	b.watermark = d.uvarint()
	count, kinds := d.uvarint(), d.uvarint()
	if d.failed || count == 0 || count > MaxBlockEvents || kinds == 0 || kinds > 256 || kinds > uint64(len(d.data)) {
		return fmt.Errorf("%w: %d events of %d kinds", errBlock, count, kinds)
	}
	b.listed, b.fields = b.listed[:0], 0
	for range kinds {
		kind, mask := d.uvarint(), d.uvarint()
		b.listed = append(b.listed, blockKind{EventKind(kind), mask, kind > 0 && kind < eventKindCount})
		b.fields |= mask
	}
	b.kinds = d.bytes(d.uvarint())
	if d.failed || uint64(len(b.kinds)) != count {
		return fmt.Errorf("%w: kind column", errBlock)
	}
	if top := slices.Max(b.kinds); int(top) >= len(b.listed) {
		return fmt.Errorf("%w: kind %d of %d", errBlock, top, len(b.listed))
	}
	for f := range 64 {
		if b.fields>>f&1 == 0 {
			continue
		}
		encoding := d.bytes(1)
		bytes := d.bytes(d.uvarint())
		if d.failed {
			return fmt.Errorf("%w: column of field %d: %w", errBlock, f, errShort)
		}
		if f < int(fieldCount) {
			b.columns[f].open(Encoding(encoding[0]), FieldSpecs[f].Signed, bytes)
		}
	}
	b.left, b.wanted = int(count), b.needed()
	return nil
}

// bookFields are what readers keep their books by.
const bookFields = 1<<FieldSeq | 1<<FieldFlags | 1<<FieldCount

// needed returns the fields to decode: those that are read, and those that they are predicted from.
func (b *blockDecoder) needed() uint64 {
	if b.skip == nil {
		return knownFields
	}
	set := knownFields&^b.skip.Load() | bookFields
	for f := range b.columns {
		if set&b.fields>>f&1 == 0 {
			continue
		}
		switch b.columns[f].encoding {
		case EncodingSame:
			set |= 1 << FieldLevel
		case EncodingBalance:
			set |= 1<<FieldLevel | 1<<FieldDevice | 1<<FieldSize | 1<<FieldStatus
		case EncodingAccount:
			set |= 1<<FieldLevel | 1<<FieldDevice
		}
	}
	return set
}

// next decodes up to most events, at most batchEvents of them, and puts those of known kind into a batch. It leaves the
// batch empty only at the end of the block.
func (b *blockDecoder) next(to *Batch, most int) error {
	to.reset()
	for b.left > 0 && to.length == 0 {
		n := min(b.left, most, batchEvents)
		kinds := b.kinds[len(b.kinds)-b.left:][:n]
		b.left -= n
		if err := b.decode(to, kinds); err != nil {
			b.left = 0
			to.reset()
			return err
		}
	}
	return nil
}

// decode adds events to a batch that has capacity for them.
func (b *blockDecoder) decode(to *Batch, kinds []byte) error {
	for len(kinds) > 0 {
		first := &b.listed[kinds[0]]
		mask, known := first.mask, first.known
		list := to.kinds[to.length:]
		n := 0
		for n < len(kinds) {
			row := &b.listed[kinds[n]]
			if row.mask != mask || row.known != known {
				break
			}
			list[n] = row.kind
			n++
		}
		to.runs = append(to.runs, Columns{batch: to, start: to.length, n: n, fields: mask & b.wanted})
		if err := b.decodeFields(&to.runs[len(to.runs)-1]); err != nil {
			return err
		}
		if known {
			to.length += n
		} else {
			b.unknown += uint64(n)
			to.runs = to.runs[:len(to.runs)-1]
		}
		kinds = kinds[n:]
	}
	return nil
}

// knownFields is the set of fields that this version has.
const knownFields = 1<<fieldCount - 1

// decodeFields decodes events that have the same set of fields, column by column.
func (b *blockDecoder) decodeFields(c *Columns) error {
	b.lanes.begin(c)
	for set := c.fields; set != 0; set &= set - 1 {
		f := Field(bits.TrailingZeros64(set))
		column := &b.columns[f]
		by := b.lanes.of(column.encoding)
		v, fixed, err := column.fixed(c.n, by)
		if err != nil {
			return fmt.Errorf("%w: field %s", err, FieldSpecs[f].Name)
		}
		fits := true
		if fixed {
			c.fixed[f], fits = v, fitsField(f, v)
		} else {
			values := c.batch.column(f)[c.start:][:c.n]
			if err := column.next(values, by); err != nil {
				return fmt.Errorf("%w: field %s", err, FieldSpecs[f].Name)
			}
			fits = allFit(f, values)
			if column.encoding == EncodingSame && allSame(values) { // at the beginning of a block they look new
				c.fixed[f] = values[0]
			} else {
				c.varying |= 1 << f
			}
		}
		if !fits {
			return fmt.Errorf("%w: field %s: a value is out of range", errColumn, FieldSpecs[f].Name)
		}
	}
	return nil
}

func allSame(values []uint64) bool {
	for _, v := range values {
		if v != values[0] {
			return false
		}
	}
	return true
}

// columnLanes computes the lanes of columns, each on first use.
type columnLanes struct {
	lanes
	c                            *Columns
	callRoom, accountRoom        [batchEvents]uint8
	stepRoom                     [batchEvents]uint64
	hasCall, hasAccount, hasStep bool
}

func (l *columnLanes) begin(c *Columns) {
	l.c, l.hasCall, l.hasAccount, l.hasStep = c, false, false, false
	l.call, l.account, l.step = l.callRoom[:c.n], l.accountRoom[:c.n], l.stepRoom[:c.n]
}

// of returns the lanes that an encoding uses.
func (l *columnLanes) of(encoding Encoding) *lanes {
	switch encoding {
	case EncodingSame:
		if !l.hasCall {
			l.calls, l.hasCall = l.findCalls(), true
		}
	case EncodingAccount, EncodingBalance:
		if !l.hasAccount {
			l.findAccounts()
			l.hasAccount = true
		}
		if encoding == EncodingBalance && !l.hasStep {
			l.findSteps()
			l.hasStep = true
		}
	}
	return &l.lanes
}

// findCalls computes the slots for EncodingSame and returns the set of those that occur.
func (l *columnLanes) findCalls() (slots uint64) {
	level, fixed := l.c.Fixed(FieldLevel)
	levels := l.c.Values(FieldLevel)
	for i, kind := range l.c.Kinds() {
		if !fixed {
			level = levels[i]
		}
		lane := uint8(kind)<<2 | uint8(level)&3
		l.call[i] = lane
		slots |= 1 << (lane % laneSlots)
	}
	return slots
}

// findAccounts computes the slots for EncodingAccount and EncodingBalance.
func (l *columnLanes) findAccounts() {
	level, fixedLevel := l.c.Fixed(FieldLevel)
	device, fixedDevice := l.c.Fixed(FieldDevice)
	l.accounts = 1 << ((uint8(level)&3<<4 | uint8(device)&15) % laneSlots)
	if fixedLevel && fixedDevice {
		return
	}
	l.accounts = 0 // several
	levels, devices := l.c.Values(FieldLevel), l.c.Values(FieldDevice)
	for i := range l.account {
		if !fixedLevel {
			level = levels[i]
		}
		if !fixedDevice {
			device = devices[i]
		}
		l.account[i] = uint8(level)&3<<4 | uint8(device)&15
	}
}

// stepOf is what a successful event adds to its account, in sizes.
var stepOf = [256]uint64{EventAlloc: 1, EventFree: ^uint64(0)}

func (l *columnLanes) findSteps() {
	size, fixedSize := l.c.Fixed(FieldSize)
	status, fixedStatus := l.c.Fixed(FieldStatus)
	sizes, statuses := l.c.Values(FieldSize), l.c.Values(FieldStatus)
	if !fixedSize && fixedStatus && status == 0 { // nearly always
		sizes = sizes[:len(l.step)]
		for i, kind := range l.c.Kinds()[:len(l.step)] {
			l.step[i] = sizes[i] * stepOf[kind]
		}
		return
	}
	for i, kind := range l.c.Kinds() {
		if !fixedSize {
			size = sizes[i]
		}
		if !fixedStatus {
			status = statuses[i]
		}
		if l.step[i] = 0; status == 0 {
			l.step[i] = size * stepOf[kind]
		}
	}
}
