package symbol

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"memtrace/trace"
)

// object is one object file of the run. It is for one goroutine at a time.
type object struct {
	module  trace.Module
	file    string // its path, absolute where that is known
	options *Options
	problem func(problem)

	opened    bool     // files were searched
	loaded    bool     // their tables were read
	broken    bool     // a part of them could not be read
	rejection *problem // why the file of the run is not used; reported when it is first needed
	kept      *cacheFile
	image     *image // the file of the run; nil: not here, or another one
	extra     *image // its debug file; nil none
	debug     *debugInfo
	tables    []symbolSource // in the order in which they are searched
	unwind    *unwindIndex
	reported  map[*unit]bool       // damaged units that were reported
	names     map[string][2]string // readable names, full and brief, of linked ones
}

// open opens the files of a module. Missing ones are reported.
func (ob *object) open() {
	if ob.opened {
		return
	}
	ob.opened, ob.reported, ob.names = true, make(map[*unit]bool), make(map[string][2]string)
	if ob.options.NoFiles || isKernelMapping(ob.module.Path) {
		return
	}
	ob.openFile()
	ob.openDebugFile()
	path := cachePath(ob.options.Cache, ob.module.BuildID)
	if ob.options.Mangled {
		path = ""
	}
	ob.kept = openCache(path, ob.source())
}

// isKernelMapping reports whether a module is mapped by the kernel and has no file.
func isKernelMapping(path string) bool {
	return path == "" || path[0] == '[' || strings.HasPrefix(path, "linux-vdso.so") ||
		strings.HasPrefix(path, "linux-gate.so")
}

// all looks up several addresses.
func (ob *object) all(places []place) [][]Frame {
	ob.open()
	all := make([][]Frame, len(places))
	for i, p := range places {
		all[i] = ob.framesKept(p.address)
	}
	return all
}

// framesKept returns the cached frames of an address, or else those found in the files.
func (ob *object) framesKept(address uint64) []Frame {
	if ob.kept == nil {
		return ob.frames(address)
	}
	if kept, ok := ob.kept.frames[address]; ok {
		frames := slices.Clone(kept)
		for i := range frames {
			frames[i].Module = ob.module.Path
		}
		return frames
	}
	frames := ob.frames(address)
	if !ob.broken && (ob.image != nil || ob.extra != nil) {
		ob.kept.add(address, slices.Clone(frames))
	}
	return frames
}

// save keeps what was found for the next time.
func (ob *object) save() {
	if ob.kept != nil && !ob.broken {
		ob.kept.save()
	}
}

// close closes the files.
func (ob *object) close() {
	if ob.debug != nil {
		ob.debug.close()
	}
	for _, im := range []*image{ob.image, ob.extra} {
		if im != nil {
			im.close()
		}
	}
	*ob = object{module: ob.module, file: ob.file, options: ob.options, problem: ob.problem}
}

func (ob *object) openFile() {
	if !filepath.IsAbs(ob.file) { // it was shortened, or the run's folder is not known
		ob.rejection = &problem{kind: missing, path: ob.file}
		return
	}
	im, err := openImage(ob.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		ob.rejection = &problem{kind: missing, path: ob.file}
	case err != nil:
		var pathError *fs.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err
		}
		ob.rejection = &problem{kind: unusable, path: ob.file, detail: err.Error()}
	default:
		if differs := difference(ob.module, im); differs != "" {
			ob.rejection = &problem{kind: replaced, path: ob.file, detail: differs}
			im.close()
			return
		}
		ob.image = im
	}
}

// difference returns why a file is not known to be the one of the run; "" if it is.
func difference(m trace.Module, im *image) string {
	switch {
	case m.BuildID != "" && im.id != m.BuildID:
		if im.id == "" {
			return fmt.Sprintf("the run's had build-id %s, this one has none", m.BuildID)
		}
		return fmt.Sprintf("the run's had build-id %s, this one has another", m.BuildID) // no details: see errNotObject
	case m.BuildID != "":
		return ""
	case m.Size == 0 && m.ModTime == 0:
		return "the trace does not say enough about it to tell whether this is it"
	case m.Size != uint64(im.size):
		return fmt.Sprintf("the run's had %d bytes, this one has %d", m.Size, im.size)
	case m.ModTime != im.mtime:
		return "it was written since"
	}
	return ""
}

// openDebugFile looks for a separate debug file, even if the object file itself is missing.
func (ob *object) openDebugFile() {
	folders := ob.options.Sources
	if folders == nil {
		folders = defaultSources
	}
	report := func(path string, err error) { ob.problem(problem{kind: unusable, path: path, detail: err.Error()}) }
	if ob.module.BuildID != "" {
		ob.extra = findDebugFile(folders, ob.module.BuildID, report)
	}
	if ob.extra == nil && ob.image != nil && ob.image.section(".debug_info") == nil {
		ob.extra = ob.image.linkedDebugFile(folders, report)
	}
}

// symbolSource is a symbol table that is read on first use.
type symbolSource struct {
	image *image
	kind  elf.SectionType
	table *symbolTable // nil: not read yet, or it cannot be
	read  bool
}

// readTables prepares what makes names, once.
func (ob *object) readTables() {
	if ob.loaded {
		return
	}
	ob.loaded = true
	addTable := func(im *image, kind elf.SectionType) {
		if im != nil {
			ob.tables = append(ob.tables, symbolSource{image: im, kind: kind})
		}
	}
	addTable(ob.image, elf.SHT_SYMTAB)
	addTable(ob.extra, elf.SHT_SYMTAB)
	addTable(ob.image, elf.SHT_DYNSYM)
	if ob.image != nil {
		err := guard(func() (err error) {
			ob.unwind, err = ob.image.readUnwind()
			return err
		})
		if err != nil {
			ob.unwind = nil
		}
		ob.damage(ob.image, err)
	}
	for _, im := range []*image{ob.image, ob.extra} {
		if im != nil && ob.debug == nil {
			ob.readDebug(im)
		}
	}
}

// symbolAt looks up the function at an address in the symbol tables; bounds is its range in the unwind table.
func (ob *object) symbolAt(address uint64, bounds span) (name string, where span) {
	for i := range ob.tables {
		s := &ob.tables[i]
		if !s.read {
			s.read = true
			ob.damage(s.image, guard(func() (err error) {
				s.table, err = s.image.readSymbols(s.kind)
				return err
			}))
		}
		if s.table == nil {
			continue
		}
		if name, where, ok := s.table.at(address, bounds); ok && name != "" {
			return name, where
		}
	}
	return "", bounds
}

// damage reports a part of a file that cannot be read.
func (ob *object) damage(im *image, err error) {
	if err != nil && !errors.Is(err, errNoSection) && !errors.Is(err, errNoDebug) {
		ob.broken = true
		ob.problem(problem{kind: damaged, path: im.path, detail: err.Error()})
	}
}

func (ob *object) readDebug(im *image) {
	d, err := im.readDebug(ob.options.careful)
	if err != nil {
		ob.damage(im, err)
		return
	}
	ob.debug = d
	if d.split {
		ob.problem(problem{kind: split, path: im.path})
	}
	folders := ob.options.Sources
	if folders == nil {
		folders = defaultSources
	}
	shared, err := im.sharedDebugFile(folders)
	ob.damage(im, err)
	if shared != nil {
		ob.damage(shared, d.readShared(shared, ob.options.careful))
		shared.close() // mapped sections stay
	}
}

// frames returns the functions at an address inside the object, innermost inlined one first, at least one.
func (ob *object) frames(address uint64) []Frame {
	if ob.rejection != nil {
		ob.problem(*ob.rejection)
		ob.rejection = nil
	}
	ob.readTables()
	bounds, _ := ob.bounds(address)
	linked, where := ob.symbolAt(address, bounds)
	base := Frame{Module: ob.module.Path, Address: address, Start: where.start}
	locations := ob.locate(address)
	if len(locations) == 0 {
		base.Function, base.FullFunction = ob.naming(linked)
		return []Frame{base}
	}
	frames := make([]Frame, len(locations))
	for i, l := range locations {
		f := base
		name := l.linked
		if name == "" && i == len(locations)-1 {
			name = linked // some compilers leave the linked name of functions without one to the symbol table
		}
		f.Function, f.FullFunction = ob.naming(cmp.Or(name, l.plain))
		f.File, f.Line, f.Inlined = l.file, l.line, l.inlined
		frames[i] = f
	}
	return frames
}

// naming returns Function and FullFunction.
func (ob *object) naming(linked string) (brief, full string) {
	if ob.options.Mangled || linked == "" {
		return linked, linked
	}
	names, known := ob.names[linked]
	if !known {
		names[0], names[1] = readable(linked)
		ob.names[linked] = names
	}
	return names[1], names[0]
}

// bounds returns the range of the function around an address in the unwind table.
func (ob *object) bounds(address uint64) (where span, ok bool) {
	_ = guard(func() error {
		where, ok = ob.unwind.at(address)
		return nil
	})
	return where, ok
}

// locate looks an address up in the debug information.
func (ob *object) locate(address uint64) (locations []location) {
	if ob.debug == nil {
		return nil
	}
	defer faultsAsPanics()()
	err := guard(func() error {
		u := ob.debug.unitAt(address)
		if u == nil {
			return nil
		}
		locations = u.locate(address)
		if u.err != nil && !ob.reported[u] {
			ob.reported[u] = true
			return u.err
		}
		return nil
	})
	if err != nil {
		im := ob.image
		if im == nil || im.section(".debug_info") == nil {
			im = ob.extra
		}
		ob.damage(im, err)
	}
	return locations
}
