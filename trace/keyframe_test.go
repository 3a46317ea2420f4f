package trace

import (
	"bytes"
	"io"
	"os"
	"reflect"
	"testing"

	"memtrace/internal/faults"
	"memtrace/internal/section"
)

// withKeyframes adds a keyframe before every block of a trace but the first, each with so many live blocks.
func withKeyframes(t testing.TB, data []byte, live, numbers int) []byte {
	t.Helper()
	r, err := NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/t.bin"
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var events uint64
	err = AppendKeyframes(file, func(put func(*Keyframe) (int64, error)) (*KeyframesClosing, error) {
		for at := int64(0); ; {
			batch, err := r.ReadBatch()
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
			if r.BlockOffset() != at && events > 0 {
				if _, err := put(someKeyframe(r.BlockOffset(), events, live, numbers)); err != nil {
					return nil, err
				}
			}
			at, events = r.BlockOffset(), events+uint64(len(batch))
		}
		closing := &KeyframesClosing{Health: r.Health()}
		closing.State.Table("closing").Put(events)
		return closing, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	added, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func someKeyframe(offset int64, events uint64, live, numbers int) *Keyframe {
	k := &Keyframe{KeyframePlace: KeyframePlace{Offset: offset, Events: events, Seq: events + 3, Time: -4}}
	for n := range live {
		k.Live = append(k.Live, Event{Kind: EventAlloc, Seq: uint64(n + 1), Addr: uint64(n) << 9, Size: 512,
			PyStack: 1<<31 + StackID(n)})
	}
	k.State.Table("a.signed").PutSigned(-1, 1, -1<<63)
	k.State.Table("a.text").PutText("text")
	k.State.Table("a.empty")
	large := k.State.Table("b.large")
	for n := range uint64(numbers) {
		large.Put(n)
	}
	k.State.Table("c.after").Put(events)
	return k
}

// TestKeyframes: what is written into keyframes is read back, and reading begins at each of them as it goes on there
// when it began at the beginning.
func TestKeyframes(t *testing.T) {
	plain := encodeTrace(t, trainingStream(3000, 3), 400)
	whole, wantHealth := readWhole(t, plain)
	file := withKeyframes(t, plain, MaxBlockEvents+5, keyframePart/2)
	if events, h := readWhole(t, file); h.SkippedSections > 0 || h.Trailing != 0 || h.Altered != "" {
		t.Fatalf("a reader that needs no keyframes: %+v", h)
	} else {
		wantEvents(t, events, whole)
	}
	list, err := ReadKeyframes(bytes.NewReader(file), int64(len(file)))
	if err != nil || list == nil || len(list.Places) != int(wantHealth.Blocks)-1 {
		t.Fatalf("keyframes %+v: %v, of %d blocks", list, err, wantHealth.Blocks)
	}
	if n := list.Closing.State.Table("closing").Next(); n != uint64(len(whole)) {
		t.Errorf("the closing has %d", n)
	}
	for i := range list.Places {
		p := &list.Places[i]
		k, err := list.Read(p)
		if err != nil {
			t.Fatal(err)
		}
		want := someKeyframe(p.Offset, p.Events, MaxBlockEvents+5, keyframePart/2)
		wantEvents(t, k.Live, want.Live)
		if !reflect.DeepEqual(k.State.names, want.State.names) {
			t.Fatalf("tables %v, want %v", k.State.names, want.State.names)
		}
		for _, name := range want.State.names {
			if !bytes.Equal(k.State.Table(name).data, want.State.Table(name).data) {
				t.Errorf("table %s differs", name)
			}
		}
		enterAt(t, file, p, whole, wantHealth)
	}
}

func readWhole(t *testing.T, file []byte) ([]Event, Health) {
	t.Helper()
	events, _, h := readBlocks(t, file)
	if h == nil {
		t.Fatal("not a trace")
	}
	return events, *h
}

// countingFile counts the bytes that are read in order.
type countingFile struct {
	*bytes.Reader
	read int64
}

func (c *countingFile) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.read += int64(n)
	return n, err
}

// enterAt reads a trace from a keyframe on, for a block's events, and leaves.
func enterAt(t *testing.T, file []byte, p *KeyframePlace, whole []Event, want Health) {
	t.Helper()
	for _, ahead := range []bool{false, true} {
		counted := &countingFile{Reader: bytes.NewReader(file)}
		r, err := NewReader(counted, int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		list := r.Keyframes()
		r.Enter(list, p)
		if ahead {
			r.DecodeAhead()
		}
		var got []Event
		for {
			batch, err := r.ReadBatch()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, batch...); r.BlockOffset() != p.Offset {
				r.Leave()
			}
		}
		wantEvents(t, got, whole[p.Events:][:len(got)])
		h := r.Health()
		if h.Events != want.Events || h.MaxSeq != want.MaxSeq || h.Gaps != 0 || h.Altered != "" || h.Truncated {
			t.Errorf("at %d: %+v, want %+v", p.Offset, h, want)
		}
		if _, ended := r.End(); !ended {
			t.Errorf("at %d: no end", p.Offset)
		}
		if left := uint64(len(whole)) - p.Events; !ahead && left > 1200 && (len(got) > 1200 ||
			counted.read > int64(len(file))/2) {
			t.Errorf("at %d: %d events and %d bytes of %d were read", p.Offset, len(got), counted.read, len(file))
		}
	}
}

// TestKeyframesOfAnotherTrace: keyframes are used with the trace alone that they were made for, and damage in them
// costs no more than their use.
func TestKeyframesOfAnotherTrace(t *testing.T) {
	file := withKeyframes(t, encodeTrace(t, trainingStream(3000, 3), 1000), 9, 9)
	other := encodeTrace(t, trainingStream(2990, 3), 1000)
	added := file[faults.Parse(file).EndAt():]
	_, added = added[:section.HeaderSize+section.ParseHeader(added).Length], added[section.HeaderSize+
		section.ParseHeader(added).Length:]
	moved := append(bytes.Clone(other), added...)
	if list, err := ReadKeyframes(bytes.NewReader(moved), int64(len(moved))); list != nil {
		t.Errorf("another trace's keyframes: %v, %v", list, err)
	}
	if events, _ := readWhole(t, moved); len(events) != 2990 {
		t.Errorf("%d events beside another trace's keyframes", len(events))
	}
	for at := len(file) - len(added); at < len(file); at += 7 {
		damaged := bytes.Clone(file)
		damaged[at] ^= 4
		readKeyframes(damaged)
		if events, _ := readWhole(t, damaged); len(events) != 3000 {
			t.Fatalf("byte %d: %d events", at, len(events))
		}
	}
}

// readKeyframes reads what keyframes a file has.
func readKeyframes(file []byte) {
	list, err := ReadKeyframes(bytes.NewReader(file), int64(len(file)))
	if err != nil || list == nil {
		return
	}
	for i := range list.Places {
		_, _ = list.Read(&list.Places[i])
	}
}
