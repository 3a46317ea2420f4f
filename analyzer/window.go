package analyzer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/internal/training"
	"memtrace/trace"
)

// window is the part of the run that a summary answers for. What stands before it is replayed, then highest values and
// counts begin anew; what comes behind it is left out, so that the state at its end stands.
type window struct {
	from, to     moment.At // zero: the beginning and the end of the run
	began, ended bool
	crossed      bool // its end came before its beginning
	fromNS, toNS int64

	totals  [heap.AccountCount]heap.Meter                    // as they were when it began
	devices [heap.AccountCount][]heap.Meter                  // the same, by device slot
	freed   [heap.AccountCount]map[profile.Origin]windowPart // blocks that are older than the window and ended in it
	blocks  [heap.AccountCount]map[profile.Origin]windowPart // all of the window's, once they are counted

	outside report.Iterations       // steps
	marks   map[trace.StringID]bool // outside
}

// windowPart are the blocks of one origin.
type windowPart = *report.WindowBlocks

// behind keeps what the first reading of a trace found out about the window's ends; w may be nil.
func (w *window) behind(p *training.Lookahead) {
	if w == nil {
		return
	}
	for _, at := range []*moment.At{&w.from, &w.to} {
		if at.Kind == moment.Teardown {
			at.Seq = lastAlloc(p)
		}
	}
}

// lastAlloc is the order number of the last allocation of the level that reports put first, as a first reading found
// it.
func lastAlloc(p *training.Lookahead) uint64 {
	if p.Framework {
		return p.LastAlloc[heap.AccountFramework]
	}
	return p.LastAlloc[heap.AccountDriver]
}

// enters begins and ends the window before e is replayed, and reports whether e lies after it.
func (w *window) enters(r *replayer, e *trace.Event) bool {
	begins, ends := w.reaches(e, r.accounts.resolver.Tables)
	if begins {
		at := e.Time
		if w.from.Kind == moment.Time {
			at = w.from.Time
		}
		w.begin(r, at)
	}
	if ends {
		w.end(e)
	}
	return w.skips(r, e)
}

// reaches reports whether e is where the window begins, and whether it is where it ends.
func (w *window) reaches(e *trace.Event, tables *trace.Tables) (begins, ends bool) {
	begins = !w.began && w.from.AtOrBefore(e, tables)
	if begins && !w.to.Before(e) {
		return true, false // the same mark or step does not end it as well
	}
	return begins, w.to.AtOrBefore(e, tables)
}

// skips takes in an event that lies after the window, and reports whether e is one.
func (w *window) skips(r *replayer, e *trace.Event) bool {
	if w.ended {
		w.beyond(r, e)
	}
	return w.ended
}

// passed begins and ends the window after e.
func (w *window) passed(r *replayer, e *trace.Event) {
	if !w.began && w.from.BehindEvent(e) {
		w.begin(r, e.Time)
	}
	if w.to.BehindEvent(e) {
		w.end(e)
	}
}

func (w *window) end(e *trace.Event) {
	if w.crossed = w.crossed || !w.began && w.to.Kind != moment.Mark && w.to.Kind != moment.Step; w.crossed ||
		!w.began {
		return
	}
	w.ended, w.toNS = true, e.Time
	if w.to.Kind == moment.Time {
		w.toNS = w.to.Time
	}
}

// beyond takes in what comes after the window: nothing but what errors, and the state of the trace, are made of.
func (w *window) beyond(r *replayer, e *trace.Event) {
	r.lastTime = max(r.lastTime, e.Time)
	switch e.Kind {
	case trace.EventMark:
		w.marks[e.Name] = true
	case trace.EventStep:
		addIteration(&w.outside, e)
	case trace.EventLost:
		r.losses.loseAfterWindow(e)
	}
}

// begin keeps what was counted so far, and lets counts and highest values begin anew.
func (w *window) begin(r *replayer, at int64) {
	w.began, w.fromNS = true, at
	w.totals = r.accounts.totals
	for _, a := range detailedAccounts {
		d := r.accounts.details[a]
		w.totals[a] = d.Total
		for i := range d.Devices {
			w.devices[a] = append(w.devices[a], d.Devices[i].Meter)
		}
	}
	r.marks.each(func(id trace.StringID) { w.marks[id] = true })
	w.outside = r.iterationCounts.steps
	r.restart(at)
}

// older reports whether a live block was there when the window began.
func (w *window) older(a heap.Account, openedAs uint64) bool { return openedAs <= w.totals[a].Events() }

// closed takes in the end of a block of an account with detail, whose number may be another one's from now on.
func (w *window) closed(b *heap.Block, openedAs *uint64, o *profile.Origin) {
	if w.began && w.older(b.Account, *openedAs) {
		partOf(&w.freed[b.Account], o).Freed.Add(b.Size)
	}
	*openedAs = 0
}

func partOf(parts *map[profile.Origin]windowPart, o *profile.Origin) windowPart {
	if *parts == nil {
		*parts = make(map[profile.Origin]windowPart)
	}
	v := (*parts)[*o]
	if v == nil {
		v = &report.WindowBlocks{}
		(*parts)[*o] = v
	}
	return v
}

// finish ends a window that the trace does not go beyond, and counts its blocks. Errors: a moment that never came.
func (w *window) finish(r *replayer, end int64) error {
	// between the last event and the end nothing changes
	if !w.began && w.from.Kind == moment.Time && w.from.Time <= end {
		w.begin(r, w.from.Time)
	}
	switch {
	case !w.began:
		return w.never("--from", w.from, r, end)
	case w.ended:
	case w.crossed:
		return w.never("--to", w.to, r, end)
	case w.to.IsZero():
		w.toNS = end
	case w.to.Kind == moment.Time && w.to.Time <= end:
		w.toNS = w.to.Time
	default:
		return w.never("--to", w.to, r, end)
	}
	w.blocks = [heap.AccountCount]map[profile.Origin]windowPart{}
	for a := range w.freed {
		for o, v := range w.freed[a] {
			partOf(&w.blocks[a], &o).Freed = v.Freed
		}
	}
	accounts := &r.accounts
	r.heap.Each(func(id uint32, b *heap.Block) {
		d := accounts.details[b.Account]
		if d == nil || b.Hidden || int(id) >= accounts.live.Len() {
			return
		}
		live := accounts.live.At(id)
		if live.Opened == 0 {
			return
		}
		part := partOf(&w.blocks[b.Account], &d.Cells.List[live.Cell].Origin)
		if w.older(b.Account, live.Opened) {
			part.Kept.Add(b.Size)
		} else {
			part.New.Add(b.Size)
		}
	})
	for a := range w.blocks {
		for _, v := range w.blocks[a] {
			v.Close()
		}
	}
	return nil
}

// never says why a moment did not begin or end the window.
func (w *window) never(flag string, at moment.At, r *replayer, end int64) error {
	steps, tables := r.iterationCounts.steps, r.accounts.resolver.Tables
	if w.outside.Count > 0 {
		steps = w.outside
	}
	earlier := flag == "--to" && (w.crossed || at.Kind == moment.Step && at.Step <= steps.LastNumber && steps.Count > 0)
	for id := range w.marks {
		earlier = earlier || flag == "--to" && at.Kind == moment.Mark && tables.String(id) == at.Name
	}
	if earlier {
		if w.from.IsZero() {
			return fmt.Errorf("--to %s comes before everything else", at)
		}
		return fmt.Errorf("--to %s does not come after --from %s; name a later moment, or exchange them", at, w.from)
	}
	if at.Kind == moment.Time {
		return fmt.Errorf("%s %s is after the end of the run, which took %v", flag, at,
			time.Duration(end).Round(time.Microsecond))
	}
	known := &report.Summary{Steps: steps, Process: report.Process{DurationNS: end}}
	r.marks.each(func(id trace.StringID) { w.marks[id] = true })
	for id := range w.marks {
		known.Marks = append(known.Marks, report.Mark{Name: tables.String(id)})
	}
	slices.SortFunc(known.Marks, func(a, b report.Mark) int { return cmp.Compare(a.Name, b.Name) })
	return fmt.Errorf("%s %s: %w", flag, at, noMoment(at, known, &r.ooms))
}

// value is what reports show. The summary must have its levels.
func (w *window) value(q *query, s *report.Summary) *report.Window {
	v := &report.Window{WindowEnds: report.WindowEnds{From: w.from.String(), To: w.to.String(), FromNS: w.fromNS,
		ToNS: w.toNS}, Levels: []report.WindowLevel{}}
	for _, a := range q.detailed(s) {
		l := report.WindowLevel{Level: a.String(), Groups: []report.WindowGroup{}}
		for _, part := range w.blocks[a] {
			l.Plus(part)
		}
		n := w.since(heap.LevelOf(&q.accounts.details[a].Total), &w.totals[a])
		l.Passed = report.BlockSum{Count: n.AllocCount - l.New.Count, Bytes: n.AllocBytes - l.New.Bytes}
		for _, by := range q.groupings {
			l.Groups = append(l.Groups, report.WindowGroup{By: by.Name, Rows: w.rows(q, a, by)})
		}
		v.Levels = append(v.Levels, l)
	}
	return v
}

// rows divides an account's blocks by a grouping.
func (w *window) rows(q *query, a heap.Account, by *profile.Grouping) []report.WindowRow {
	rows := []report.WindowRow{}
	index := profile.NewRowSet(q.rowIndex(by))
	for o, part := range w.blocks[a] {
		id := index.By.ID(q.resolver, &o)
		n, isNew := index.Row(id)
		if isNew {
			key, label := index.Name(id)
			rows = append(rows, report.WindowRow{Key: key, Label: label})
		}
		rows[n].Plus(part)
	}
	slices.SortFunc(rows, func(a, b report.WindowRow) int {
		return cmp.Or(cmp.Compare(b.Change(), a.Change()), cmp.Compare(b.End.Bytes, a.End.Bytes),
			cmp.Compare(b.Start.Bytes, a.Start.Bytes), strings.Compare(a.Key, b.Key))
	})
	return rows
}

// since takes what was counted before the window from a level.
func (w *window) since(l report.Level, before *heap.Meter) report.Level {
	l.AllocCount -= before.Allocs
	l.FreeCount -= before.Frees
	l.AllocBytes -= before.AllocBytes
	l.FailedCount -= before.Refused
	l.StartCount = before.Allocs - before.Frees
	return l
}

// level is a level of all devices, or of the one in a slot, as counted in the window; w may be nil.
func (w *window) level(l report.Level, a heap.Account, slot int) report.Level {
	switch {
	case w == nil || !w.began:
		return l
	case slot == profile.AllSlots:
		return w.since(l, &w.totals[a])
	case slot < len(w.devices[a]):
		return w.since(l, &w.devices[a][slot])
	}
	return l
}

// uncount takes from what was counted by origin the allocations of blocks that are older than the window, since cells
// count them: see profile.Cells.Restart. w may be nil.
func (w *window) uncount(a heap.Account, take func(o *profile.Origin, older profile.Counts)) {
	if w == nil {
		return
	}
	for o, part := range w.blocks[a] {
		if part.Start.Count > 0 {
			take(&o, profile.Counts{Allocs: part.Start.Count, AllocBytes: part.Start.Bytes})
		}
	}
}
