package analyzer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/symbol"
	"memtrace/trace"
)

// Sites are the places in the program that asked for what was held at the ledgers' moment.
type Sites struct {
	Level      string `json:"level"`       // the ledgers' level
	Moment     string `json:"moment"`      // "peak", or what was asked for
	TimeNS     int64  `json:"time_ns"`     // when that was
	WholeBytes uint64 `json:"whole_bytes"` // held by blocks of the level; the places add up to it
	Places     []Site `json:"places"`      // most first
}

// Site is one place.
type Site struct {
	Key        string       `json:"key"`
	User       bool         `json:"user"` // the program's own code, not a library's
	Bytes      uint64       `json:"bytes"`
	AllocCount uint64       `json:"alloc_count"` // in the whole run
	AllocBytes uint64       `json:"alloc_bytes"`
	StackCount uint64       `json:"stack_count"` // call stacks that held something then, those that look the same taken as one
	StackBytes uint64       `json:"stack_bytes"` // held by the one that is shown, the largest
	Frames     []StackFrame `json:"frames"`      // innermost first; empty without a stack
	Folded     uint64       `json:"folded_frames"`
	Cut        string       `json:"cut,omitempty"` // why the shown stack is not whole

	named bool `json:"-"` // by a function, not only by an address
}

// Kinds of stack frames.
const (
	FramePython = "python"
	FrameNative = "native"
)

// StackFrame is one function of a call stack.
type StackFrame struct {
	Kind     string `json:"kind"`     // FramePython or FrameNative
	Function string `json:"function"` // or the object file and an offset
	File     string `json:"file"`     // source file, shortened; "" unknown
	Path     string `json:"path"`     // the same as it was recorded
	Line     int    `json:"line"`     // 0 unknown
	Module   string `json:"module"`   // path of the object file; "" for Python
	Address  uint64 `json:"address"`  // inside the object file; 0 for Python
	User     bool   `json:"user"`     // the program's own code
	Nameless bool   `json:"nameless"` // Function names no function
	Operator bool   `json:"operator"` // Function is the name of a framework's operator
}

// RowSite is a place and its part of a row.
type RowSite struct {
	Key   string `json:"key"`
	User  bool   `json:"user"`
	Bytes uint64 `json:"bytes"`
}

// placeOf returns the site of a pair of stacks: its key, and whether it is the program's own code.
func (r *resolver) placeOf(id uint64) (key string, user bool) {
	stack := r.stacks.of(pairOf(id))
	return stack.key, stack.site != nil && stack.site.user
}

// named reports whether the function of a site is known.
func (r *resolver) named(id uint64) bool {
	site := r.stacks.of(pairOf(id)).site
	return site != nil && site.Function != ""
}

// siteList lists the places that held something of an account at a moment.
func (c *collector) siteList(m *moment, a Account, label string, full bool) *Sites {
	s := &Sites{Level: a.String(), Moment: label, TimeNS: m.time, Places: []Site{}}
	held := make(map[uint64]uint64)
	for _, h := range m.held[a] {
		held[stackID(nil, &h.origin)] += h.bytes
	}
	index := make(map[string]int)
	looks := []*lookSums{} // by place
	for _, id := range sortedIDs(held) {
		key, user := c.resolver.placeOf(id)
		n, known := index[key]
		if !known {
			n = len(s.Places)
			index[key] = n
			s.Places = append(s.Places, Site{Key: key, User: user, named: c.resolver.named(id)})
			looks = append(looks, &lookSums{byLook: make(map[string]int)})
		}
		s.Places[n].Bytes += held[id]
		looks[n].add(c.resolver.stacks.of(pairOf(id)).look(full), id, held[id])
		s.WholeBytes += held[id]
	}
	for _, v := range c.stackCounts(a) {
		key, _ := c.resolver.placeOf(v.id)
		if n, known := index[key]; known {
			s.Places[n].AllocCount += v.allocs
			s.Places[n].AllocBytes += v.allocBytes
		}
	}
	for n := range s.Places {
		place := &s.Places[n]
		place.StackCount = uint64(len(looks[n].list))
		largest := looks[n].largest()
		place.StackBytes = largest.bytes
		c.describeStack(place, largest.id, full)
	}
	slices.SortFunc(s.Places, func(a, b Site) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Key, b.Key)) })
	return s
}

// lookSums sum up stacks that look the same: those of different modules of a model, say, that are called in the same place.
type lookSums struct {
	byLook map[string]int
	list   []lookSum
}

type lookSum struct{ id, bytes uint64 } // id of the first of them

func (l *lookSums) add(look string, id, bytes uint64) {
	n, known := l.byLook[look]
	if !known {
		n = len(l.list)
		l.byLook[look] = n
		l.list = append(l.list, lookSum{id: id})
	}
	l.list[n].bytes += bytes
}

// largest returns the sum that is largest, the first of equal ones.
func (l *lookSums) largest() lookSum {
	best := l.list[0]
	for _, sum := range l.list {
		if sum.bytes > best.bytes {
			best = sum
		}
	}
	return best
}

// look is what a stack is to the reader's eye.
func (s *callStack) look(full bool) string {
	list := s.shown
	if full {
		list = s.all
	}
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "%s\x00%s\x00%d\n", f.title(), f.File, f.Line)
	}
	return b.String()
}

// describeStack fills in the frames of a place's stack.
func (c *collector) describeStack(place *Site, id uint64, full bool) {
	stack := c.resolver.stacks.of(pairOf(id))
	list := stack.shown
	if full {
		list = stack.all
	}
	place.Folded = uint64(len(stack.all) - len(list))
	place.Frames = make([]StackFrame, len(list))
	for i, f := range list {
		place.Frames[i] = c.resolver.stacks.judge.stackFrame(f, full)
	}
	place.Cut = c.resolver.stacks.cut(pairOf(id))
}

func (j *judge) stackFrame(f *frame, full bool) StackFrame {
	v := StackFrame{Kind: FrameNative, Function: f.title(), File: j.place(f.File), Path: f.File, Line: f.Line, Module: f.Module, Address: f.Address, User: f.user,
		Nameless: f.Function == "", Operator: f.short != ""}
	if full {
		v.Function, v.Operator = f.Name(), false
	}
	if f.Kind == symbol.Python {
		v.Kind, v.Address = FramePython, 0
	}
	return v
}

func sortedIDs(held map[uint64]uint64) []uint64 {
	ids := make([]uint64, 0, len(held))
	for id := range held {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

const (
	// A row is told its places if it holds at least one rowWeight-th of the whole, and a place at least one placeWeight-th of the row.
	rowWeight   = 100
	placeWeight = 10
	// rowPlaces bounds the places of a row.
	rowPlaces = 2
)

// addRowSites tells the weighty rows of a ledger's blocks where they were asked for.
func (c *collector) addRowSites(l *Ledger, m *moment, a Account, g int) {
	by := c.groupings[g]
	if by.stacks {
		return
	}
	index := c.rowIndex(g)
	sums := make(map[string]map[uint64]uint64) // by key of a weighty row and pair of stacks
	weighty := func(row *LedgerRow) bool { return row.Owner == OwnerBlocks && row.Bytes >= l.WholeBytes/rowWeight }
	for i := range l.Rows {
		if row := &l.Rows[i]; weighty(row) {
			sums[row.Key] = make(map[uint64]uint64)
		}
	}
	for i := range m.held[a] {
		h := &m.held[a][i]
		if held := sums[index.keys[index.number(by.id(&c.resolver, &h.origin))]]; held != nil {
			held[stackID(nil, &h.origin)] += h.bytes
		}
	}
	for i := range l.Rows {
		if row := &l.Rows[i]; weighty(row) {
			setSites(row, &c.resolver, sums[row.Key])
		}
	}
}

// setSites keeps the largest places of what pairs of stacks hold. A library's function that is known only as the caller is none: it says no more than the library.
func setSites(row *LedgerRow, r *resolver, held map[uint64]uint64) {
	index := make(map[string]int)
	for id, bytes := range held {
		key, user := r.placeOf(id)
		if !user && r.tables.StackEnd(pairOf(id).native) == trace.StackCaller {
			continue
		}
		n, known := index[key]
		if !known {
			n = len(row.Sites)
			index[key] = n
			row.Sites = append(row.Sites, RowSite{Key: key, User: user})
		}
		row.Sites[n].Bytes += bytes
	}
	slices.SortFunc(row.Sites, func(a, b RowSite) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Key, b.Key)) })
	row.Sites = slices.DeleteFunc(row.Sites, func(s RowSite) bool { return s.Bytes < row.Bytes/placeWeight || s.Key == NoStack })
	row.Sites = slices.Clip(row.Sites[:min(len(row.Sites), rowPlaces)])
}
