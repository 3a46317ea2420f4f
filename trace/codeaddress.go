package trace

import (
	"maps"
	"slices"
)

// CodeAddresses returns the distinct code addresses of all native stacks, in rising order.
func (t *Tables) CodeAddresses() []uint64 {
	distinct := make(map[uint64]struct{})
	for _, s := range t.stacks {
		for _, pc := range s.frames {
			distinct[pc] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(distinct))
}
