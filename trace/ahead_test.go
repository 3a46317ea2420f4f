package trace

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"runtime"
	"testing"
	"testing/iotest"

	"memtrace/internal/section"
)

// everythingRead is all that a reader returns of a file.
type everythingRead struct {
	events    []Event
	health    Health
	info      Info
	tables    *Tables
	end       End
	ended     bool
	lost      [3]uint64
	watermark uint64
	mayGrow   bool
	oom       []string
}

func said(t testing.TB, r *Reader) everythingRead {
	t.Helper()
	var v everythingRead
	v.events, v.health = drain(t, r)
	v.info, v.tables, v.watermark, v.mayGrow, v.oom = r.Info(), r.Tables(), r.Watermark(), r.MayGrow(), r.OOMReports()
	v.end, v.ended = r.End()
	v.lost[0], v.lost[1], v.lost[2] = r.Lost()
	return v
}

// wantSameAhead reads a file with and without a goroutine that decodes ahead.
func wantSameAhead(t testing.TB, file []byte) {
	t.Helper()
	alone, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return // the head is read before anything runs ahead
	}
	ahead, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	ahead.DecodeAhead()
	want, got := said(t, alone), said(t, ahead)
	for _, v := range []*everythingRead{&want, &got} { // what modules are looked up by is built with random numbers
		v.tables.inFile, v.tables.inStacks = addressMap{}, addressMap{}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("decoded ahead: %d events, %+v\nwant %d events, %+v", len(got.events), got.health, len(want.events),
			want.health)
	}
}

// severalProcessors makes decoding ahead worth its while for the time of a test, wherever it runs.
func severalProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

func TestAheadReadsTheSame(t *testing.T) {
	severalProcessors(t)
	file := mixedTrace(t)
	wantSameAhead(t, encodeTrace(t, trainingStream(20*batchEvents, 9), 3*batchEvents))
	for n := section.HeadSize; n <= len(file); n += 5 {
		wantSameAhead(t, file[:n])
	}
	damaged := bytes.Clone(file)
	for i := section.HeadSize; i < len(file); i += 3 {
		damaged[i] ^= 1 << (i % 8)
		wantSameAhead(t, damaged)
		damaged[i] = file[i]
	}
	sections := mapSections(t, file) // a dictionary that contradicts itself, with decoded events after it
	wrong := withSection(section.Dictionary, []byte{2, 5, 1, 1, 2, 0x80, 0x02}, 0)[section.HeadSize:]
	for _, at := range sections.starts {
		wantSameAhead(t, bytes.Join([][]byte{file[:at], wrong, file[at:]}, nil))
	}
}

// A read error reaches the caller after all events before it, as often as the caller tries.
func TestAheadReadError(t *testing.T) {
	severalProcessors(t)
	file := encodeTrace(t, trainingStream(5000, 9), 1000)
	broken := errors.New("cable pulled")
	read := func(r *Reader) (events int, err error) {
		for err == nil {
			var batch []Event
			batch, err = r.ReadBatch()
			events += len(batch)
		}
		return events, err
	}
	for n := section.HeadSize; n < len(file); n += len(file) / 50 {
		open := func() *Reader {
			r, err := NewReader(io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(broken)), -1)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		alone, ahead := open(), open()
		ahead.DecodeAhead()
		want, _ := read(alone)
		if got, err := read(ahead); got != want || !errors.Is(err, broken) {
			t.Fatalf("%d bytes: %d events, then %v, want %d", n, got, err, want)
		}
		if _, err := ahead.ReadBatch(); !errors.Is(err, broken) {
			t.Fatalf("%d bytes: then %v", n, err)
		}
	}
}

func TestAheadContinues(t *testing.T) {
	severalProcessors(t)
	want := trainingStream(900, 11)
	whole := encodeTrace(t, want, 100)
	for n := section.HeadSize; n < len(whole); n += 97 {
		r, err := NewReader(bytes.NewReader(whole[:n]), int64(n))
		if err != nil {
			t.Fatal(err)
		}
		r.DecodeAhead()
		got := readOn(t, r)
		if !r.Continue(bytes.NewReader(whole[r.Offset():]), int64(len(whole))) {
			t.Fatalf("reading does not go on at %d of %d bytes", n, len(whole))
		}
		wantEvents(t, append(got, readOn(t, r)...), want)
	}
}

// A reader that is closed early leaves no goroutine that waits for it, and none that still reads the file.
func TestAheadClosedEarly(t *testing.T) {
	severalProcessors(t)
	file := encodeTrace(t, trainingStream(40*batchEvents, 9), 3*batchEvents)
	for batches := range 30 {
		source := &closableReader{r: bytes.NewReader(file)}
		r, err := NewReader(source, int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		r.DecodeAhead()
		for range batches {
			if _, err := r.ReadBatch(); err != nil {
				t.Fatal(err)
			}
		}
		r.Close()
		source.closed = true // a goroutine that reads on is a data race, too
		if _, err := r.ReadBatch(); !errors.Is(err, io.EOF) {
			t.Fatalf("a closed reader says %v", err)
		}
		r.Close()
		if source.late {
			t.Fatal("the file was read after Close")
		}
	}
}

type closableReader struct {
	r            io.Reader
	closed, late bool
}

func (c *closableReader) Read(p []byte) (int, error) {
	c.late = c.late || c.closed
	return c.r.Read(p)
}

// What is left out costs the other fields nothing: those that are predicted from it are right all the same.
func TestSkip(t *testing.T) {
	want := trainingStream(5000, 13)
	file := encodeTrace(t, want, 700)
	for f := range Field(fieldCount) {
		r, err := NewReader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		r.Skip(f)
		got, _ := drain(t, r)
		left := 0
		for i := range got {
			var value [1]uint64
			if gather(value[:], f, want[i:i+1]); value[0] != 0 {
				if gather(value[:], f, got[i:i+1]); value[0] == 0 {
					left++
					gather(value[:], f, want[i:i+1])
					scatter(value[:], f, got[i:i+1])
				}
			}
		}
		wantEvents(t, got, want)
		switch f {
		case FieldTime, FieldAddr, FieldStack, FieldPyStack, FieldTag, FieldThread, FieldAPI, FieldAllocated,
			FieldReserved, FieldMem:
			if left == 0 {
				t.Errorf("%s was decoded", FieldSpecs[f].Name)
			}
		case FieldSeq, FieldFlags, FieldCount, FieldLevel, FieldDevice, FieldSize, FieldStatus:
			if left > 0 {
				t.Errorf("%s was left out, which the books or other fields need", FieldSpecs[f].Name)
			}
		}
	}
}
