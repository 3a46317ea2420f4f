package symbol

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"syscall"
)

const (
	// maxDebugUnits bounds the compilation units of one file.
	maxDebugUnits = 1 << 20
	// carefulDebug bounds all debug information that is read inside of a program that is traced.
	carefulDebug = 64 << 20
)

// debugInfo is the DWARF information of one file: the lines and inlined functions at an address. Units are read on
// first use.
type debugInfo struct {
	data  *dwarf.Data
	alt   *dwarf.Data // of the file that several share (dwz); nil none
	altSt []byte      // its .debug_str
	line  []byte      // .debug_line
	order binary.ByteOrder

	ranges []unitRange // by start
	units  []*unit
	names  map[dwarf.Offset]entryName
	low    uint64 // addresses below belong to functions removed by the linker
	split  bool   // some units have most of their information in other files
	maps   *mappings
}

// mappings are the parts of files that a debugInfo has mapped.
type mappings struct{ parts [][]byte }

func (m *mappings) release() {
	for _, part := range m.parts {
		_ = syscall.Munmap(part)
	}
	m.parts = nil
}

// unitRange is a range of code of one unit.
type unitRange struct {
	span
	reach uint64 // highest end of this and all ranges before it
	unit  *unit
}

var errNoDebug = errors.New("no debug information")

// readDebug opens the DWARF information of a file. If careful, it maps no files and reads little.
func (im *image) readDebug(careful bool) (*debugInfo, error) {
	d := &debugInfo{order: im.elf.ByteOrder, low: im.codeStart(), names: make(map[dwarf.Offset]entryName),
		maps: new(mappings)}
	runtime.AddCleanup(d, (*mappings).release, d.maps) // for resolvers that are never closed
	info, err := im.dwarfData(d, careful)
	if err != nil {
		d.close()
		return nil, err
	}
	if err := d.indexUnits(info); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// close gives the mapped parts of the file back.
func (d *debugInfo) close() {
	d.maps.release()
	*d = debugInfo{maps: d.maps}
}

// dwarfData reads the sections that package dwarf needs, and returns the one with the units.
func (im *image) dwarfData(d *debugInfo, careful bool) (info []byte, err error) {
	limit := uint64(carefulDebug)
	get := func(name string) []byte {
		if err != nil {
			return nil
		}
		var content []byte
		content, err = im.debugSection(d, name, careful, limit)
		limit -= min(limit, uint64(len(content)))
		return content
	}
	defer faultsAsPanics()()
	info, abbrev := get("info"), get("abbrev")
	if err == nil && (info == nil || abbrev == nil) {
		return nil, errNoDebug
	}
	var str []byte
	d.line, str = get("line"), get("str")
	ranges := get("ranges")
	more := map[string][]byte{}
	for _, name := range []string{"addr", "line_str", "str_offsets", "rnglists", "loclists"} {
		more[".debug_"+name] = get(name)
	}
	if err != nil {
		return nil, err
	}
	return info, guard(func() error {
		var err error
		if d.data, err = dwarf.New(abbrev, nil, nil, info, d.line, nil, ranges, str); err != nil {
			return damagedDebug(err)
		}
		for name, content := range more {
			if content == nil {
				continue
			}
			if err := d.data.AddSection(name, content); err != nil {
				return damagedDebug(err)
			}
		}
		return nil
	})
}

func damagedDebug(err error) error { return fmt.Errorf("damaged debug information: %w", err) }

// readShared reads the file shared by several debug files: names of functions are looked up there.
func (d *debugInfo) readShared(im *image, careful bool) error {
	other := &debugInfo{order: d.order, maps: d.maps} // closing d unmaps them
	_, err := im.dwarfData(other, careful)
	if err != nil {
		return err
	}
	d.alt = other.data
	d.altSt, err = im.debugSection(d, "str", careful, carefulDebug)
	return err
}

// debugSection returns .debug_NAME, nil if there is none. Large uncompressed sections are mapped: only the pages that
// are read use memory.
func (im *image) debugSection(d *debugInfo, name string, careful bool, limit uint64) ([]byte, error) {
	s := im.section(".debug_" + name)
	if s == nil {
		if s = im.section(".zdebug_" + name); s == nil {
			return nil, nil
		}
	}
	const worthMapping = 256 << 10
	plain := s.Flags&elf.SHF_COMPRESSED == 0 && strings.HasPrefix(s.Name, ".debug_")
	if careful || !plain || s.Size < worthMapping {
		if !careful {
			limit = maxDebugSection
		}
		return im.content(s, limit)
	}
	if s.Offset > uint64(im.size) || s.Size > uint64(im.size)-s.Offset {
		return nil, fmt.Errorf("section %s reaches beyond the end of the file", s.Name)
	}
	page := uint64(os.Getpagesize())
	first := s.Offset &^ (page - 1)
	mapped, err := syscall.Mmap(int(im.file.Fd()), int64(first), int(s.Offset+s.Size-first), syscall.PROT_READ,
		syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("map section %s: %w", s.Name, err)
	}
	d.maps.parts = append(d.maps.parts, mapped)
	return mapped[s.Offset-first:], nil
}

// faultsAsPanics turns access to a mapped file that was truncated meanwhile into a panic, which guard turns into an
// error. The returned function undoes it.
func faultsAsPanics() func() {
	before := debug.SetPanicOnFault(true)
	return func() { debug.SetPanicOnFault(before) }
}

// indexUnits finds the code ranges of each unit.
func (d *debugInfo) indexUnits(info []byte) error {
	defer faultsAsPanics()()
	return guard(func() error {
		reader := d.data.Reader()
		for _, offset := range unitOffsets(info, d.order) {
			if len(d.units) >= maxDebugUnits {
				return fmt.Errorf("more than %d units of debug information: %w", maxDebugUnits, errTooLarge)
			}
			reader.Seek(offset)
			entry, err := reader.Next()
			if err != nil || entry == nil || (entry.Tag != dwarf.TagCompileUnit && entry.Tag != dwarf.TagSkeletonUnit) {
				continue // units of types, of parts; and damaged ones, whose neighbours may be whole
			}
			d.addUnit(entry, offset)
		}
		sort.SliceStable(d.ranges, func(i, j int) bool { return d.ranges[i].start < d.ranges[j].start })
		reach := uint64(0)
		for i := range d.ranges {
			reach = max(reach, d.ranges[i].end)
			d.ranges[i].reach = reach
		}
		return nil
	})
}

// attrOldDwoName is DW_AT_GNU_dwo_name, the name of DW_AT_dwo_name before DWARF 5.
const attrOldDwoName = dwarf.Attr(0x2130)

func (d *debugInfo) addUnit(entry *dwarf.Entry, offset dwarf.Offset) {
	if entry.Val(dwarf.AttrDwoName) != nil || entry.Val(attrOldDwoName) != nil {
		d.split = true
	}
	u := &unit{info: d, entry: entry, first: offset}
	d.units = append(d.units, u)
	for _, s := range d.spans(entry) {
		d.ranges = append(d.ranges, unitRange{span: s, unit: u})
	}
}

// spans returns the code of a unit or a function.
func (d *debugInfo) spans(entry *dwarf.Entry) []span {
	ranges, err := d.data.Ranges(entry)
	if err != nil {
		return nil
	}
	spans := make([]span, 0, len(ranges))
	for _, r := range ranges {
		if r[0] < r[1] && r[0] >= d.low {
			spans = append(spans, span{r[0], r[1]})
		}
	}
	return spans
}

// unitAt returns the unit with the smallest range around an address, or nil.
func (d *debugInfo) unitAt(address uint64) *unit {
	var best *unitRange
	after := sort.Search(len(d.ranges), func(i int) bool { return d.ranges[i].start > address })
	for i := after - 1; i >= 0 && d.ranges[i].reach > address; i-- {
		if r := &d.ranges[i]; r.contains(address) && (best == nil || r.end-r.start < best.end-best.start) {
			best = r
		}
	}
	if best == nil {
		return nil
	}
	return best.unit
}

// unitOffsets returns the offset of the first entry of each unit of .debug_info.
func unitOffsets(info []byte, order binary.ByteOrder) []dwarf.Offset {
	var offsets []dwarf.Offset
	for at := uint64(0); at+11 <= uint64(len(info)); {
		header, length := uint64(4), uint64(order.Uint32(info[at:]))
		offsetSize := uint64(4)
		if length == 0xffffffff {
			length, header, offsetSize = order.Uint64(info[at+4 : min(at+12, uint64(len(info)))][:8]), 12, 8
		}
		if length > uint64(len(info))-at-header || length < 8 {
			break
		}
		version := order.Uint16(info[at+header:])
		first := at + header + 2 + offsetSize + 1 // version, offset of the abbreviations, size of an address
		if version >= 5 {
			const typeUnit, skeleton, splitCompile, splitType = 2, 4, 5, 6
			switch first++; info[at+header+2] {
			case skeleton, splitCompile:
				first += 8
			case typeUnit, splitType:
				first += 8 + offsetSize
			}
		}
		offsets = append(offsets, dwarf.Offset(first))
		at += header + length
	}
	return offsets
}
