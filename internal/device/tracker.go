package device

import (
	"cmp"
	"math"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/trace"
)

// limits bound the entries of each kind; their number in a damaged trace is unbounded.
const (
	maxSettings = 256
	maxQueries  = 256
	maxFlushes  = 1 << 12 // that threads are inside of
)

// AllocatorTracker follows one run. The zero value is ready.
type AllocatorTracker struct {
	Waiting
	settings  []report.Setting
	fractions []report.Fraction
	flushes   map[trace.ThreadID]*flush // that have begun
	emptied   report.EmptyCache
	largest   *flush
	queries   map[query]*report.FreeQuestion
	order     []query
}

// flush is one call of emptyCache.
type flush struct {
	time   int64
	bytes  uint64
	stacks stacks
}

type stacks struct {
	native trace.StackID
	python trace.StackID
}

// query is the key of a row of memory queries.
type query struct {
	stacks
	call   cuda.API
	device int16
}

// Event applies an event of one of the allocator's kinds; slot is the device's, epoch that of the framework's total,
// text looks a string up.
func (t *AllocatorTracker) Event(e *trace.Event, slot int, epoch uint64, text func(trace.StringID) string) {
	switch e.Kind {
	case trace.EventWait:
		t.begin(e, slot, epoch)
	case trace.EventComplete:
		t.complete(e.Handle, epoch)
	case trace.EventEmptyCache:
		t.emptyCache(e)
	case trace.EventAsk:
		t.query(e)
	case trace.EventSetting:
		t.set(e, text(e.Name))
	}
}

// set records the memory fraction of a device, or a setting for all of them.
func (t *AllocatorTracker) set(e *trace.Event, text string) {
	switch f := math.Float64frombits(e.Count); {
	case e.Device >= 0 && len(t.fractions) < maxSettings:
		if f >= 0 && f <= 1 {
			t.fractions = append(t.fractions, report.Fraction{TimeNS: e.Time, Device: e.Device, Fraction: f})
		}
	case e.Device < 0 && len(t.settings) < maxSettings:
		t.settings = append(t.settings, report.Setting{TimeNS: e.Time, Text: text})
	}
}

func (t *AllocatorTracker) emptyCache(e *trace.Event) {
	if e.Count == trace.Begun {
		if t.flushes == nil {
			t.flushes = make(map[trace.ThreadID]*flush)
		}
		t.emptied.Count++
		if len(t.flushes) < maxFlushes {
			t.flushes[e.Thread] = &flush{time: e.Time, stacks: stacks{e.Stack, e.PyStack}}
		}
		return
	}
	f := t.flushes[e.Thread]
	if f == nil {
		return
	}
	delete(t.flushes, e.Thread)
	t.emptied.GivenBack += f.bytes
	if f.bytes == 0 {
		t.emptied.NothingCount++
	}
	if f.bytes > t.emptied.LargestBytes {
		t.emptied.LargestBytes, t.emptied.LargestTimeNS, t.largest = f.bytes, f.time, f
	}
}

// Freed records memory that a thread released to the driver.
func (t *AllocatorTracker) Freed(thread trace.ThreadID, bytes uint64) {
	if f := t.flushes[thread]; f != nil {
		f.bytes += bytes
	}
}

func (t *AllocatorTracker) query(e *trace.Event) {
	if t.queries == nil {
		t.queries = make(map[query]*report.FreeQuestion)
	}
	q := query{stacks: stacks{e.Stack, e.PyStack}, call: cmp.Or(e.Runtime, e.API), device: e.Device}
	row := t.queries[q]
	if row == nil {
		if len(t.queries) == maxQueries {
			return
		}
		row = &report.FreeQuestion{Call: q.call.String(), Device: e.Device, FirstFree: e.Allocated, FirstNS: e.Time}
		t.queries[q] = row
		t.order = append(t.order, q)
	}
	row.Count++
	row.LastFree, row.Total = e.Allocated, e.Size
}

// OwnerNames returns the place in the program of a call, and the library that made it.
type OwnerNames func(native, python trace.StackID) (place, library string)

// Value is the summary of the run's allocator; epoch is that of the framework's total.
func (t *AllocatorTracker) Value(epoch uint64, names OwnerNames) *report.Allocator {
	v := &report.Allocator{Settings: append([]report.Setting{}, t.settings...), Fractions: append([]report.Fraction{},
		t.fractions...), EmptyCache: t.emptied,
		Asked: []report.FreeQuestion{}, Waiting: t.value(epoch), NotRecorded: []string{}}
	if t.largest != nil {
		v.EmptyCache.Place, _ = names(t.largest.stacks.native, t.largest.stacks.python)
	}
	for _, q := range t.order {
		row := *t.queries[q]
		row.Place, row.Library = names(q.native, q.python)
		v.Asked = append(v.Asked, row)
	}
	v.Asked = samePlaces(v.Asked)
	return v
}

// samePlaces joins rows with equal text, the most frequent first.
func samePlaces(rows []report.FreeQuestion) []report.FreeQuestion {
	type key struct {
		place, library, call string
		device               int16
	}
	index := make(map[key]int)
	list := rows[:0]
	for _, r := range rows {
		k := key{r.Place, r.Library, r.Call, r.Device}
		if i, known := index[k]; known {
			list[i].Count += r.Count
			list[i].LastFree, list[i].Total = r.LastFree, r.Total
			continue
		}
		index[k] = len(list)
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b report.FreeQuestion) int { return cmp.Compare(b.Count, a.Count) })
	return list
}
