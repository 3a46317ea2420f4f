package export

import (
	"fmt"
	"strings"

	"memtrace/analyzer"
	"memtrace/internal/render/layout"
)

// Value is a number that every stack has.
type Value uint8

// The values.
const (
	Peak      Value = iota // bytes at the level's peak
	Live                   // bytes that were left at the end
	Allocated              // bytes of all allocations together
	Count                  // number of allocations
)

// values has each value's name on the command line, its displayed name, and its name in pprof.
var values = [...]struct {
	name, words, pprof string
	of                 func(*analyzer.StackRow) uint64
}{
	Peak: {"peak", "", "peak_space", func(r *analyzer.StackRow) uint64 { return r.PeakBytes }},
	Live: {"live", "left at the end", "inuse_space", func(r *analyzer.StackRow) uint64 { return r.LiveBytes }},
	Allocated: {"allocated", "allocated in all", "alloc_space", func(r *analyzer.StackRow) uint64 {
		return r.AllocBytes
	}},
	Count: {"count", "allocations in all", "alloc_objects", func(r *analyzer.StackRow) uint64 {
		return r.AllocCount
	}},
}

// ValueNames lists the names that ParseValue accepts.
func ValueNames() []string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = v.name
	}
	return names
}

// ParseValue finds a value by its name.
func ParseValue(name string) (Value, error) {
	for i, v := range values {
		if v.name == name {
			return Value(i), nil
		}
	}
	return 0, fmt.Errorf("no value %q; choose from %s", name, strings.Join(ValueNames(), ", "))
}

// String returns the value's name.
func (v Value) String() string { return values[v].name }

func (v Value) of(row *analyzer.StackRow) uint64 { return values[v].of(row) }

// Words describes the moment of the run to which the value belongs.
func (v Value) Words(set *analyzer.StackSet) string {
	if v != Peak {
		return values[v].words
	}
	words := "at the peak"
	if set.Moment != "peak" {
		words = "at " + set.Moment
	}
	if set.TimeNS > 0 {
		words += ", after " + layout.Duration(set.TimeNS)
	}
	return words
}

// Text formats an amount: in binary units, or as a number of allocations.
func (v Value) Text(n uint64) string {
	switch {
	case v != Count:
		return layout.Bytes(n)
	case n == 1:
		return "1 allocation"
	}
	return layout.Count(n) + " allocations"
}

// Sum adds the value over all stacks.
func (v Value) Sum(set *analyzer.StackSet) (sum uint64) {
	for i := range set.Rows {
		sum += v.of(&set.Rows[i])
	}
	return sum
}

// exact writes an amount to the last digit.
func (v Value) exact(n uint64) string {
	if v == Count {
		return v.Text(n)
	}
	return layout.Count(n) + " bytes"
}
