package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Facts about a trace whose older part was thinned: of that part it has only the blocks that were live at the moments
// that count (internal/rewrite). The first one precedes the events, the others follow the last event that thinning
// processed.
const (
	thinningKey      = "thinned"        // "1"
	thinnedUntilKey  = "thinned.until"  // order number and time from which on every event is there
	thinnedEventsKey = "thinned.events" // events left out: all, steps, epochs, steps of optimizers
	thinnedBlocksKey = "thinned.blocks" // allocations left out, by account and device
)

// Thinned is what was left out of the older part of a trace. The zero value is that of a whole trace.
type Thinned struct {
	UntilSeq  uint64 // from this order number on every event is there; 0: none was thinned
	UntilTime int64  // nanoseconds since the trace's time base

	// Left out: events of all kinds, and of these.
	Events, Steps, Epochs, OptimizerSteps uint64

	Blocks []ThinnedBlocks
}

// ThinnedBlocks counts blocks of one account of one device that were left out, each with its free.
type ThinnedBlocks struct {
	Account string // its name in reports
	Device  int16
	Count   uint64
	Bytes   uint64
}

// Leave counts an event that is left out. account is that of an allocation.
func (t *Thinned) Leave(e *Event, account string) {
	t.Events++
	switch e.Kind {
	case EventStep:
		t.Steps++
	case EventEpoch:
		t.Epochs++
	case EventName:
		if e.Category == CategoryStep {
			t.OptimizerSteps++
		}
	case EventAlloc:
		t.addBlocks(ThinnedBlocks{account, e.Device, 1, e.Size})
	}
}

func (t *Thinned) addBlocks(b ThinnedBlocks) {
	for i := range t.Blocks {
		if v := &t.Blocks[i]; v.Account == b.Account && v.Device == b.Device {
			v.Count += b.Count
			v.Bytes += b.Bytes
			return
		}
	}
	t.Blocks = append(t.Blocks, b)
}

// Add counts what an earlier thinning left out.
func (t *Thinned) Add(before Thinned) {
	t.Events += before.Events
	t.Steps += before.Steps
	t.Epochs += before.Epochs
	t.OptimizerSteps += before.OptimizerSteps
	for _, b := range before.Blocks {
		t.addBlocks(b)
	}
}

// BeginThinned returns the facts that precede the first event of a thinned trace.
func BeginThinned() Info { return Info{thinningKey: "1"} }

// Info returns the facts that follow the last event that thinning processed.
func (t *Thinned) Info() Info {
	blocks := slices.SortedFunc(slices.Values(t.Blocks), func(x, y ThinnedBlocks) int {
		return cmp.Or(strings.Compare(x.Account, y.Account), cmp.Compare(x.Device, y.Device))
	})
	words := make([]string, 0, len(blocks))
	for _, b := range blocks {
		words = append(words, fmt.Sprintf("%s %d %d %d", b.Account, b.Device, b.Count, b.Bytes))
	}
	return Info{
		thinnedUntilKey:  fmt.Sprint(t.UntilSeq, " ", t.UntilTime),
		thinnedEventsKey: fmt.Sprint(t.Events, " ", t.Steps, " ", t.Epochs, " ", t.OptimizerSteps),
		thinnedBlocksKey: strings.Join(words, ", "),
	}
}

// maxThinnedBlocks bounds what is accepted: there are no more device ledgers.
const maxThinnedBlocks = 1 << 10

// ThinnedFrom reads what Info wrote. What cannot be read counts as nothing.
func ThinnedFrom(info Info) (t Thinned) {
	if info[thinnedUntilKey] == "" {
		return Thinned{}
	}
	if _, err := fmt.Sscan(info[thinnedUntilKey], &t.UntilSeq, &t.UntilTime); err != nil {
		return Thinned{}
	}
	if _, err := fmt.Sscan(info[thinnedEventsKey], &t.Events, &t.Steps, &t.Epochs, &t.OptimizerSteps); err != nil {
		return Thinned{}
	}
	for word := range strings.SplitSeq(info[thinnedBlocksKey], ", ") {
		var b ThinnedBlocks
		if _, err := fmt.Sscan(word, &b.Account, &b.Device, &b.Count, &b.Bytes); err != nil ||
			len(t.Blocks) == maxThinnedBlocks {
			break
		}
		t.addBlocks(b)
	}
	return t
}

// IsThin reports whether the events that were read last are of a thinned part.
func IsThin(info Info) bool { return info[thinningKey] != "" && info[thinnedUntilKey] == "" }

// ThinnedKeys are the facts that mark a trace as thinned.
func ThinnedKeys() []string {
	return []string{thinningKey, thinnedUntilKey, thinnedEventsKey, thinnedBlocksKey}
}
