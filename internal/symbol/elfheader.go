package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// debug/elf reads all section headers and their names before it can be queried. A sparse file has any size at no cost,
// and many sections may share one long name, so the claimed sizes are added up first: otherwise files of a few KiB
// could exhaust memory.

const (
	// maxSections bounds an object file's sections. Those that linkers make have some dozens.
	maxSections = 1 << 17
	// maxSectionNames bounds the names of sections, as stored and one by one, in bytes.
	maxSectionNames = 64 << 20
)

// checkHeaders refuses what debug/elf must not be given.
func (im *image) checkHeaders() error {
	var h elf.Header64
	if err := im.header(0, &h, binary.LittleEndian); err != nil {
		return err
	}
	if string(h.Ident[:4]) != elf.ELFMAG || elf.Class(h.Ident[elf.EI_CLASS]) != elf.ELFCLASS64 {
		return errNotObject
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if elf.Data(h.Ident[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
		if err := im.header(0, &h, order); err != nil {
			return err
		}
	}
	if h.Shoff == 0 {
		return nil
	}
	// if the file header cannot hold the number of sections or the index of the name section, this one does
	var first elf.Section64
	if err := im.header(h.Shoff, &first, order); err != nil {
		return err
	}
	count, names := uint64(h.Shnum), uint64(h.Shstrndx)
	if count == 0 {
		count = first.Size
	}
	if names == uint64(elf.SHN_XINDEX) {
		names = uint64(first.Link)
	}
	if count > maxSections || names >= max(count, 1) {
		return errNotObject
	}
	return im.checkNames(&h, count, names, order)
}

// checkNames adds up the names of all sections.
func (im *image) checkNames(h *elf.Header64, count, names uint64, order binary.ByteOrder) error {
	size := uint64(h.Shentsize)
	var table elf.Section64
	if err := im.header(h.Shoff+names*size, &table, order); err != nil {
		return err
	}
	if table.Size > maxSectionNames || elf.SectionFlag(table.Flags)&elf.SHF_COMPRESSED != 0 {
		return errNotObject
	}
	headers, err := im.bytes(h.Shoff, count*size)
	if err != nil || size < uint64(binary.Size(table)) {
		return errNotObject
	}
	text, err := im.bytes(table.Off, table.Size)
	if err != nil {
		return err
	}
	sum := 0
	for ; len(headers) > 0 && sum <= maxSectionNames; headers = headers[size:] {
		if at := uint64(order.Uint32(headers)); at < uint64(len(text)) {
			sum += bytes.IndexByte(text[at:], 0) + 1
		}
	}
	if sum > maxSectionNames {
		return errNotObject
	}
	return nil
}

// header reads a header of the file.
func (im *image) header(offset uint64, into any, order binary.ByteOrder) error {
	data, err := im.bytes(offset, uint64(binary.Size(into)))
	if err != nil {
		return err
	}
	_, err = binary.Decode(data, order, into)
	return err
}
