package trace

import (
	"runtime"
	"slices"

	"memtrace/internal/section"
)

const (
	// aheadBatches is how many batches of events may be buffered between the decoder and the reader's caller: more than
	// are replayed while a block is decompressed.
	aheadBatches = 16
	// aheadReturned is how many of them the caller must be done with before the decoder has them back. One by one, each
	// would wake it up.
	aheadReturned = aheadBatches / 2
)

// decodeAhead is a goroutine that reads sections and decodes the events of blocks while the reader's caller works on
// those before. The caller sees no difference: what belongs to the order of the file, which is the dictionary and the
// books, stays with the reader, to whom the sections go one by one.
//
// From the first batch on the goroutine owns the file and the section.Reader. The reader has them back when pieces is
// closed: after the end of the file, the end section, damage or a read error. It then goes on alone. Until then its own
// section.Reader reports the progress over the sections that it has taken over.
type decodeAhead struct {
	sections section.Reader
	block    blockDecoder
	pieces   chan piece
	free     chan *Batch // batches that the caller is done with
	halted   chan struct{}

	// The reader's side.
	given   *Batch   // the batch that the caller has
	done    []*Batch // those that it is done with, fewer than aheadReturned
	section piece    // the latest one
}

// piece is the next part of the file: a batch of events, or else a section. The section of an event block comes before
// its events, without payload.
type piece struct {
	batch *Batch
	fault error // events or their block are inconsistent

	kind      section.Kind
	payload   []byte
	watermark uint64 // of an event block
	err       error  // of section.Reader.Next

	progress section.Progress // after the section
	unknown  uint64           // blockDecoder's
}

// DecodeAhead lets a goroutine decode what the next calls of ReadBatch will return, if there is a processor for it. It
// must be called before the first ReadBatch, and the caller must call Close unless it reads to the end. The file is the
// reader's until then.
func (r *Reader) DecodeAhead() {
	if runtime.GOMAXPROCS(0) > 1 && r.batch == nil {
		r.ahead = &decodeAhead{}
	}
}

// Close ends reading. Only a reader that decodes ahead needs it.
func (r *Reader) Close() {
	if r.ahead != nil {
		r.done = true
		r.halt()
	}
}

// begin starts the goroutine, at the first call.
func (a *decodeAhead) begin(r *Reader) {
	if a.pieces != nil {
		return
	}
	a.sections, a.block.skip = r.sections, r.block.skip
	a.pieces, a.free, a.halted = make(chan piece, aheadBatches), make(chan *Batch, aheadBatches), make(chan struct{})
	for range aheadBatches {
		a.free <- new(Batch)
	}
	go a.run()
}

func (a *decodeAhead) run() {
	defer close(a.pieces)
	for {
		kind, payload, err := a.sections.Next()
		p := piece{kind: kind, err: err, progress: a.sections.Progress}
		if err == nil && kind == section.Events {
			p.fault = a.block.open(payload)
			p.watermark = a.block.watermark
		} else {
			p.payload = slices.Clone(payload) // the next section takes its place
		}
		if !a.send(p) || err != nil || p.fault != nil || kind == section.End {
			return
		}
		if kind == section.Events && !a.decode() {
			return
		}
	}
}

// decode sends the events of a block and reports whether the goroutine is to go on.
func (a *decodeAhead) decode() bool {
	for a.block.left > 0 {
		select {
		case batch := <-a.free:
			err := a.block.next(batch, batchEvents)
			if batch.length == 0 {
				a.free <- batch
				batch = nil
			}
			if !a.send(piece{batch: batch, fault: err, unknown: a.block.unknown}) || err != nil {
				return false
			}
		case <-a.halted:
			return false
		}
	}
	return true
}

func (a *decodeAhead) send(p piece) bool {
	select {
	case a.pieces <- p:
		return true
	case <-a.halted:
		return false
	}
}

// nextBatch returns the next events of the open block, none after its last one.
func (a *decodeAhead) nextBatch(r *Reader) (*Batch, error) {
	a.begin(r)
	a.recycle()
	for {
		p := <-a.pieces
		if p.kind != 0 || p.err != nil {
			a.section = p
			return nil, nil
		}
		r.block.unknown = p.unknown
		if p.fault != nil || p.batch != nil {
			a.given = p.batch
			return p.batch, p.fault
		}
	}
}

// recycle takes the batch that the caller had.
func (a *decodeAhead) recycle() {
	if a.given == nil {
		return
	}
	a.done = append(a.done, a.given)
	a.given = nil
	if len(a.done) == aheadReturned {
		for _, batch := range a.done {
			a.free <- batch
		}
		a.done = a.done[:0]
	}
}

// passSection is section.Reader.Next: it returns the section that nextBatch came to.
func (a *decodeAhead) passSection(r *Reader) (section.Kind, []byte, error) {
	p := &a.section
	r.sections.Progress = p.progress
	if p.err != nil || p.kind == section.End {
		r.halt()
	}
	return p.kind, p.payload, p.err
}

// openBlock is blockDecoder.open of that section.
func (a *decodeAhead) openBlock(r *Reader) error {
	r.block.watermark = a.section.watermark
	return a.section.fault
}

// halt ends decoding ahead. The reader goes on alone, after the last section that it took over; it can go on reading
// there only if the goroutine came no further, as at the end of the file.
func (r *Reader) halt() {
	a := r.ahead
	r.ahead = nil
	if a.pieces == nil {
		return
	}
	close(a.halted)
	for range a.pieces { // until the goroutine is gone
	}
	a.sections.Progress = r.sections.Progress
	r.sections = a.sections
}
