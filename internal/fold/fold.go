package fold

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Fold represents the names of a list that differ in indices only: h.{0..11}.attn for h.0.attn to h.11.attn.
type Fold struct {
	Name    string
	Members []int // indices into the list, in the order of the names' indices; one for a name by itself
	Min     uint64
	Max     uint64 // of what the members hold
	Bytes   uint64 // sum of it
}

// Repeated reports whether the fold contains more than one name.
func (f *Fold) Repeated() bool { return len(f.Members) > 1 }

// Names beyond these bounds are left as they are: a trace may hold names with half a million parts.
const (
	maxFoldedName  = 1 << 10
	maxFoldedParts = 48
	// foldedPieces is how many ranges of indices are written out.
	foldedPieces = 4
	// minInRow is how many equal things in a row are no coincidence.
	minInRow = 3
)

// Modules joins modules that differ in an index and are the same part of a repeated module: the part after the index
// has a name, as in h.3.attn. Modules that end in their index, as those of a list of different layers do, are joined
// only if their list is known to repeat or if they hold the same bytes. Folds are ordered by the sum of their bytes,
// most first.
func Modules(names []string, bytes []uint64) []Fold {
	t := newFolding(names, bytes)
	repeated := t.repeatedLists()
	t.fold(func(item *foldItem, part int) (kind string, certain bool) {
		if !item.attached(part) && (namedAfter(item.parts, part) > 0 || repeated[listOf(item.parts, part)]) {
			return "", true
		}
		return strconv.FormatUint(item.bytes, 10), false
	})
	return t.folds()
}

// Sized joins names that differ in an index and have the same size: sizes are those of parameters, say. The other
// arguments and the order are as in Modules.
func Sized(names []string, bytes, sizes []uint64) []Fold {
	t := newFolding(names, bytes)
	t.fold(func(item *foldItem, part int) (kind string, certain bool) {
		return strconv.FormatUint(sizes[item.members[0]], 10), namedAfter(item.parts, part) > 1
	})
	return t.folds()
}

// foldItem is one name, or several joined.
type foldItem struct {
	parts   []string // of the name: indices, and the text between them
	indices []bool   // which of the parts may be folded
	single  bool     // one of them
	members []int
	bytes   uint64 // of the first one
}

type folding struct {
	bytes []uint64
	items []*foldItem
}

func newFolding(names []string, bytes []uint64) *folding {
	t := &folding{bytes: bytes, items: make([]*foldItem, len(names))}
	for i, name := range names {
		parts, indices := splitIndices(name)
		count := 0
		for _, isIndex := range indices {
			if isIndex {
				count++
			}
		}
		t.items[i] = &foldItem{parts: parts, indices: indices, single: count == 1, members: []int{i}, bytes: bytes[i]}
	}
	return t
}

// splitIndices splits a name. Numbers between dots are indices; in names without dots also those at the end of a word,
// as in MXNet's transformer3_attn.
func splitIndices(name string) (parts []string, indices []bool) {
	if len(name) > maxFoldedName {
		return []string{name}, []bool{false}
	}
	whole := false
	begin := 0
	for i := 0; i < len(name); {
		if !digit(name[i]) || i > 0 && digit(name[i-1]) {
			i++
			continue
		}
		end := i
		for end < len(name) && digit(name[end]) {
			end++
		}
		if end < len(name) && name[end] != '.' && name[end] != '_' && name[end] != ' ' {
			i = end
			continue
		}
		if begin < i {
			parts, indices = append(parts, name[begin:i]), append(indices, false)
		}
		parts, indices = append(parts, name[i:end]), append(indices, true)
		whole = whole || (i == 0 || name[i-1] == '.') && (end == len(name) || name[end] != '_')
		begin, i = end, end
	}
	if begin < len(name) {
		parts, indices = append(parts, name[begin:]), append(indices, false)
	}
	for i := range parts {
		indices[i] = indices[i] && len(parts) <= maxFoldedParts &&
			(!whole || i == 0 || strings.HasSuffix(parts[i-1], "."))
	}
	return parts, indices
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// attached reports whether an index is the end of a word and not a separate word.
func (item *foldItem) attached(part int) bool {
	return part > 0 && !strings.HasSuffix(item.parts[part-1], ".")
}

// namedAfter counts the parts of a name after an index that are not indices: modules, and for parameters their own
// name.
func namedAfter(parts []string, part int) (n int) {
	for _, text := range parts[part+1:] {
		for word := range strings.SplitSeq(text, ".") {
			if strings.ContainsFunc(word, func(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }) {
				n++
			}
		}
	}
	return n
}

// listOf names the list that an index is of.
func listOf(parts []string, part int) string { return strings.Join(parts[:part], "") }

// repeatedLists finds the lists of modules of which at least two have a common named part.
func (t *folding) repeatedLists() map[string]bool {
	type named struct{ list, rest string }
	first := make(map[named]string)
	repeated := make(map[string]bool)
	for _, item := range t.items {
		for part, isIndex := range item.indices {
			if !isIndex || item.attached(part) || namedAfter(item.parts, part) == 0 {
				continue
			}
			key := named{listOf(item.parts, part), strings.Join(item.parts[part+1:], "")}
			if index, known := first[key]; !known {
				first[key] = item.parts[part]
			} else if index != item.parts[part] {
				repeated[key.list] = true
			}
		}
	}
	return repeated
}

// fold joins items that differ in one index and are of the same kind, the indices from left to right. If it is
// uncertain that they are parts of repeated modules, they are joined if nothing else in their names is an index or if
// there are several in a row: a feed-forward part's two layers may happen to have the same size.
func (t *folding) fold(kind func(item *foldItem, part int) (kind string, certain bool)) {
	most := 0
	for _, item := range t.items {
		most = max(most, len(item.parts))
	}
	type alike struct {
		before, behind, kind string
		certain              bool
	}
	for part := range min(most, maxFoldedParts) {
		groups := make(map[alike][]*foldItem)
		var order []alike
		rest := t.items[:0:0]
		for _, item := range t.items {
			if part >= len(item.parts) || !item.indices[part] {
				rest = append(rest, item)
				continue
			}
			of, certain := kind(item, part)
			key := alike{listOf(item.parts, part), strings.Join(item.parts[part+1:], ""), of, certain}
			if groups[key] == nil {
				order = append(order, key)
			}
			groups[key] = append(groups[key], item)
		}
		for _, key := range order {
			rest = append(rest, mergeItems(groups[key], part, key.certain)...)
		}
		t.items = rest
	}
}

// mergeItems makes one item of those that differ in nothing but an index.
func mergeItems(list []*foldItem, part int, certain bool) []*foldItem {
	if len(list) < 2 {
		return list
	}
	slices.SortStableFunc(list, func(a, b *foldItem) int { return compareIndices(a.parts[part], b.parts[part]) })
	merged := &foldItem{parts: slices.Clone(list[0].parts), indices: slices.Clone(list[0].indices),
		bytes: list[0].bytes}
	var indices []string
	for _, item := range list {
		if len(indices) == 0 || indices[len(indices)-1] != item.parts[part] {
			indices = append(indices, item.parts[part])
		}
		merged.members = append(merged.members, item.members...)
	}
	switch ranges := IndexRanges(indices); {
	case len(indices) < 2: // the same name twice
		return list
	case certain || list[0].single || len(indices) >= minInRow && !strings.ContainsAny(ranges, ", "):
		merged.parts[part], merged.indices[part] = "{"+ranges+"}", false
		return []*foldItem{merged}
	}
	return list
}

// compareIndices compares numbers of any length.
func compareIndices(a, b string) int {
	x, y := strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y), strings.Compare(a, b))
}

// IndexRanges formats sorted indices as ranges: 0..7,9. If they are scattered it gives their number between the first
// and the last one.
func IndexRanges(indices []string) string {
	var pieces []string
	for i := 0; i < len(indices); {
		end := i
		for end+1 < len(indices) && follows(indices[end], indices[end+1]) {
			end++
		}
		piece := indices[i]
		if end > i {
			piece += ".." + indices[end]
		}
		pieces = append(pieces, piece)
		i = end + 1
	}
	if len(pieces) > foldedPieces {
		return fmt.Sprintf("%d of %s..%s", len(indices), indices[0], indices[len(indices)-1])
	}
	return strings.Join(pieces, ",")
}

func follows(a, b string) bool {
	x, xErr := strconv.ParseUint(a, 10, 63)
	y, yErr := strconv.ParseUint(b, 10, 63)
	return xErr == nil && yErr == nil && y == x+1 && strconv.FormatUint(y, 10) == b
}

// folds lists the items, those that hold most first.
func (t *folding) folds() []Fold {
	list := make([]Fold, len(t.items))
	for i, item := range t.items {
		f := Fold{Name: strings.Join(item.parts, ""), Members: item.members, Min: t.bytes[item.members[0]]}
		for _, m := range item.members {
			f.Min, f.Max, f.Bytes = min(f.Min, t.bytes[m]), max(f.Max, t.bytes[m]), f.Bytes+t.bytes[m]
		}
		list[i] = f
	}
	slices.SortStableFunc(list, func(a, b Fold) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Name, b.Name))
	})
	return list
}

// FoldsRows reports whether rows of a grouping are names of modules or of their parts, which FoldRows may join.
func FoldsRows(by string) bool { return by == "module" || by == "name" }

// FoldRows folds the keys of a grouping as Modules or Sized does; keys of other groupings stay separate, in their
// order.
func FoldRows(by string, keys []string, bytes []uint64) []Fold {
	switch by {
	case "module":
		return Modules(keys, bytes)
	case "name":
		return Sized(keys, bytes, bytes)
	}
	list := make([]Fold, len(keys))
	for i, key := range keys {
		list[i] = Fold{Name: key, Members: []int{i}, Min: bytes[i], Max: bytes[i], Bytes: bytes[i]}
	}
	return list
}
