package section

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// encoderWindow bounds how far back a zstd match may reach, and with it the encoder's memory. Blocks are compressed
// whole; a period of a training step is a few KiB in each column.
const encoderWindow = 256 << 10

// newCompressor returns an encoder that works in the calling goroutine and keeps little memory, for use inside the
// traced program.
func newCompressor() (*zstd.Encoder, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(encoderWindow), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
	if err != nil {
		return nil, fmt.Errorf("set up compression: %w", err)
	}
	return enc, nil
}

func newDecompressor() (*zstd.Decoder, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(MaxBytes),
		zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("set up decompression: %w", err)
	}
	return dec, nil
}

var errRawSize = errors.New("compressed section states an impossible size")

// decompress expands payload into dst, whose memory is reused. The frame must state raw as its content size, so nothing
// larger is ever allocated.
func decompress(dec *zstd.Decoder, kind Kind, dst, payload []byte, raw int) ([]byte, error) {
	if !rawSizeAllowed(kind, len(payload), raw) {
		return nil, fmt.Errorf("%w: %d bytes out of %d", errRawSize, raw, len(payload))
	}
	var head zstd.Header
	if err := head.Decode(payload); err != nil {
		return nil, fmt.Errorf("read zstd header: %w", err)
	}
	if head.Skippable || !head.HasFCS || head.FrameContentSize != uint64(raw) {
		return nil, fmt.Errorf("%w: frame and section differ", errRawSize)
	}
	if cap(dst) < raw {
		dst = make([]byte, 0, raw)
	}
	out, err := dec.DecodeAll(payload, dst[:0:max(raw, 1)])
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	if len(out) != raw {
		return nil, fmt.Errorf("%w: %d bytes instead of %d", errRawSize, len(out), raw)
	}
	return dst[:raw], nil // which is out, with its spare capacity
}

const (
	// A compressed section may state at most ratioSlack + ratio * stored bytes as its raw size, and the writer stores
	// it plain where it would be more. Events are decoded in passing, so their ratio may be generous; what a dictionary
	// holds stays in memory.
	ratioSlack      = 64 << 10
	ratioEvents     = 4096
	ratioDictionary = 256
)

// rawSizeAllowed reports whether a section of the given kind may claim raw bytes for stored compressed ones.
func rawSizeAllowed(kind Kind, stored, raw int) bool {
	ratio := ratioDictionary
	if kind == Events {
		ratio = ratioEvents
	}
	return raw <= MaxBytes && raw <= ratioSlack+ratio*stored
}
