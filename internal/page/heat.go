package page

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// heat is the picture of the ranks of a run: a row for each process, a column for each iteration or several of them, a
// kind for all memory and for each category. The cells are a section of columns, one for each kind, by row and column:
// 0 where a process has none, else 1 + bytes in multiples of the kind's unit. It has one column where the processes
// have no iterations: what they held at their peaks.
type heat struct {
	Names   []string       `json:"names"` // of the processes
	Ranks   []int          `json:"ranks"` // -1: none
	Hosts   []string       `json:"hosts"`
	Host    []int          `json:"host"`   // by process: index of Hosts
	Groups  []int          `json:"groups"` // by process
	Likes   []int          `json:"likes"`  // by process: the group that it should be like; -1: that of all processes
	Marks   map[int]string `json:"marks"`  // by process that differs from the others: by what
	Missing []int          `json:"missing"`
	Columns []string       `json:"columns"`
	Kinds   []heatKind     `json:"kinds"`

	span  string     // of all columns, in words; "" without iterations
	cells [][]uint64 // by kind, then row and column: 1 + bytes, 0 none
	peaks [][]uint64 // the same with one column: at the peak of each process
}

type heatKind struct {
	Name string `json:"name"`
	Unit uint64 `json:"unit"` // bytes
}

const (
	heatColumns = 64
	heatKinds   = 12 // more categories are joined
	heatCell    = 1 << 53
)

// heatOf makes the picture.
func heatOf(r *diff.Ranks) *heat {
	h := &heat{Marks: map[int]string{}, Missing: []int{}, Kinds: []heatKind{{Name: "all memory"}}}
	hosts, of := map[string]int{}, h.divide(r)
	for i := range r.Processes {
		p := &r.Processes[i].Head.Summary.Process
		h.Likes = append(h.Likes, likeOf(r, i))
		h.Names, h.Groups = append(h.Names, render.ProcessName(r, i)), append(h.Groups, r.Processes[i].Group)
		rank := -1
		if p.Rank != nil {
			rank = *p.Rank
		}
		h.Ranks = append(h.Ranks, rank)
		h.Host = append(h.Host, number(hosts, &h.Hosts, sanitize.Text(p.Host)))
		if list := render.RankRemarks(r, i); len(list) > 0 {
			h.Marks[i] = strings.Join(list, "; ")
		}
	}
	if len(r.Missing) <= len(r.Processes) { // a file may state any number
		h.Missing = append(h.Missing, r.Missing...)
	}
	h.fillPeaks(r, of)
	if starts, last := columnStarts(r); len(starts) > 1 {
		h.nameColumns(starts, last)
		h.fill(r, of, starts)
	} else {
		h.Columns, h.cells = []string{"the peak"}, h.peaks
	}
	return h
}

// likeOf is the group that a process should be like: its own, or that of the process that it is compared with.
func likeOf(r *diff.Ranks, i int) int {
	group := r.Processes[i].Group
	for _, d := range r.Different {
		if d.Process == i {
			group = r.Processes[d.Like].Group
		}
	}
	if g := &r.Groups[group]; g.Some || len(g.Members) < 2 {
		return -1
	}
	return group
}

// divide adds the categories of all processes, in the order in which these have them, and returns the kind of each. Of
// more than there is room for, the smaller ones are one kind.
func (h *heat) divide(r *diff.Ranks) map[string]int {
	var names []string
	bytes, of := map[string]float64{}, map[string]int{}
	for i := range r.Processes {
		for _, c := range r.Processes[i].Head.Categories {
			number(of, &names, c.Name)
			bytes[c.Name] += float64(c.HighestBytes)
		}
	}
	largest := slices.Clone(names)
	slices.SortStableFunc(largest, func(a, b string) int { return cmp.Compare(bytes[b], bytes[a]) })
	if room := heatKinds - 2; len(largest) > room+1 {
		largest = largest[:room]
	}
	clear(of)
	for _, name := range names {
		if slices.Contains(largest, name) {
			of[name] = len(h.Kinds)
			h.Kinds = append(h.Kinds, heatKind{Name: sanitize.Text(layout.CategoryWord(name))})
		}
	}
	for _, name := range names {
		if _, is := of[name]; !is {
			of[name] = heatKinds - 1
		}
	}
	if len(names) > len(largest) {
		h.Kinds = append(h.Kinds, heatKind{Name: "other categories"})
	}
	return of
}

// nameColumns names the columns that begin with these iterations.
func (h *heat) nameColumns(starts []uint64, last uint64) {
	h.span = "iterations " + layout.Count(starts[0]) + " to " + layout.Count(last)
	for c, start := range starts {
		end := last
		if c+1 < len(starts) {
			end = starts[c+1] - 1
		}
		name := "iteration " + layout.Count(start)
		if end > start {
			name = "iterations " + layout.Count(start) + " to " + layout.Count(end)
		}
		h.Columns = append(h.Columns, name)
	}
}

// newCells returns the cells of so many columns, without values.
func (h *heat) newCells(columns int) [][]uint64 {
	cells := make([][]uint64, len(h.Kinds))
	for k := range cells {
		cells[k] = make([]uint64, len(h.Names)*columns)
	}
	return cells
}

// fillPeaks finds what each process held at its peak.
func (h *heat) fillPeaks(r *diff.Ranks, of map[string]int) {
	h.peaks = h.newCells(1)
	for i := range r.Processes {
		head := r.Processes[i].Head
		set(h.peaks, i, head.Summary.Main().PeakBytes, head.Categories, of,
			func(k int) uint64 { return head.Categories[k].PeakBytes })
	}
}

// fill finds what each process held at the highest moment of each column.
func (h *heat) fill(r *diff.Ranks, of map[string]int, starts []uint64) {
	h.cells = h.newCells(len(starts))
	for i := range r.Processes {
		head := r.Processes[i].Head
		s, categories := &head.Steps, head.Categories
		if len(s.Held) != len(categories) {
			categories = nil
		}
		for row, n := range s.Number {
			for c := columnAt(starts, n); c <= columnAt(starts, lastOf(s, row)); c++ {
				if at := i*len(starts) + c; h.cells[0][at] <= min(s.Peak[row], heatCell) {
					set(h.cells, at, s.Peak[row], categories, of, func(k int) uint64 { return s.Held[k][row] })
				}
			}
		}
	}
}

// set puts a moment of a process into its place. What a process has no category for, that others have, is 0 bytes.
func set(cells [][]uint64, at int, all uint64, categories []report.Purpose, of map[string]int,
	held func(k int) uint64) {
	cells[0][at] = 1 + min(all, heatCell)
	for k := range cells[1:] {
		cells[1+k][at] = uint64(min(len(categories), 1))
	}
	for k := range categories {
		cell := &cells[of[categories[k].Name]][at]
		*cell = min(*cell+min(held(k), heatCell), 1+heatCell)
	}
}

// lastOf is the last iteration of a row.
func lastOf(s *report.StepTable, row int) uint64 {
	return s.Number[row] + min(max(s.Count[row], 1)-1, math.MaxUint64-s.Number[row])
}

// columnStarts are the numbers of iterations that columns begin with, and the last iteration. Of more different
// beginnings of rows than there may be columns, consecutive ones are one column.
func columnStarts(r *diff.Ranks) (starts []uint64, last uint64) {
	seen := map[uint64]bool{}
	for i := range r.Processes {
		s := &r.Processes[i].Head.Steps
		for row, n := range s.Number {
			seen[n] = true
			last = max(last, lastOf(s, row))
		}
	}
	all := slices.Sorted(maps.Keys(seen))
	for several := range slices.Chunk(all, (len(all)-1)/heatColumns+1) {
		starts = append(starts, several[0])
	}
	return starts, last
}

// columnAt is the column of an iteration.
func columnAt(starts []uint64, n uint64) int {
	at, found := slices.BinarySearch(starts, n)
	if found {
		return at
	}
	return max(at-1, 0)
}

// The cells of 1,000 ranks take at most sectionBytes of the page, if need be with sizes that are rounded more, to at
// least fewestBits.
const (
	sectionBytes = 500_000
	mostBits     = 16
	fewestBits   = 7
)

// pack writes the cells, and finds their units.
func (h *heat) pack() (text string, err error) {
	room := sectionBytes * max(len(h.Names), 1000) / 1000
	for bits := mostBits; ; bits -= 3 {
		var s section
		for k, cells := range h.cells {
			unit := uint64(1)
			for most := slices.Max(cells); most/unit > 1<<bits-3; {
				unit *= 2
			}
			h.Kinds[k].Unit = unit
			s.column(2, len(cells), func(row int) uint64 {
				if cells[row] == 0 {
					return 0
				}
				return 1 + (cells[row]-1+unit/2)/unit
			})
		}
		if text, err = s.text(); err != nil || len(text) <= room || bits-3 < fewestBits {
			return text, err
		}
	}
}

// rounded is the largest unit.
func (h *heat) rounded() (unit uint64) {
	for _, k := range h.Kinds {
		unit = max(unit, k.Unit)
	}
	return unit
}
