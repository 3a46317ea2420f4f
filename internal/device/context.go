package device

import "memtrace/internal/heap"

// liveContext names a context; handles are used again, so the order number of its creation belongs to the name.
type liveContext struct {
	handle, seq uint64
}

// liveContexts lists the contexts of a device. A trace that tells of no contexts is taken to have one that never ends.
func liveContexts(h *heap.Heap, device int16) []liveContext {
	if !h.Objects.KnowsContexts() {
		return []liveContext{{}}
	}
	var list []liveContext
	h.Objects.EachContext(device, func(handle, seq uint64) { list = append(list, liveContext{handle, seq}) })
	return list
}

// contextCosts is what each context of a device was found to take: what the device counted for the process beyond what
// it had allocated, when the context was new. Code that is loaded later and heaps that grow are not part of it: they
// show in the remainder.
type contextCosts map[liveContext]uint64

// measure sets the costs of contexts that have none yet; untracked is what the process takes beyond what the trace
// accounts for.
func (costs *contextCosts) measure(live []liveContext, untracked int64) {
	var fresh []liveContext
	for _, context := range live {
		if cost, known := (*costs)[context]; known {
			untracked -= int64(cost)
		} else {
			fresh = append(fresh, context)
		}
	}
	if len(fresh) == 0 {
		return
	}
	if *costs == nil || len(*costs) > heap.MaxContexts {
		*costs = make(contextCosts)
	}
	rest, n := uint64(max(untracked, 0)), uint64(len(fresh))
	for i, context := range fresh {
		share := rest / n
		if i == 0 {
			share += rest % n
		}
		(*costs)[context] = share
	}
}

func (costs contextCosts) sum(live []liveContext) (sum uint64) {
	for _, context := range live {
		sum += costs[context]
	}
	return sum
}
