package symbol

import (
	"debug/dwarf"
	"fmt"
	"slices"
	"sort"
)

const (
	// maxScopes bounds the functions, inlined ones included, of one unit; maxScopeSpans their ranges of code.
	maxScopes, maxScopeSpans = 4 << 20, 8 << 20
	// maxNesting bounds how deep entries of a unit may be nested.
	maxNesting = 1 << 12
)

// unit is one compilation unit.
type unit struct {
	info   *debugInfo
	entry  *dwarf.Entry
	first  dwarf.Offset // of entry
	err    error        // why a part of it is missing
	loaded bool

	lines  []lineRow // by address
	files  []string
	scopes []scope // a scope follows its parent
}

// scope is a function that has code, or an inlined call of one.
type scope struct {
	spans    []span
	offset   dwarf.Offset
	parent   int32 // index of the enclosing scope; -1 none
	inlined  bool
	callFile int32
	callLine int32
}

// location is the debug information of one address, for one function at it.
type location struct {
	linked  string // the linker's name; "" unknown
	plain   string // the source's name, without enclosing scopes; "" unknown
	file    string
	line    int
	inlined bool
}

// locate returns the functions at an address, innermost inlined one first. It returns nil if the unit does not cover
// the address. Damage is in u.err.
func (u *unit) locate(address uint64) []location {
	if !u.loaded {
		u.loaded = true
		u.err = guard(u.load)
	}
	file, line, known := u.lineAt(address)
	chain := u.chain(address)
	if !known && len(chain) == 0 {
		return nil
	}
	if len(chain) == 0 {
		return []location{{file: file, line: line}}
	}
	var all []location
	for _, i := range chain {
		s := &u.scopes[i]
		name := u.info.name(s.offset)
		all = append(all, location{linked: name.linked, plain: name.plain, file: file, line: line, inlined: s.inlined})
		file, line = u.file(s.callFile), int(s.callLine)
	}
	return all
}

// chain returns the scopes around an address, innermost first, up to the function that is not inlined.
func (u *unit) chain(address uint64) []int32 {
	innermost := int32(-1)
	for i := range u.scopes {
		if containsAddress(u.scopes[i].spans, address) {
			innermost = int32(i) // nested scopes follow
		}
	}
	var chain []int32
	for i := innermost; i >= 0; i = u.scopes[i].parent {
		chain = append(chain, i)
		if !u.scopes[i].inlined {
			break
		}
	}
	return chain
}

func (u *unit) load() error {
	err := u.readLines()
	if scopesErr := u.readScopes(); err == nil {
		err = scopesErr
	}
	return err
}

// readScopes walks the unit's entries.
func (u *unit) readScopes() error {
	reader := u.info.data.Reader()
	reader.Seek(u.first)
	if entry, err := reader.Next(); err != nil || entry == nil || !entry.Children {
		return err
	}
	around := []int32{-1} // scope around the entries of each level of nesting
	spans := 0
	for len(around) > 0 {
		entry, err := reader.Next()
		if err != nil {
			return damagedDebug(err)
		}
		if entry == nil {
			return nil
		}
		if entry.Tag == 0 {
			around = around[:len(around)-1]
			continue
		}
		inside := around[len(around)-1]
		if entry.Tag == dwarf.TagSubprogram || entry.Tag == dwarf.TagInlinedSubroutine {
			code := u.info.spans(entry)
			if len(code) == 0 {
				reader.SkipChildren() // a declaration, or what its inlined calls refer to
				continue
			}
			if spans += len(code); spans > maxScopeSpans || len(u.scopes) >= maxScopes {
				return fmt.Errorf("a unit of debug information with more than %d functions: %w", maxScopes, errTooLarge)
			}
			u.scopes = append(u.scopes, newScope(entry, inside, code))
			inside = int32(len(u.scopes) - 1)
		}
		if entry.Children {
			if len(around) >= maxNesting {
				return fmt.Errorf("debug information nested more than %d deep: %w", maxNesting, errTooLarge)
			}
			around = append(around, inside)
		}
	}
	return nil
}

func newScope(entry *dwarf.Entry, parent int32, code []span) scope {
	number := func(attr dwarf.Attr) int32 {
		n, _ := entry.Val(attr).(int64)
		return int32(max(0, min(n, 1<<31-1)))
	}
	return scope{spans: slices.Clip(code), offset: entry.Offset, parent: parent,
		inlined:  entry.Tag == dwarf.TagInlinedSubroutine,
		callFile: number(dwarf.AttrCallFile), callLine: number(dwarf.AttrCallLine)}
}

// nameKey is an entry of the file or of the file that several share.
type nameKey struct {
	offset dwarf.Offset
	shared bool
}

// entryName is the names of a function, as location has them.
type entryName struct{ linked, plain string }

// name returns the names of a function: those of the entry itself or of the one that it completes or was made from.
func (d *debugInfo) name(offset dwarf.Offset) entryName {
	name, known := d.names[offset]
	if !known {
		name = d.findName(nameKey{offset: offset})
		d.names[offset] = name
	}
	return name
}

// attrOldLinkageName is DW_AT_MIPS_linkage_name, the name of DW_AT_linkage_name before DWARF 4.
const attrOldLinkageName = dwarf.Attr(0x2007)

func (d *debugInfo) findName(key nameKey) (name entryName) {
	for range 16 { // an entry may refer to itself in a damaged file
		entry := d.entry(key)
		if entry == nil {
			break
		}
		if name.plain == "" {
			name.plain = d.text(entry, dwarf.AttrName)
		}
		for _, attr := range []dwarf.Attr{dwarf.AttrLinkageName, attrOldLinkageName} {
			if name.linked = d.text(entry, attr); name.linked != "" {
				return name
			}
		}
		next := entry.AttrField(dwarf.AttrAbstractOrigin)
		if next == nil {
			next = entry.AttrField(dwarf.AttrSpecification)
		}
		if next == nil {
			break
		}
		switch to := next.Val.(type) {
		case dwarf.Offset:
			key.offset = to
		case uint64:
			key = nameKey{dwarf.Offset(to), next.Class == dwarf.ClassReferenceAlt}
		case int64:
			key = nameKey{dwarf.Offset(to), next.Class == dwarf.ClassReferenceAlt}
		default:
			return name
		}
	}
	return name
}

func (d *debugInfo) entry(key nameKey) *dwarf.Entry {
	data := d.data
	if key.shared {
		data = d.alt
	}
	if data == nil || key.offset == 0 {
		return nil
	}
	reader := data.Reader()
	reader.Seek(key.offset)
	entry, err := reader.Next()
	if err != nil {
		return nil
	}
	return entry
}

// text returns a string attribute.
func (d *debugInfo) text(entry *dwarf.Entry, attr dwarf.Attr) string {
	field := entry.AttrField(attr)
	if field == nil {
		return ""
	}
	if field.Class == dwarf.ClassStringAlt {
		if at, ok := field.Val.(uint64); ok {
			return cString(d.altSt, at)
		}
		if at, ok := field.Val.(int64); ok && at >= 0 {
			return cString(d.altSt, uint64(at))
		}
	}
	text, _ := field.Val.(string)
	return text
}

// file returns the name of a file of the unit's table.
func (u *unit) file(index int32) string {
	if index < 0 || int(index) >= len(u.files) {
		return ""
	}
	return u.files[index]
}

// lineAt returns the line of an address.
func (u *unit) lineAt(address uint64) (file string, line int, ok bool) {
	i := sort.Search(len(u.lines), func(i int) bool { return u.lines[i].address > address }) - 1
	if i < 0 || u.lines[i].end {
		return "", 0, false
	}
	return u.file(u.lines[i].file), int(u.lines[i].line), true
}
