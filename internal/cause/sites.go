package cause

import (
	"cmp"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// SitesOf lists the places that held something at a moment, with the frames of their largest stacks; counts are the
// totals of the stacks over the whole run.
func SitesOf(r *profile.Resolver, list []profile.Held, counts []profile.StackCount, full bool) *report.Sites {
	s := &report.Sites{Places: []report.Site{}}
	held := make(map[uint64]uint64)
	for _, h := range list {
		held[profile.StackID(nil, &h.Origin)] += h.Bytes
	}
	index := make(map[string]int)
	sums := []*stackSums{} // by place
	for _, id := range sortedIDs(held) {
		key, user := r.PlaceOf(id)
		n, known := index[key]
		if !known {
			n = len(s.Places)
			index[key] = n
			s.Places = append(s.Places, report.Site{Key: key, User: user, Named: r.Named(id)})
			sums = append(sums, &stackSums{byLook: make(map[string]int)})
		}
		s.Places[n].Bytes += held[id]
		sums[n].add(r.Stacks.Of(callstack.PairOf(id)).Look(full), id, held[id])
		s.WholeBytes += held[id]
	}
	for _, v := range counts {
		key, _ := r.PlaceOf(v.ID)
		if n, known := index[key]; known {
			s.Places[n].AllocCount += v.Allocs
			s.Places[n].AllocBytes += v.AllocBytes
		}
	}
	for n := range s.Places {
		place := &s.Places[n]
		place.StackCount = uint64(len(sums[n].list))
		largest := sums[n].largest()
		place.StackBytes = largest.bytes
		describeStack(r.Stacks, place, largest.id, full)
	}
	slices.SortFunc(s.Places, func(a, b report.Site) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Key, b.Key))
	})
	return s
}

// stackSums sum up stacks that read the same: those of different modules of a model, say, that are called in the same
// place.
type stackSums struct {
	byLook map[string]int
	list   []stackSum
}

type stackSum struct{ id, bytes uint64 } // id of the first of them

func (l *stackSums) add(look string, id, bytes uint64) {
	n, known := l.byLook[look]
	if !known {
		n = len(l.list)
		l.byLook[look] = n
		l.list = append(l.list, stackSum{id: id})
	}
	l.list[n].bytes += bytes
}

// largest returns the sum that is largest, the first of equal ones.
func (l *stackSums) largest() stackSum {
	best := l.list[0]
	for _, sum := range l.list {
		if sum.bytes > best.bytes {
			best = sum
		}
	}
	return best
}

// describeStack fills in the frames of a place's stack.
func describeStack(stacks *callstack.Stacks, place *report.Site, id uint64, full bool) {
	stack := stacks.Of(callstack.PairOf(id))
	list := stack.Shown
	if full {
		list = stack.All
	}
	place.Folded = uint64(len(stack.All) - len(list))
	place.Frames = make([]report.StackFrame, len(list))
	for i, f := range list {
		place.Frames[i] = stacks.Classifier.StackFrame(f, full)
	}
	place.Cut = stacks.Cut(callstack.PairOf(id))
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
	// A row lists its places if it holds at least one rowWeight-th of the whole, and a place at least one
	// placeWeight-th of the row.
	rowWeight   = 100
	placeWeight = 10
	// rowPlaces bounds the places of a row.
	rowPlaces = 2
)

// AddRowSites adds to the large rows of a ledger's blocks the places that allocated them.
func AddRowSites(l *report.Ledger, held []profile.Held, index *profile.RowIndex, r *profile.Resolver) {
	if index.By.Stacks {
		return
	}
	sums := make(map[string]map[uint64]report.RowSite) // by key of a weighty row and pair of stacks, without names
	weighty := func(row *report.LedgerRow) bool {
		return row.Owner == report.OwnerBlocks && row.Bytes >= l.WholeBytes/rowWeight
	}
	for i := range l.Rows {
		if row := &l.Rows[i]; weighty(row) {
			sums[row.Key] = make(map[uint64]report.RowSite)
		}
	}
	for i := range held {
		h := &held[i]
		if row := sums[index.Keys[index.Number(index.By.ID(r, &h.Origin))]]; row != nil {
			id := profile.StackID(nil, &h.Origin)
			row[id] = report.RowSite{Bytes: row[id].Bytes + h.Bytes, Rest: row[id].Rest + h.Rest}
		}
	}
	for i := range l.Rows {
		if row := &l.Rows[i]; weighty(row) {
			setSites(row, r, sums[row.Key])
		}
	}
}

// setSites keeps the largest places of what pairs of stacks hold. A library's function that is known only as the caller
// is left out: it adds nothing to the library.
func setSites(row *report.LedgerRow, r *profile.Resolver, held map[uint64]report.RowSite) {
	index := make(map[string]int)
	for id, part := range held {
		key, user := r.PlaceOf(id)
		if !user && r.Tables.StackEnd(callstack.PairOf(id).Native) == trace.StackCaller {
			continue
		}
		n, known := index[key]
		if !known {
			n = len(row.Sites)
			index[key] = n
			row.Sites = append(row.Sites, report.RowSite{Key: key, User: user})
		}
		row.Sites[n].Bytes += part.Bytes
		row.Sites[n].Rest += part.Rest
	}
	slices.SortFunc(row.Sites, func(a, b report.RowSite) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Key, b.Key))
	})
	row.Sites = slices.DeleteFunc(row.Sites, func(s report.RowSite) bool {
		return s.Bytes < row.Bytes/placeWeight || s.Key == report.NoStack
	})
	row.Sites = slices.Clip(row.Sites[:min(len(row.Sites), rowPlaces)])
}
