package trace

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"memtrace/cuda"
)

// An event block before compression:
//
//	uvarint watermark        every event numbered below it is in this block or before
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

// batchLanes computes the lanes of a batch, each on first use.
type batchLanes struct {
	call, account                [batchEvents]uint8
	step                         [batchEvents]uint64
	calls                        uint64
	hasCall, hasAccount, hasStep bool
}

func (l *batchLanes) reset() { l.hasCall, l.hasAccount, l.hasStep = false, false, false }

// of returns the lanes that an encoding uses.
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
