package runprofile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"memtrace/analyzer/report"
)

// The file, little-endian:
//
//	0  magic "MTPROF" and a zero
//	7  version, one byte
//	8  bytes of the head, uint32
//	12 bytes of the body, uint32
//	16 head: JSON, one zstd frame with its checksum
//	   body: the same, up to the end of the file

const (
	magic      = "MTPROF\x00"
	version    = 1
	headerSize = 16
)

// What a file may hold at most, in bytes; a profile has a few kilobytes.
const (
	MaxFile     = 64 << 20
	maxHeadText = 4 << 20
	maxBodyText = 256 << 20
)

// ErrNotProfile is returned for a file that does not begin like a profile.
var ErrNotProfile = errors.New("not a profile")

// Is reports whether a file that begins with these bytes is a profile.
func Is(begin []byte) bool { return bytes.HasPrefix(begin, []byte(magic)) }

// Write writes a profile.
func (p *Profile) Write(w io.Writer) error {
	head, err := pack(&p.Head)
	if err != nil {
		return err
	}
	body, err := pack(&p.Body)
	if err != nil {
		return err
	}
	file := append([]byte(magic), version)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(head)))
	file = binary.LittleEndian.AppendUint32(file, uint32(len(body)))
	if _, err := w.Write(append(append(file, head...), body...)); err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	return nil
}

func pack(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write the profile: %w", err)
	}
	enc, err := encoder()
	if err != nil {
		return nil, fmt.Errorf("set up compression: %w", err)
	}
	return enc.EncodeAll(text, nil), nil
}

// The coders take more time to make than a profile to code.
var (
	encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(256<<10))
	})
	headDecoder = sync.OnceValues(func() (*zstd.Decoder, error) { return newDecoder(maxHeadText) })
	bodyDecoder = sync.OnceValues(func() (*zstd.Decoder, error) { return newDecoder(maxBodyText) })
)

// newDecoder returns a decoder that refuses more than limit bytes of text.
func newDecoder(limit uint64) (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(limit))
}

// File is a profile whose parts are decoded on demand.
type File struct {
	file       io.ReaderAt
	head, body int64 // bytes
}

// Open reads the header of a profile of size bytes. Errors: ErrNotProfile, a version that this package does not know, a
// file that is cut or too long.
func Open(file io.ReaderAt, size int64) (*File, error) {
	begin := make([]byte, min(size, headerSize))
	if _, err := file.ReadAt(begin, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the profile: %w", err)
	}
	switch {
	case !Is(begin):
		return nil, ErrNotProfile
	case len(begin) < headerSize:
		return nil, fmt.Errorf("a profile that is cut after %d bytes, within its header", size)
	case begin[7] != version:
		return nil, fmt.Errorf("a profile of version %d; this memtrace reads version %d", begin[7], version)
	}
	f := &File{file, int64(binary.LittleEndian.Uint32(begin[8:])), int64(binary.LittleEndian.Uint32(begin[12:]))}
	switch whole := headerSize + f.head + f.body; {
	case whole > MaxFile:
		return nil, fmt.Errorf("a profile that states %d bytes; %d are allowed", whole, MaxFile)
	case size < whole:
		return nil, fmt.Errorf("a profile that is cut: it has %d of its %d bytes", size, whole)
	case size > whole:
		return nil, fmt.Errorf("a profile with %d bytes behind its end", size-whole)
	}
	return f, nil
}

// Head decodes the head.
func (f *File) Head() (*report.Head, error) {
	var h report.Head
	if err := f.part(headerSize, f.head, headDecoder, &h); err != nil {
		return nil, fmt.Errorf("the head of the profile: %w", err)
	}
	return &h, checkHead(&h)
}

// Body decodes the body.
func (f *File) Body() (*Body, error) {
	var b Body
	if err := f.part(headerSize+f.head, f.body, bodyDecoder, &b); err != nil {
		return nil, fmt.Errorf("the body of the profile: %w", err)
	}
	return &b, b.check()
}

// part decodes one of the two.
func (f *File) part(offset, size int64, decoder func() (*zstd.Decoder, error), into any) error {
	packed := make([]byte, size)
	if _, err := f.file.ReadAt(packed, offset); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	dec, err := decoder()
	if err != nil {
		return fmt.Errorf("set up decompression: %w", err)
	}
	text, err := dec.DecodeAll(packed, nil)
	if err != nil {
		return fmt.Errorf("damaged: %w", err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("damaged: %w", err)
	}
	return nil
}
