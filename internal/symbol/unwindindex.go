package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
)

const (
	maxUnwindIndex = 256 << 20 // bytes of .eh_frame_hdr's table, or of .eh_frame if it must be read as a whole
	maxUnwindEntry = 64 << 10  // bytes of one CIE
)

// How pointers in unwind tables are written (DW_EH_PE_*): the format in the low half, what they count from in the high
// one.
const (
	pointerAbsolute = 0x00
	pointerLEB      = 0x01
	pointer2        = 0x02
	pointer4        = 0x03
	pointer8        = 0x04
	pointerSigned   = 0x08
	pointerHere     = 0x10 // relative to its own address
	pointerTable    = 0x30 // relative to the start of .eh_frame_hdr
	pointerOmitted  = 0xff
)

// unwindIndex is the ranges of functions, named or not.
type unwindIndex struct {
	image *image
	base  uint64            // address of .eh_frame_hdr
	table []byte            // its sorted pairs: start and FDE, 4 bytes each, relative to base
	spans []span            // instead of the table in a file without .eh_frame_hdr
	codes map[uint64]uint8  // how a CIE's pointers are written, by address of the CIE
	found map[uint64]fdePos // by index into the table
}

type fdePos struct {
	bounds span
	ok     bool
}

// readUnwind prepares the index; errNoSection means that the file has no unwind information.
func (im *image) readUnwind() (*unwindIndex, error) {
	u := &unwindIndex{image: im, codes: make(map[uint64]uint8), found: make(map[uint64]fdePos)}
	for _, p := range im.elf.Progs {
		const ehFrameHeader = elf.PT_GNU_EH_FRAME
		if p.Type == ehFrameHeader {
			return u, u.readHeader(p)
		}
	}
	if s := im.section(".eh_frame"); s != nil {
		return u, u.readAll(s)
	}
	return nil, errNoSection
}

// readHeader reads .eh_frame_hdr: version, three encodings, the address of .eh_frame, the number of pairs, the pairs.
func (u *unwindIndex) readHeader(p *elf.Prog) error {
	if p.Filesz > maxUnwindIndex {
		return fmt.Errorf("unwind table of %d bytes: %w", p.Filesz, errTooLarge)
	}
	data, err := u.image.bytes(p.Off, p.Filesz)
	if err != nil {
		return err
	}
	if len(data) < 4 || data[0] != 1 || data[3] != pointerTable|pointerSigned|pointer4 {
		return errors.New("an unwind table of an unknown kind")
	}
	order := u.image.elf.ByteOrder
	c := pointersIn(data, order, p.Vaddr)
	c.skip(4)
	c.pointer(data[1], p.Vaddr)
	count := c.pointer(data[2], p.Vaddr)
	if c.err != nil || count > uint64(len(c.data))/8 {
		return errors.New("an unwind table that is cut")
	}
	u.base, u.table = p.Vaddr, c.data[:count*8]
	return nil
}

// readAll lists the functions of an .eh_frame that has no sorted table.
func (u *unwindIndex) readAll(s *elf.Section) error {
	if s.Size > maxUnwindIndex {
		return fmt.Errorf("unwind table of %d bytes: %w", s.Size, errTooLarge)
	}
	for at := s.Addr; at < s.Addr+s.Size; {
		size, bounds, ok := u.entry(at)
		if size == 0 {
			break
		}
		if ok {
			u.spans = append(u.spans, bounds)
		}
		at += size
	}
	sort.Slice(u.spans, func(i, j int) bool { return u.spans[i].start < u.spans[j].start })
	return nil
}

// at returns the bounds of the function that covers an address.
func (u *unwindIndex) at(address uint64) (span, bool) {
	if u == nil {
		return span{}, false
	}
	if u.table == nil {
		i := sort.Search(len(u.spans), func(i int) bool { return u.spans[i].start > address }) - 1
		if i < 0 || !u.spans[i].contains(address) {
			return span{}, false
		}
		return u.spans[i], true
	}
	order := u.image.elf.ByteOrder
	relative := func(at int) uint64 { return u.base + uint64(int64(int32(order.Uint32(u.table[at:])))) }
	i := sort.Search(len(u.table)/8, func(i int) bool { return relative(i*8) > address }) - 1
	if i < 0 {
		return span{}, false
	}
	have, known := u.found[uint64(i)]
	if !known {
		_, have.bounds, have.ok = u.entry(relative(i*8 + 4))
		u.found[uint64(i)] = have
	}
	if !have.ok || !have.bounds.contains(address) {
		return span{}, false
	}
	return have.bounds, true
}

// entry reads the entry of .eh_frame at an address. Its size is 0 at the end of the section and where nothing can be
// read; ok is true for functions (FDEs).
func (u *unwindIndex) entry(at uint64) (size uint64, bounds span, ok bool) {
	head, err := u.read(at, 8)
	if err != nil {
		return 0, span{}, false
	}
	order := u.image.elf.ByteOrder
	length, back := uint64(order.Uint32(head)), uint64(order.Uint32(head[4:]))
	if length < 4 || length == 0xffffffff { // the latter would be an entry of more than 4 GiB
		return 0, span{}, false
	}
	size = length + 4
	if back == 0 { // a CIE
		return size, span{}, false
	}
	code, known := u.code(at + 4 - back)
	if !known {
		return size, span{}, false
	}
	body, err := u.read(at+8, min(length-4, 16))
	if err != nil {
		return size, span{}, false
	}
	c := pointersIn(body, order, at+8)
	start := c.pointer(code, u.base)
	n := c.pointer(code&0x0f, 0)
	return size, span{start, start + n}, c.err == nil && start+n > start
}

// code returns how the pointers of a CIE's functions are written.
func (u *unwindIndex) code(at uint64) (uint8, bool) {
	code, known := u.codes[at]
	if !known {
		code = u.readCode(at)
		u.codes[at] = code
	}
	return code, code != pointerOmitted
}

// readCode reads a CIE: length, 0, version, augmentation, two LEB128 numbers, a register, and what the augmentation
// announces.
func (u *unwindIndex) readCode(at uint64) uint8 {
	head, err := u.read(at, 8)
	if err != nil {
		return pointerOmitted
	}
	order := u.image.elf.ByteOrder
	length := uint64(order.Uint32(head))
	if length < 5 || length > maxUnwindEntry || order.Uint32(head[4:]) != 0 {
		return pointerOmitted
	}
	data, err := u.read(at+8, length-4)
	if err != nil {
		return pointerOmitted
	}
	end := bytes.IndexByte(data[1:], 0)
	if end < 0 {
		return pointerOmitted
	}
	augmentation := data[1 : 1+end]
	if len(augmentation) == 0 || augmentation[0] != 'z' {
		return pointerAbsolute
	}
	c := pointersIn(data, order, at+8)
	c.skip(uint64(end) + 2)
	c.leb()
	c.leb()
	if data[0] == 1 {
		c.number(1)
	} else {
		c.leb()
	}
	c.leb() // length of what follows
	for _, letter := range augmentation[1:] {
		switch letter {
		case 'R':
			if code := uint8(c.number(1)); c.err == nil {
				return code
			}
			return pointerOmitted
		case 'P':
			c.pointer(uint8(c.number(1))&0x0f, 0)
		case 'L':
			c.number(1)
		case 'S', 'B', 'G':
		default:
			return pointerOmitted
		}
		if c.err != nil {
			return pointerOmitted
		}
	}
	return pointerAbsolute
}

// read reads bytes at an address of the object.
func (u *unwindIndex) read(address, size uint64) ([]byte, error) {
	offset, ok := u.image.fileOffset(address)
	if !ok {
		return nil, errors.New("outside of the file")
	}
	return u.image.bytes(offset, size)
}

// pointerReader reads the pointers of unwind tables, too.
type pointerReader struct {
	headerReader
	end uint64 // address after the data
}

// pointersIn reads data at an address of the object.
func pointersIn(data []byte, order binary.ByteOrder, address uint64) pointerReader {
	return pointerReader{headerReader{data: data, order: order}, address + uint64(len(data))}
}

// pointer reads one pointer. table is the base of pointers of the kind pointerTable.
func (c *pointerReader) pointer(code uint8, table uint64) uint64 {
	if code == pointerOmitted {
		return 0
	}
	here := c.end - uint64(len(c.data))
	var value uint64
	switch code & 0x0f {
	case pointerAbsolute, pointer8, pointerSigned | pointer8:
		value = c.number(8)
	case pointer4:
		value = c.number(4)
	case pointerSigned | pointer4:
		value = uint64(int64(int32(c.number(4))))
	case pointer2:
		value = c.number(2)
	case pointerSigned | pointer2:
		value = uint64(int64(int16(c.number(2))))
	case pointerLEB:
		value = c.leb()
	default:
		c.err = errPointer
	}
	switch code & 0x70 {
	case 0:
	case pointerHere:
		value += here
	case pointerTable:
		value += table
	default:
		c.err = errPointer
	}
	return value
}

var errPointer = errors.New("a pointer of an unknown kind")
