package trace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"memtrace/internal/section"
)

// Keyframed is a Source that may have keyframes, and can begin at one.
type Keyframed interface {
	// Keyframes returns them, nil where there are none that this version can use. Nothing of the trace is read.
	Keyframes() *Keyframes
	// Enter lets reading begin at a keyframe, nil for the beginning of the trace: blocks of events before it are passed
	// over, the dictionary and the facts are read. It comes before the first ReadBatch.
	Enter(list *Keyframes, at *KeyframePlace)
	// Leave lets all blocks of events that were not read yet be passed over.
	Leave()
	// BlockOffset returns the offset of the block of events that the last batch came from.
	BlockOffset() int64
}

// Keyframes are those of a finished trace, found from its end.
type Keyframes struct {
	Places  []KeyframePlace // in the order of the trace
	Closing KeyframesClosing

	file     io.ReaderAt
	size     int64
	sections section.Reader
}

// maxKeyframes bounds the keyframes of a trace.
const maxKeyframes = 1 << 16

// ReadKeyframes returns the keyframes of a trace, of which it reads the places alone; nil where it has none, or none of
// this version. Keyframes that were made for other contents, or are damaged, are an error: the trace is to be read from
// its beginning.
func ReadKeyframes(file io.ReaderAt, size int64) (*Keyframes, error) {
	closing, end, err := findClosing(file, size)
	if err != nil || closing == 0 {
		return nil, err
	}
	k := &Keyframes{file: file, size: size}
	last, err := k.readClosing(closing, end)
	if err != nil || last == 0 {
		return nil, err
	}
	for at := last; at != 0; {
		p, err := k.place(at)
		if err != nil {
			return nil, err
		}
		if n := len(k.Places); n == maxKeyframes || n > 0 && p.Offset >= k.Places[n-1].Offset {
			return nil, fmt.Errorf("%w: chain at offset %d", errKeyframe, at)
		}
		k.Places = append(k.Places, p)
		at = p.before
	}
	slices.Reverse(k.Places)
	return k, nil
}

// findClosing walks over the headers behind the index. It returns the offset of the last closing, 0 for none, and the
// contents of the trace's end section.
func findClosing(file io.ReaderAt, size int64) (closing int64, end []byte, err error) {
	from, ok := indexOffset(file, size)
	if !ok {
		return 0, nil, nil
	}
	sections := section.NewReader(io.NewSectionReader(file, from, size-from), size, from)
	for {
		at := sections.Offset
		header, err := sections.Header()
		if err == io.EOF {
			return closing, end, nil
		}
		if err != nil {
			return 0, nil, fmt.Errorf("look for keyframes: %w", err)
		}
		switch {
		case header.Kind == section.End && end == nil:
			stored, err := sections.Stored(header)
			if err != nil {
				return 0, nil, fmt.Errorf("look for keyframes: %w", err)
			}
			end = bytes.Clone(stored)
			sections.Passed(header)
			continue
		case header.Kind == section.Keyframe && end != nil && header.Raw == 0:
			var kind [1]byte
			if n, _ := file.ReadAt(kind[:], at+section.HeaderSize); n == 1 && kind[0] == keyframeCloses {
				closing = at
			}
		}
		if err := sections.Leap(header); err != nil {
			return 0, nil, fmt.Errorf("look for keyframes: %w", err)
		}
	}
}

// indexOffset reads where the index is from the last bytes of a trace that ended cleanly.
func indexOffset(file io.ReaderAt, size int64) (offset int64, ok bool) {
	var tail [8]byte
	if size < section.HeadSize+section.HeaderSize+8 {
		return 0, false
	}
	if _, err := file.ReadAt(tail[:], size-8); err != nil {
		return 0, false
	}
	v := binary.LittleEndian.Uint64(tail[:])
	return int64(v), v >= section.HeadSize && v <= uint64(size-section.HeaderSize)
}

// readClosing returns the offset of the last place, 0 where the keyframes are of another version.
func (k *Keyframes) readClosing(at int64, end []byte) (last int64, err error) {
	s := k.from(at)
	payload, err := s.Whole(section.Keyframe)
	if err != nil {
		return 0, fmt.Errorf("read keyframes: %w", err)
	}
	d := decoder{data: payload}
	d.bytes(1)
	if d.uvarint() != KeyframeVersion {
		return 0, nil
	}
	last = int64(d.uvarint())
	for _, v := range closingBooks(&k.Closing.Health) {
		*v = d.uvarint()
	}
	if same := d.bytes(d.uvarint()); d.failed || last < 0 || last >= at || !bytes.Equal(same, end) {
		return 0, fmt.Errorf("%w: it was made for another trace", errKeyframe)
	}
	parts := d.uvarint()
	if d.failed || parts > maxKeyframeParts {
		return 0, fmt.Errorf("%w: closing at offset %d", errKeyframe, at)
	}
	for range parts {
		if err := readPart(s, nil, &k.Closing.State); err != nil {
			return 0, err
		}
	}
	return last, nil
}

// from returns a reader of the sections from an offset on, until the next call.
func (k *Keyframes) from(at int64) *section.Reader {
	k.sections.Offset = at
	k.sections.Continue(io.NewSectionReader(k.file, at, k.size-at), k.size)
	return &k.sections
}

func (k *Keyframes) place(at int64) (p KeyframePlace, err error) {
	s := k.from(at)
	payload, err := s.Whole(section.Keyframe)
	if err != nil {
		return p, fmt.Errorf("read keyframe: %w", err)
	}
	return decodePlace(payload, at)
}

// Read reads a keyframe whole.
func (k *Keyframes) Read(p *KeyframePlace) (*Keyframe, error) {
	s := k.from(p.at)
	if _, err := s.Whole(section.Keyframe); err != nil {
		return nil, fmt.Errorf("read keyframe: %w", err)
	}
	v := &Keyframe{KeyframePlace: *p}
	for range p.parts {
		if err := readPart(s, &v.Live, &v.State); err != nil {
			return nil, err
		}
	}
	if uint64(len(v.Live)) != p.live {
		return nil, fmt.Errorf("%w: %d live blocks at offset %d, of %d", errKeyframe, len(v.Live), p.at, p.live)
	}
	return v, nil
}

// readPart adds the contents of the next section to a keyframe; live is nil where there can be no events.
func readPart(s *section.Reader, live *[]Event, state *State) error {
	at := s.Offset
	payload, err := s.Whole(section.Keyframe)
	if err != nil {
		return fmt.Errorf("read keyframe: %w", err)
	}
	switch {
	case len(payload) > 0 && payload[0] == keyframeTables:
		d := decoder{data: payload[1:]}
		if state.decode(&d); !d.failed {
			return nil
		}
	case len(payload) > 0 && payload[0] == keyframeLive && live != nil:
		var block blockDecoder
		var batch Batch
		if err := block.open(payload[1:]); err != nil {
			return fmt.Errorf("%w: part at offset %d: %w", errKeyframe, at, err)
		}
		for block.left > 0 {
			if err := block.next(&batch, batchEvents); err != nil {
				return fmt.Errorf("%w: part at offset %d: %w", errKeyframe, at, err)
			}
			*live = append(*live, batch.Rows()...)
		}
		return nil
	}
	return fmt.Errorf("%w: part at offset %d", errKeyframe, at)
}

// entered is what a reader knows that does not read all blocks of events.
type entered struct {
	hop  section.Hop
	list *Keyframes
}

// Keyframes implements Keyframed.
func (r *Reader) Keyframes() *Keyframes {
	file, size := r.sections.At()
	if file == nil || size < 0 {
		return nil
	}
	list, err := ReadKeyframes(file, size)
	if err != nil {
		return nil
	}
	return list
}

// Enter implements Keyframed.
func (r *Reader) Enter(list *Keyframes, at *KeyframePlace) {
	r.entered = &entered{list: list}
	if at != nil {
		r.entered.hop.Until = at.Offset
	}
	r.sections.Hop(&r.entered.hop)
}

// Leave implements Keyframed.
func (r *Reader) Leave() {
	if r.entered != nil {
		r.entered.hop.Leave()
	}
}

// BlockOffset implements Keyframed.
func (r *Reader) BlockOffset() int64 { return r.blockAt }

// books puts the figures of a whole reading in place of those of what was read.
func (e *entered) books(h *Health) {
	if e == nil {
		return
	}
	whole := closingBooks(&e.list.Closing.Health)
	for i, v := range closingBooks(h) {
		*v = *whole[i]
	}
}
