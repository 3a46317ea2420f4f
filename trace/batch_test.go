package trace

import (
	"bytes"
	"io"
	"testing"
)

// readColumns reads a file column by column, checks each batch's columns against its rows, and returns all events.
func readColumns(t *testing.T, file []byte, ahead bool) (events []Event, health Health) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if ahead {
		r.DecodeAhead()
	}
	for {
		b, err := r.ReadColumns()
		if err == io.EOF {
			return events, r.Health()
		}
		if err != nil {
			t.Fatal(err)
		}
		rows := b.Rows()
		if len(rows) == 0 || len(rows) != b.Len() {
			t.Fatalf("%d rows of a batch of %d", len(rows), b.Len())
		}
		at := 0
		for n := range b.Runs() {
			at += wantColumns(t, &b.Runs()[n], rows[at:])
		}
		if at != len(rows) {
			t.Fatalf("columns of %d events, %d rows", at, len(rows))
		}
		events = append(events, rows...)
	}
}

// wantColumns compares columns with the rows that they begin with, and returns how many they are.
func wantColumns(t *testing.T, c *Columns, rows []Event) int {
	t.Helper()
	value := []uint64{0}
	for i, kind := range c.Kinds() {
		var e Event
		if c.Row(i, &e); e != rows[i] || kind != rows[i].Kind {
			t.Fatalf("row %d: %+v, want %+v", i, e, rows[i])
		}
		for f := range fieldCount {
			v, fixed := c.Fixed(f)
			if values := c.Values(f); fixed != (values == nil) {
				t.Fatalf("field %s is fixed: %v, and has %d values", FieldSpecs[f].Name, fixed, len(values))
			} else if !fixed {
				v = values[i]
			}
			if gather(value, f, rows[i:i+1]); v != value[0] {
				t.Fatalf("row %d: %s is %d, want %d", i, FieldSpecs[f].Name, v, value[0])
			}
		}
	}
	return c.Len()
}

// Events are the same by columns as by rows, and so is the reader's health.
func TestColumnsAreTheRows(t *testing.T) {
	severalProcessors(t)
	late := trainingStream(5000, 3)
	late[700].Flags |= FlagLate
	late[701].Seq = late[600].Seq
	late[2000] = Event{Kind: EventLost, Seq: late[2000].Seq, Time: late[2000].Time, Count: 7}
	for name, file := range map[string][]byte{
		"mixed": mixedTrace(t), "training": encodeTrace(t, trainingStream(5000, 9), 1500),
		"late and lost": encodeTrace(t, late, 5000),
	} {
		r, err := NewReader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		want, health := drain(t, r)
		for _, ahead := range []bool{false, true} {
			got, said := readColumns(t, file, ahead)
			wantEvents(t, got, want)
			if said != health {
				t.Errorf("%s: %+v\nwant %+v", name, said, health)
			}
		}
	}
}

// A batch whose numbers have a hole, or hold something late or lost, is not dense.
func TestDense(t *testing.T) {
	events := trainingStream(600, 4)
	if first, ok := batchOf(t, events).Dense(); !ok || first != events[0].Seq {
		t.Errorf("dense: %v from %d", ok, first)
	}
	for what, change := range map[string]func(e *Event){
		"a hole":       func(e *Event) { e.Seq += 5000 },
		"a late event": func(e *Event) { e.Flags |= FlagLate },
		"a lost event": func(e *Event) { *e = Event{Kind: EventLost, Seq: e.Seq, Count: 1} },
	} {
		for _, at := range []int{0, 300, 599} {
			list := append([]Event{}, events...)
			change(&list[at])
			if _, ok := batchOf(t, list).Dense(); ok {
				t.Errorf("%s at %d: dense", what, at)
			}
		}
	}
	if _, ok := new(Batch).Dense(); ok {
		t.Error("nothing is dense")
	}
}

// batchOf decodes at most batchEvents events out of a block.
func batchOf(t *testing.T, events []Event) *Batch {
	t.Helper()
	b := newBlockEncoder()
	b.append(events)
	var d blockDecoder
	if err := d.open(b.finish(nil, 0)); err != nil {
		t.Fatal(err)
	}
	batch := new(Batch)
	if err := d.next(batch, batchEvents); err != nil {
		t.Fatal(err)
	}
	return batch
}
