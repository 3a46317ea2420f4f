package analyzer

import (
	"errors"
	"fmt"
	"io"

	"memtrace/trace"
)

// KeyframeDistance says how far keyframes are apart.
type KeyframeDistance struct {
	Events  uint64  // at least so many
	Blocks  uint64  // and so many for each live block
	PerByte float64 // and so many for each byte of the keyframes so far, that one included
}

// UsualDistance keeps keyframes below 0.15 bytes an event.
var UsualDistance = KeyframeDistance{Events: 1 << 20, Blocks: 32, PerByte: 1 / 0.15}

// KeyframeSource is what keyframes are made from.
type KeyframeSource interface {
	trace.Source
	trace.Keyframed
}

// ErrNoKeyframes is wrapped by errors that say why a trace can have no keyframes.
var ErrNoKeyframes = errors.New("no keyframes can be added")

// keyframeMaker decides when a keyframe is due.
type keyframeMaker struct {
	*keeper
	distance    KeyframeDistance
	put         func(*trace.Keyframe) (bytes int64, err error)
	last, count uint64 // events before the last one, and how many there are
	bytes, size int64  // of all, and of the last one
	block       int64
}

// MakeKeyframes replays a trace whole and hands keyframes to put, which returns their size. The options ask for
// Training, so that keyframes serve reports with and without. Errors: those of Replay, and ErrNoKeyframes where the
// trace is not whole. It returns what holds for the trace, and how many keyframes there are.
func MakeKeyframes(src KeyframeSource, opts Options, distance KeyframeDistance,
	put func(*trace.Keyframe) (bytes int64, err error)) (*trace.KeyframesClosing, int, error) {
	p, err := NewProfile(src, opts)
	if err != nil {
		return nil, 0, err
	}
	defer p.Close()
	r := p.replayer
	m := &keyframeMaker{keeper: newKeeper(r), distance: distance, put: put}
	r.ooms.Info = src.Info
	r.figures.list = append(r.figures.list, m.keeper)
	for {
		events, err := src.ReadBatch()
		r.enterPart(src.Info())
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = m.due(src.BlockOffset())
		}
		if err != nil {
			return nil, 0, fmt.Errorf("make keyframes: %w", err)
		}
		if r.rows(events); opts.Progress != nil {
			opts.Progress(bytesRead(src))
		}
	}
	why := notWhole(src, r)
	if why == "" && m.count == 0 {
		why = "the trace is too short for them, or nowhere simple enough"
	}
	if why != "" {
		return nil, 0, fmt.Errorf("%w: %s", ErrNoKeyframes, why)
	}
	closing := &trace.KeyframesClosing{Health: src.Health()}
	m.keepClosing(&closing.State, p.known)
	return closing, int(m.count), nil
}

// due makes a keyframe before the first events of a block, if it is time.
func (m *keyframeMaker) due(block int64) error {
	before := m.block
	m.block = block
	since, live := m.events-m.last, uint64(m.r.heap.Len())
	if block == before || m.events == 0 || since < max(m.distance.Events, m.distance.Blocks*live) {
		return nil
	}
	if expected := max(m.size, 5*int64(live)); float64(m.bytes+expected)*m.distance.PerByte > float64(m.events) ||
		!m.r.canKeep() {
		return nil
	}
	size, err := m.put(m.keep(block))
	m.last, m.size, m.bytes, m.count = m.events, size, m.bytes+size, m.count+1
	return err
}

// notWhole says why what was read is not all that was recorded, "" if it is.
func notWhole(src trace.Source, r *replayer) string {
	h := src.Health()
	records, rings, dict := src.Lost()
	_, ended := src.End()
	switch {
	case !ended:
		return "the trace has no clean end"
	case h.Truncated || h.Torn.Stretches > 0 || h.Restored.Stretches > 0 || h.Altered != "" || h.Repeated > 0:
		return "the trace is damaged"
	case records+rings+dict > 0 || r.losses.count > 0:
		return "records were lost"
	}
	return ""
}
