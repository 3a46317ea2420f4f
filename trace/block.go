package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync/atomic"

	"memtrace/cuda"
)

// An event block before compression:
//
//	uvarint watermark        every event numbered below it stands in this block or before
//	uvarint event count      1 .. MaxBlockEvents
//	uvarint kind count, then per kind: uvarint kind, uvarint set of its fields (bit i is Field i)
//	kind column              uvarint length, bytes: one byte per event, the place of its kind in the list above
//	field columns            per field that some kind has, ascending: byte encoding, uvarint length, bytes
//
// A column has values only for the events whose kind has the field. Naming the fields in the block lets a reader skip
// those that it does not know and read blocks of versions in which a kind had fewer.

var errBlock = errors.New("event block is inconsistent")

// kindMasks holds the set of fields of each kind, from EventSpecs.
var kindMasks = func() (masks [eventKindCount]uint64) {
	for kind, spec := range EventSpecs {
		for _, f := range spec.Fields {
			masks[kind] |= 1 << f
		}
	}
	return masks
}()

// callLane is the slot that EncodingSame predicts from, accountLane the one of EncodingAccount and EncodingBalance;
// part of the format.
func callLane(kind EventKind, level cuda.Level) uint8  { return uint8(kind)<<2 | uint8(level)&3 }
func accountLane(level cuda.Level, device int16) uint8 { return uint8(level)&3<<4 | uint8(device)&15 }

// accountStep is what a successful event adds to its account.
func accountStep(ev *Event) uint64 {
	if ev.Status != 0 {
		return 0
	}
	switch ev.Kind {
	case EventAlloc:
		return ev.Size
	case EventFree:
		return -ev.Size
	}
	return 0
}

// batchLanes computes the lanes of a batch, each when it is first asked for.
type batchLanes struct {
	call, account                [batchEvents]uint8
	step                         [batchEvents]uint64
	calls                        uint64
	hasCall, hasAccount, hasStep bool
}

func (l *batchLanes) reset() { l.hasCall, l.hasAccount, l.hasStep = false, false, false }

// of returns the lanes that an encoding looks at.
func (l *batchLanes) of(encoding Encoding, events []Event) lanes {
	by := lanes{call: l.call[:len(events)], account: l.account[:len(events)], step: l.step[:len(events)]}
	switch encoding {
	case EncodingSame:
		if !l.hasCall {
			l.calls = 0
			for i := range events {
				by.call[i] = callLane(events[i].Kind, events[i].Level)
				l.calls |= 1 << (by.call[i] % laneSlots)
			}
			l.hasCall = true
		}
		by.calls = l.calls
	case EncodingAccount, EncodingBalance:
		if !l.hasAccount {
			for i := range events {
				by.account[i] = accountLane(events[i].Level, events[i].Device)
			}
			l.hasAccount = true
		}
	}
	if encoding == EncodingBalance && !l.hasStep {
		for i := range events {
			by.step[i] = accountStep(&events[i])
		}
		l.hasStep = true
	}
	return by
}

// blockEncoder collects events column by column. Its memory is bounded by the size of one block.
type blockEncoder struct {
	columns [fieldCount]columnEncoder
	kinds   []byte // the kind column
	listed  []EventKind
	place   [eventKindCount]uint8 // 1 + place in listed
	fields  uint64                // fields that some event has

	values [batchEvents]uint64
	lanes  batchLanes
}

func newBlockEncoder() *blockEncoder {
	b := new(blockEncoder)
	for f := range b.columns {
		b.columns[f].encoding, b.columns[f].signed = FieldSpecs[f].Encoding, FieldSpecs[f].Signed
	}
	b.reset()
	return b
}

func (b *blockEncoder) reset() {
	for f := range b.columns {
		b.columns[f].reset()
	}
	b.kinds, b.listed = b.kinds[:0], b.listed[:0]
	b.place = [eventKindCount]uint8{}
	b.fields = 0
}

// events returns the number of events in the open block.
func (b *blockEncoder) events() int { return len(b.kinds) }

// append adds events to the block; the caller sees to it that no more than MaxBlockEvents come together and that the
// kinds are known.
func (b *blockEncoder) append(events []Event) {
	for len(events) > 0 {
		mask := kindMasks[events[0].Kind]
		n := 0
		for n < len(events) && n < batchEvents && kindMasks[events[n].Kind] == mask {
			b.appendKind(events[n].Kind)
			n++
		}
		b.appendFields(mask, events[:n])
		events = events[n:]
	}
}

func (b *blockEncoder) appendKind(kind EventKind) {
	if b.place[kind] == 0 {
		b.listed = append(b.listed, kind)
		b.place[kind] = uint8(len(b.listed))
	}
	b.kinds = append(b.kinds, b.place[kind]-1)
}

// appendFields adds events that have the same set of fields, column by column.
func (b *blockEncoder) appendFields(mask uint64, events []Event) {
	b.fields |= mask
	b.lanes.reset()
	values := b.values[:len(events)]
	constant := constantFields(events)
	for set := mask; set != 0; set &= set - 1 {
		f := Field(bits.TrailingZeros64(set))
		column := &b.columns[f]
		by := b.lanes.of(column.encoding, events)
		if constant>>f&1 != 0 {
			gather(values[:1], f, events[:1])
			if column.appendConstant(values[0], len(events), &by) {
				continue
			}
		}
		gather(values, f, events)
		column.append(values, &by)
	}
}

// finish appends the block's bytes to dst and empties the encoder.
func (b *blockEncoder) finish(dst []byte, watermark uint64) []byte {
	dst = binary.AppendUvarint(dst, watermark)
	dst = binary.AppendUvarint(dst, uint64(len(b.kinds)))
	dst = binary.AppendUvarint(dst, uint64(len(b.listed)))
	for _, kind := range b.listed {
		dst = binary.AppendUvarint(dst, uint64(kind))
		dst = binary.AppendUvarint(dst, kindMasks[kind])
	}
	dst = binary.AppendUvarint(dst, uint64(len(b.kinds)))
	dst = append(dst, b.kinds...)
	for f := range b.columns {
		if b.fields>>f&1 == 0 {
			continue
		}
		column := &b.columns[f]
		bytes := column.finish()
		dst = append(dst, byte(column.encoding))
		dst = binary.AppendUvarint(dst, uint64(len(bytes)))
		dst = append(dst, bytes...)
	}
	b.reset()
	return dst
}

// blockKind is a row of a block's list of kinds.
type blockKind struct {
	kind  EventKind
	mask  uint64
	known bool
}

// blockDecoder hands out the events of a block in batches; all columns advance together.
type blockDecoder struct {
	watermark uint64
	left      int // events not decoded yet
	kinds     []byte
	listed    []blockKind
	columns   [fieldCount]columnCursor
	fields    uint64
	unknown   uint64 // events dropped because their kind is not known, since the decoder was made

	leaveOut *atomic.Uint64 // set of fields that nobody asks for; nil: none
	wanted   uint64         // fields of the open block that are decoded

	values [batchEvents]uint64
	lanes  batchLanes
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

// needed returns the fields to decode: those that somebody asks for, and those that these are predicted from.
func (b *blockDecoder) needed() uint64 {
	if b.leaveOut == nil {
		return knownFields
	}
	set := knownFields&^b.leaveOut.Load() | bookFields
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

// next decodes up to len(events) events, at most batchEvents of them, and returns those of known kind. It returns none
// only at the end of the block.
func (b *blockDecoder) next(events []Event) ([]Event, error) {
	for b.left > 0 {
		n := min(b.left, len(events), batchEvents)
		batch := events[:n]
		clear(batch)
		kinds := b.kinds[len(b.kinds)-b.left:][:n]
		b.left -= n
		allKnown, err := b.decode(batch, kinds)
		if err != nil {
			b.left = 0
			return nil, err
		}
		if !allKnown {
			batch = b.dropUnknown(batch, kinds)
		}
		if len(batch) > 0 {
			return batch, nil
		}
	}
	return nil, nil
}

// decode fills a cleared batch and reports whether all kinds are known.
func (b *blockDecoder) decode(batch []Event, kinds []byte) (allKnown bool, err error) {
	allKnown = true
	for len(batch) > 0 {
		mask := b.listed[kinds[0]].mask
		n := 0
		for n < len(kinds) {
			row := &b.listed[kinds[n]]
			if row.mask != mask {
				break
			}
			batch[n].Kind = row.kind
			allKnown = allKnown && row.known
			n++
		}
		if err := b.decodeFields(mask&b.wanted, batch[:n]); err != nil {
			return false, err
		}
		batch, kinds = batch[n:], kinds[n:]
	}
	return allKnown, nil
}

// knownFields is the set of fields that this version has.
const knownFields = 1<<fieldCount - 1

// decodeFields decodes events that have the same set of fields, column by column.
func (b *blockDecoder) decodeFields(mask uint64, events []Event) error {
	b.lanes.reset()
	values := b.values[:len(events)]
	for set := mask; set != 0; set &= set - 1 {
		f := Field(bits.TrailingZeros64(set))
		column := &b.columns[f]
		by := b.lanes.of(column.encoding, events)
		constant, err := column.next(values, &by)
		if err != nil {
			return fmt.Errorf("%w: field %s", err, FieldSpecs[f].Name)
		}
		if constant && values[0] == 0 {
			continue
		}
		if !scatter(values, f, events) {
			return fmt.Errorf("%w: field %s: a value is out of range", errColumn, FieldSpecs[f].Name)
		}
	}
	return nil
}

func (b *blockDecoder) dropUnknown(batch []Event, kinds []byte) []Event {
	n := 0
	for i, k := range kinds {
		if b.listed[k].known {
			batch[n] = batch[i]
			n++
		} else {
			b.unknown++
		}
	}
	return batch[:n]
}
