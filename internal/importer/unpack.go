package importer

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// mostUnpacked bounds what a compressed file may hold, in bytes.
const mostUnpacked = 1 << 36

var (
	gzipMagic = "\x1f\x8b"
	zstdMagic = "\x28\xb5\x2f\xfd"

	errUnpacked = fmt.Errorf("it holds more than %d GiB", mostUnpacked>>30)
)

// Unpack returns what a file holds that was compressed by gzip or zstd, which it writes to room, or to memory if room
// is nil; other files unchanged. most bounds what it reads; 0: no bound.
func Unpack(file io.ReaderAt, size int64, room Spill, most int64) (io.ReaderAt, int64, error) {
	section := bufio.NewReader(io.NewSectionReader(file, 0, size))
	start, _ := section.Peek(len(zstdMagic))
	var content io.Reader
	switch {
	case len(start) >= len(gzipMagic) && string(start[:len(gzipMagic)]) == gzipMagic:
		r, err := gzip.NewReader(section)
		if err != nil {
			return nil, 0, fmt.Errorf("unpack: %w", err)
		}
		content = r
	case string(start) == zstdMagic:
		r, err := zstd.NewReader(section, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(1<<27))
		if err != nil {
			return nil, 0, fmt.Errorf("unpack: %w", err)
		}
		defer r.Close()
		content = r
	default:
		return file, size, nil
	}
	if room == nil {
		room = &memorySpill{}
	}
	limit := int64(mostUnpacked)
	if most > 0 {
		limit = most - 1
	}
	n, err := io.Copy(io.NewOffsetWriter(room, 0), io.LimitReader(content, limit+1))
	switch {
	case most > 0 && n > 0: // the beginning is enough
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, 0, errors.New("cut: the compressed file has no end; copy the whole file")
	case err != nil:
		return nil, 0, fmt.Errorf("unpack: %w", err)
	case n > limit:
		return nil, 0, errUnpacked
	}
	return room, n, nil
}
