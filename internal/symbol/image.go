package symbol

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"memtrace/internal/safefile"
)

const (
	// maxDebugSection bounds one section of debug information that must be held in memory because it is compressed.
	maxDebugSection = 1 << 30
	// maxNote bounds the notes that are searched for a build-id.
	maxNote = 64 << 10
)

var (
	errNoSection = errors.New("no such section")
	errTooLarge  = errors.New("larger than memtrace reads")
)

// image is an open ELF file: an object file of the run, or its debug file. Nothing of it is held in memory beyond its
// headers.
type image struct {
	path  string
	file  *os.File
	size  int64
	mtime int64 // Unix nanoseconds
	elf   *elf.File
	id    string // build-id, hexadecimal; "" none
}

// errNotObject is the only error reported for a file whose build-id was not compared yet. A trace may name any file
// that its reader may read, and the trace's author may see the report: it must contain neither a byte of such a file
// nor a parser's result for one.
var errNotObject = errors.New("not a whole 64-bit object file")

// openImage opens an object file. Only regular files are opened.
func openImage(path string) (*image, error) {
	file, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	im, err := newImage(path, file)
	if err != nil {
		file.Close()
		return nil, err
	}
	return im, nil
}

func newImage(path string, file *os.File) (*image, error) {
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	im := &image{path: path, file: file, size: st.Size(), mtime: st.ModTime().UnixNano()}
	err = guard(func() error {
		if err := im.checkHeaders(); err != nil {
			return err
		}
		var err error
		if im.elf, err = elf.NewFile(file); err != nil {
			return err
		}
		im.id = im.buildID()
		return nil
	})
	if err != nil {
		return nil, errNotObject
	}
	return im, nil
}

func (im *image) close() { im.file.Close() }

// guard runs what reads a file that may hold anything: a fault of the parsers becomes an error.
func guard(read func() error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("damaged: %v", fault)
		}
	}()
	return read()
}

// buildID looks through the notes, by section and, in files without sections, by segment.
func (im *image) buildID() string {
	for _, s := range im.elf.Sections {
		if s.Type == elf.SHT_NOTE && s.FileSize <= maxNote {
			if id := im.noteID(s.Offset, s.FileSize, s.Addralign); id != "" {
				return id
			}
		}
	}
	for _, p := range im.elf.Progs {
		if p.Type == elf.PT_NOTE && p.Filesz <= maxNote {
			if id := im.noteID(p.Off, p.Filesz, p.Align); id != "" {
				return id
			}
		}
	}
	return ""
}

// noteID walks notes: sizes of name and content, type, name, content, both padded.
func (im *image) noteID(offset, size, align uint64) string {
	data, err := im.bytes(offset, size)
	if err != nil {
		return ""
	}
	pad := uint64(3)
	if align == 8 {
		pad = 7
	}
	order := im.elf.ByteOrder
	for len(data) >= 12 {
		nameLen, descLen, kind := uint64(order.Uint32(data)), uint64(order.Uint32(data[4:])), order.Uint32(data[8:])
		desc := 12 + (nameLen+pad)&^pad
		next := desc + (descLen+pad)&^pad
		if desc+descLen > uint64(len(data)) {
			return ""
		}
		const buildIDNote = 3
		if kind == buildIDNote && nameLen == 4 && string(data[12:16]) == "GNU\x00" {
			return hex.EncodeToString(data[desc : desc+descLen])
		}
		data = data[min(next, uint64(len(data))):]
	}
	return ""
}

// bytes reads a range of the file, which must be inside of it.
func (im *image) bytes(offset, size uint64) ([]byte, error) {
	if offset > uint64(im.size) || size > uint64(im.size)-offset {
		return nil, io.ErrUnexpectedEOF
	}
	data := make([]byte, size)
	_, err := im.file.ReadAt(data, int64(offset))
	return data, err
}

// section finds a section that has content in this file.
func (im *image) section(name string) *elf.Section {
	s := im.elf.Section(name)
	if s == nil || s.Type == elf.SHT_NOBITS || s.Type == elf.SHT_NULL || s.Size == 0 {
		return nil
	}
	return s
}

// content returns a section, uncompressed, of at most limit bytes.
func (im *image) content(s *elf.Section, limit uint64) ([]byte, error) {
	switch {
	case strings.HasPrefix(s.Name, ".zdebug_"):
		return im.oldCompressed(s, limit)
	case s.Flags&elf.SHF_COMPRESSED == 0:
		if s.Size > limit {
			return nil, fmt.Errorf("section %s has %d bytes: %w", s.Name, s.Size, errTooLarge)
		}
		return im.bytes(s.Offset, s.Size)
	case s.Size > limit:
		return nil, fmt.Errorf("section %s has %d bytes: %w", s.Name, s.Size, errTooLarge)
	}
	return im.decompressed(s, s.Open(), s.Size, limit)
}

// decompressed reads the stream of a compressed section to its end, at most limit bytes. size is what the section says
// that it will have, which only a whole file has to keep to.
func (im *image) decompressed(s *elf.Section, stream io.Reader, size, limit uint64) ([]byte, error) {
	const usualRatio = 8
	room := min(size, limit, usualRatio*min(s.FileSize, uint64(im.size)))
	data := bytes.NewBuffer(make([]byte, 0, room+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(stream, int64(limit))); err != nil {
		return nil, fmt.Errorf("section %s: %w", s.Name, err)
	}
	return data.Bytes(), nil
}

// oldCompressed reads a section in the format before SHF_COMPRESSED: "ZLIB", the size as 8 bytes, big-endian, and a
// zlib stream.
func (im *image) oldCompressed(s *elf.Section, limit uint64) ([]byte, error) {
	raw, err := im.bytes(s.Offset, s.FileSize)
	if err != nil || len(raw) < 12 || string(raw[:4]) != "ZLIB" {
		return nil, fmt.Errorf("section %s: no compressed content", s.Name)
	}
	size := binary.BigEndian.Uint64(raw[4:])
	if size > limit {
		return nil, fmt.Errorf("section %s has %d bytes: %w", s.Name, size, errTooLarge)
	}
	stream, err := zlib.NewReader(bytes.NewReader(raw[12:]))
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", s.Name, err)
	}
	return im.decompressed(s, stream, size, limit)
}

// fileOffset translates an address inside the object to its offset in the file.
func (im *image) fileOffset(address uint64) (uint64, bool) {
	for _, p := range im.elf.Progs {
		if p.Type == elf.PT_LOAD && address >= p.Vaddr && address-p.Vaddr < p.Filesz {
			return p.Off + (address - p.Vaddr), true
		}
	}
	return 0, false
}

// codeStart is the lowest address of executable code. Debug information about lower ones describes functions that the
// linker removed.
func (im *image) codeStart() uint64 {
	lowest := ^uint64(0)
	for _, s := range im.elf.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Flags&elf.SHF_ALLOC != 0 && s.Addr < lowest {
			lowest = s.Addr
		}
	}
	if lowest == ^uint64(0) {
		return 0
	}
	return lowest
}
