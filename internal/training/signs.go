package training

import (
	"regexp"
	"slices"
	"strings"

	"memtrace/internal/callstack"
	"memtrace/trace"
)

// iterationRange matches the part of a tag that people wrap an iteration in: step, iteration 12, batch_3.
var iterationRange = regexp.MustCompile(`(?i)^(train|training|eval|test|infer|inference)?[ _:.-]*(iteration|iter|step|batch|minibatch|it)[ _:#=-]*\d*$`)

// rangeWatch sees ranges begin, of NVTX or of tags, whose name says that they are an iteration.
type rangeWatch struct {
	tables *trace.Tables
	known  map[trace.StringID]string         // the tag up to the range; "" if none is in it
	inside map[trace.ThreadID]trace.StringID // tag of the thread's last allocation
	thread trace.ThreadID                    // that allocated last
	tag    trace.StringID                    // and its tag then
}

// begins reports whether an allocation is the first one of such a range.
func (w *rangeWatch) begins(e *trace.Event) bool {
	// before the first one both are zero, as is the tag of a thread that was not seen
	if e.Thread == w.thread && e.Tag == w.tag {
		return false
	}
	w.thread, w.tag = e.Thread, e.Tag
	if w.known == nil {
		w.known, w.inside = make(map[trace.StringID]string), make(map[trace.ThreadID]trace.StringID)
	}
	before := w.inside[e.Thread]
	if before == e.Tag {
		return false
	}
	w.inside[e.Thread] = e.Tag
	now := w.iteration(e.Tag)
	return now != "" && now != w.iteration(before)
}

func (w *rangeWatch) iteration(tag trace.StringID) string {
	if tag == 0 {
		return ""
	}
	path, known := w.known[tag]
	if !known {
		path = rangeOf(w.tables.String(tag))
		w.known[tag] = path
	}
	return path
}

// rangeOf cuts a tag behind its outermost part that names an iteration, "" if there is none.
func rangeOf(tag string) string {
	for end := 0; end <= len(tag); {
		next := strings.IndexAny(tag[end:], "./")
		if next < 0 {
			next = len(tag) - end
		}
		if iterationRange.MatchString(tag[end : end+next]) {
			return tag[:end+next]
		}
		end += next + 1
	}
	return ""
}

// periodWatch looks for an allocation that returns at even distances, counted in allocations: a program's loop that
// nobody told us of.
type periodWatch struct {
	count uint64 // allocations so far
	seen  map[callstack.Pair]*recurrence
	last  *recurrence            // of the latest allocation, nil if it is not watched
	live  map[uint64]*recurrence // by address
	found *recurrence            // the anchor, where it is known from a keyframe; else nil
}

// recurrence is how allocations with one pair of call stacks follow each other.
type recurrence struct {
	stacks callstack.Pair
	count  uint64
	last   uint64 // number of the latest one
	gap    uint64 // between the latest two
	same   uint64 // how often the gap was the one before
	first  uint64
	live   int         // blocks
	most   int         // of them at once, up to periodLive + 1
	longer []uint64    // numbers of returns before a longer gap, the first few
	rows   uint64      // how many ended with a longer gap
	inRows uint64      // returns when their number was last a power of two
	inHalf uint64      // the same of the one before
	next   *recurrence // what came after it the last time: it mostly does so again
}

const (
	periodStacks = 1 << 16 // that are watched
	periodLeast  = 4       // returns that make a period
	longRows     = 16      // rows that show whether they get longer
	periodLive   = 3       // blocks of it at most: what an iteration makes goes with it or with the next ones
)

func (w *periodWatch) alloc(e *trace.Event) {
	if w.seen == nil {
		w.seen, w.live = make(map[callstack.Pair]*recurrence), make(map[uint64]*recurrence)
	}
	w.count++
	pair := callstack.Pair{Native: e.Stack, Python: e.PyStack}
	r := w.find(pair)
	switch {
	case r == nil && len(w.seen) < periodStacks && (e.PyStack != 0 || e.Stack != 0):
		r = &recurrence{stacks: pair, count: 1, first: w.count, last: w.count}
		w.seen[pair] = r
	case r != nil:
		gap := w.count - r.last
		switch {
		case r.count > 1 && gap == r.gap:
			r.same++
		case r.count > 1 && gap > r.gap:
			r.endRow()
		}
		r.gap, r.last = gap, w.count
		r.count++
	}
	if w.last = r; r != nil && r.most <= periodLive { // else it is no period, whatever comes
		if r.live++; r.live > r.most {
			r.most = r.live
		}
		w.live[e.Addr] = r
	}
}

// endRow takes in that a longer gap follows.
func (r *recurrence) endRow() {
	if len(r.longer) < periodLeast {
		r.longer = append(r.longer, r.count)
	}
	if r.rows++; r.rows&(r.rows-1) == 0 {
		r.inHalf, r.inRows = r.inRows, r.count
	}
}

// free takes in the end of a block.
func (w *periodWatch) free(e *trace.Event) {
	if r := w.live[e.Addr]; r != nil {
		r.live--
		delete(w.live, e.Addr)
	}
}

func (w *periodWatch) find(pair callstack.Pair) *recurrence {
	if w.last != nil && w.last.next != nil && w.last.next.stacks == pair {
		return w.last.next
	}
	r := w.seen[pair]
	if w.last != nil {
		w.last.next = r
	}
	return r
}

// anchor returns the allocation that marks iterations: of those that return at one and the same distance, for at least
// half of the run, and whose blocks do not pile up, the one with the longest distance.
func (w *periodWatch) anchor() *recurrence {
	if w.found != nil {
		return w.found
	}
	var best *recurrence
	for _, r := range w.seen {
		even := r.count >= periodLeast && r.same*10 >= (r.count-2)*9 && (r.last-r.first)*2 >= w.count
		if even && r.most <= periodLive && !r.inPasses() && !r.inLongerPasses() && (best == nil || r.better(best)) {
			best = r
		}
	}
	return best
}

// inPasses reports whether all returns come in a few rows of one length: those are the layers of a few passes.
func (r *recurrence) inPasses() bool {
	if len(r.longer) == 0 || len(r.longer) >= periodLeast {
		return false
	}
	before := uint64(0)
	for _, n := range append(slices.Clone(r.longer), r.count) {
		if n-before != r.longer[0] {
			return false
		}
		before = n
	}
	return r.longer[0] >= periodLeast
}

// inLongerPasses reports whether returns come in rows that get longer and longer: those are the layers of passes, of
// which each goes through all that came before. Twice as many rows of one length have twice as many returns, of these
// four times as many.
func (r *recurrence) inLongerPasses() bool { return r.rows >= longRows && r.inRows >= 3*r.inHalf }

// better decides between two periods; ties by what comes first, so that the same trace has the same answer.
func (r *recurrence) better(than *recurrence) bool {
	if r.gap != than.gap {
		return r.gap > than.gap
	}
	return r.first < than.first
}
