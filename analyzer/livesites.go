package analyzer

import (
	"cmp"
	"slices"
	"strings"

	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/internal/rules"
	"memtrace/trace"
)

// LiveSite is where the block at an address was allocated.
type LiveSite struct {
	Key   string // as reports call it
	Bytes uint64 // of the block
}

// LiveSites reads a trace to its end and returns the places at which the blocks were allocated that lay at these
// addresses once the event with the order number seq had happened: PyTorch's, or where it has none there, the driver's,
// or those in pinned host memory. Addresses of which nothing is known are left out. saved is the bytes of PyTorch's
// other blocks then that an autograd graph may have saved. Errors are those of Summarize.
func LiveSites(src trace.Source, opts Options, seq uint64, addresses []uint64) (sites map[uint64]LiveSite,
	saved uint64, err error) {
	w := &siteWatcher{seq: seq}
	for i := range w.live {
		w.live[i] = make(map[uint64]liveBlock)
	}
	opts.Groupings = []string{"tag"} // the cheapest one
	followed, err := Follow(src, opts, w)
	if err != nil {
		return nil, 0, err
	}
	defer followed.Close()
	resolver := &followed.profile.replayer.accounts.resolver
	sites = make(map[uint64]LiveSite)
	for _, live := range w.live {
		blocks := sorted(live)
		for _, address := range addresses {
			if _, known := sites[address]; known {
				continue
			}
			if b := blockAt(blocks, address); b != nil {
				key, _ := resolver.PlaceOf(b.stack)
				sites[address] = LiveSite{Key: key, Bytes: b.size}
				delete(w.live[0], b.address)
			}
		}
	}
	for _, b := range w.live[0] {
		if b.mayBeSaved(resolver) {
			saved += b.size
		}
	}
	return sites, saved, nil
}

// liveBlock is what is known of a block: its stack as a callstack.Pair's ID.
type liveBlock struct {
	address, size, stack uint64
	thread               trace.ThreadID
}

// mayBeSaved reports whether a graph for a backward pass may have saved a block: what libraries work in is no tensor.
func (b *liveBlock) mayBeSaved(r *profile.Resolver) bool {
	phase, frames := r.PhaseOf(callstack.PairOf(b.stack), b.thread)
	return (phase == "forward" || phase == "recompute" || phase == "other") && !isScratch(frames)
}

// scratchFunctions are parts of the names of PyTorch's functions that allocate what libraries work in, and what
// gradients are sent in.
var scratchFunctions = []string{"orkspace", "getCurrentCUDABlas", "c10d::Reducer::"}

// isScratch reports whether a call stack allocates what is no tensor of the program's.
func isScratch(frames []*rules.Frame) bool {
	return slices.ContainsFunc(frames, func(f *rules.Frame) bool {
		return slices.ContainsFunc(f.Functions, func(function string) bool {
			return slices.ContainsFunc(scratchFunctions, func(part string) bool {
				return strings.Contains(function, part)
			})
		})
	})
}

// scratch is how much of what the framework's allocator had given out with its last allocation is no tensor of the
// program's.
func (q *query) scratch() (bytes uint64) {
	if q.accounts.held == nil {
		return 0
	}
	for _, stack := range q.accounts.held.Of(heap.AccountFramework) {
		if n := len(stack.Lows); n > 0 && stack.Lows[n-1] > 0 {
			if _, frames := q.resolver.PhaseOf(callstack.PairOf(stack.ID), 0); isScratch(frames) {
				bytes += stack.Lows[n-1]
			}
		}
	}
	return bytes
}

// siteWatcher keeps the blocks that are live at a moment: PyTorch's, the driver's, and pinned ones of the host.
type siteWatcher struct {
	seq  uint64
	live [3]map[uint64]liveBlock // by address
}

func (w *siteWatcher) of(b *heap.Block) map[uint64]liveBlock {
	switch b.Account {
	case heap.AccountFramework:
		return w.live[0]
	case heap.AccountDriver:
		return w.live[1]
	case heap.AccountHost:
		return w.live[2]
	}
	return nil
}

// Opened implements Watcher.
func (w *siteWatcher) Opened(_ uint32, b *heap.Block, e *trace.Event) {
	if live := w.of(b); live != nil && e.Seq <= w.seq {
		live[b.Addr] = liveBlock{b.Addr, b.Size, callstack.Pair{Native: b.Stack, Python: b.PyStack}.ID(),
			b.Thread}
	}
}

// Closed implements Watcher.
func (w *siteWatcher) Closed(_ uint32, b *heap.Block, e *trace.Event) {
	if live := w.of(b); live != nil && e.Seq <= w.seq {
		delete(live, b.Addr)
	}
}

// Passed implements Watcher.
func (w *siteWatcher) Passed(*heap.Block) {}

// Event implements Watcher.
func (w *siteWatcher) Event(*trace.Event) {}

// Moment implements Watcher.
func (w *siteWatcher) Moment() any { return nil }

func sorted(live map[uint64]liveBlock) []liveBlock {
	blocks := make([]liveBlock, 0, len(live))
	for _, b := range live {
		blocks = append(blocks, b)
	}
	slices.SortFunc(blocks, func(a, b liveBlock) int { return cmp.Compare(a.address, b.address) })
	return blocks
}

// blockAt returns the block that an address lies in, nil if there is none.
func blockAt(blocks []liveBlock, address uint64) *liveBlock {
	n, exact := slices.BinarySearchFunc(blocks, address, func(b liveBlock, at uint64) int {
		return cmp.Compare(b.address, at)
	})
	if !exact {
		n--
	}
	if n < 0 || address-blocks[n].address >= blocks[n].size {
		return nil
	}
	return &blocks[n]
}
