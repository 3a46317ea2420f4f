package symbol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"memtrace/internal/safefile"
)

// The cache keeps, in one file per build-id, the frames found for addresses of an object file. A cached address needs
// no access to the object file.
//
// File: cacheMagic, CRC-32C of the rest (4 bytes, little-endian), then uvarints and texts (length, bytes): the identity
// of the object file and of its debug file when the names were found; number of texts, texts; number of addresses, and
// for each: distance to the previous address, number of frames, and for each frame: number of its function and of its
// file, line, start of the function, 1 if it is inlined.
const cacheMagic = "MTSYMS\x00\x01"

const (
	maxCacheFile      = 32 << 20
	maxCacheAddresses = 1 << 20
	maxCacheFrames    = 1 << 12
	// maxCacheFolder bounds the size of all files together; the least recently written are removed first.
	maxCacheFolder = 512 << 20
)

var errCache = errors.New("not a whole cache file of this version")

// cacheFile is the cached content for one object file.
type cacheFile struct {
	path   string // "" nothing is kept
	source string // the source of the names, see object.source
	frames map[uint64][]Frame
	dirty  bool
}

// cachePath is the cache file of an object file; "" for object files without an identity.
func cachePath(folder, buildID string) string {
	if folder == "" || len(buildID) < 8 || len(buildID) > 128 || strings.Trim(buildID, "0123456789abcdef") != "" {
		return ""
	}
	return filepath.Join(folder, buildID)
}

// openCache reads a file of the cache. One that is missing, damaged, of another version, or of other sources is treated
// as empty. If no source is available (source is empty), cached names are used regardless of theirs: the build-id
// matches.
func openCache(path, source string) *cacheFile {
	c := &cacheFile{path: path, source: source}
	if path == "" {
		return c
	}
	data, err := safefile.ReadUnlinked(path, maxCacheFile)
	if err == nil {
		var keptSource string
		if keptSource, c.frames, err = decodeCache(data); err == nil && source != "" && keptSource != source {
			c.frames = nil
		} else if source == "" {
			c.source = keptSource
		}
	}
	if err != nil || c.frames == nil {
		c.frames = make(map[uint64][]Frame)
	}
	return c
}

func decodeCache(data []byte) (source string, frames map[uint64][]Frame, err error) {
	if len(data) < len(cacheMagic)+4 || string(data[:len(cacheMagic)]) != cacheMagic {
		return "", nil, errCache
	}
	data = data[len(cacheMagic):]
	if binary.LittleEndian.Uint32(data) != crc32.Checksum(data[4:], castagnoli) {
		return "", nil, errCache
	}
	r := headerReader{data: data[4:], order: binary.LittleEndian}
	text := func() string { return string(r.skip(r.leb())) }
	source = text()
	count := r.leb()
	if count > uint64(len(r.data)) { // a text takes a byte or more
		return "", nil, errCache
	}
	texts := make([]string, count)
	for i := range texts {
		texts[i] = text()
	}
	named := func() string {
		n := r.leb()
		if n >= uint64(len(texts)) {
			r.skip(uint64(len(r.data)) + 1)
			return ""
		}
		return texts[n]
	}
	addresses := r.leb()
	if addresses > maxCacheAddresses || addresses > uint64(len(r.data)) {
		return "", nil, errCache
	}
	frames = make(map[uint64][]Frame, addresses)
	address := uint64(0)
	for range addresses {
		address += r.leb()
		n := r.leb()
		if r.err != nil || n == 0 || n > maxCacheFrames || n > uint64(len(r.data))/5 {
			return "", nil, errCache
		}
		list := make([]Frame, n)
		for i := range list {
			full, file := named(), named()
			list[i] = Frame{Function: short(full), FullFunction: full, File: file, Line: int(int32(r.leb())),
				Start: r.leb(), Inlined: r.leb() == 1, Address: address}
		}
		frames[address] = list
	}
	if r.err != nil || len(r.data) != 0 {
		return "", nil, errCache
	}
	return source, frames, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encodeCache(source string, frames map[uint64][]Frame) []byte {
	numbers := make(map[string]uint64)
	var texts []string
	number := func(text string) uint64 {
		n, known := numbers[text]
		if !known {
			n = uint64(len(texts))
			numbers[text] = n
			texts = append(texts, text)
		}
		return n
	}
	body := binary.AppendUvarint(nil, uint64(len(frames)))
	before := uint64(0)
	for _, address := range slices.Sorted(maps.Keys(frames)) {
		body = binary.AppendUvarint(body, address-before)
		before = address
		body = binary.AppendUvarint(body, uint64(len(frames[address])))
		for _, f := range frames[address] {
			inlined := uint64(0)
			if f.Inlined {
				inlined = 1
			}
			for _, v := range []uint64{number(f.FullFunction), number(f.File), uint64(f.Line), f.Start, inlined} {
				body = binary.AppendUvarint(body, v)
			}
		}
	}
	text := func(data []byte, s string) []byte { return append(binary.AppendUvarint(data, uint64(len(s))), s...) }
	data := text(make([]byte, len(cacheMagic)+4), source)
	data = binary.AppendUvarint(data, uint64(len(texts)))
	for _, s := range texts {
		data = text(data, s)
	}
	data = append(data, body...)
	return withChecksum(data)
}

// withChecksum fills in the head of a cache file.
func withChecksum(data []byte) []byte {
	copy(data, cacheMagic)
	rest := data[len(cacheMagic):]
	binary.LittleEndian.PutUint32(rest, crc32.Checksum(rest[4:], castagnoli))
	return data
}

// add notes what was found for an address.
func (c *cacheFile) add(address uint64, frames []Frame) {
	if c.path != "" && len(frames) <= maxCacheFrames && len(c.frames) < maxCacheAddresses {
		c.frames[address], c.dirty = frames, true
	}
}

// save rewrites the file. A cache that cannot be written is not an error of the report.
func (c *cacheFile) save() {
	if !c.dirty {
		return
	}
	c.dirty = false
	data := encodeCache(c.source, c.frames)
	if len(data) > maxCacheFile {
		return
	}
	_ = safefile.Replace(c.path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// source identifies the files from which an object's names come, so that names cached before a debug file was installed
// are not taken as complete. It is "" if no file is available.
func (ob *object) source() string {
	var all []string
	for _, im := range []*image{ob.image, ob.extra} {
		if im != nil {
			all = append(all, fmt.Sprintf("%s %d %d", im.path, im.size, im.mtime))
		}
	}
	return strings.Join(all, "\n")
}
