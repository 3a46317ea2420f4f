package analyzer

import (
	"cmp"

	"memtrace/analyzer/report"
	"memtrace/internal/cause"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/internal/oom"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// oomFigure follows the refusals, and keeps the state at the one that was asked for.
type oomFigure struct {
	noFigure
	oom.Tracker
	r *replayer
}

func (f *oomFigure) begin(r *replayer, places bool) {
	f.r = r
	f.Resolver, f.Heap, f.Devices, f.Replay = &r.accounts.resolver, r.heap, &r.device, f
	f.OriginOf, f.Places, f.Links = r.accounts.originOf, places, r.accounts.links
	f.Divide = func(level string, list []profile.Held) *report.Division {
		return cause.DivisionOf(&r.accounts.resolver, level, list)
	}
}

func (f *oomFigure) needs() need { return need{events: allKinds, plain: f.Watching()} }

func (f *oomFigure) event(e *trace.Event) { f.Event(e) }

func (f *oomFigure) restart(int64) { f.OOM = report.OOM{} }

func (f *oomFigure) answer(q *query, s *report.Summary) {
	if s.OOM = f.OOM; s.OOM.Events == nil {
		s.OOM.Events = []report.OOMEvent{}
	}
	oom.AddSidecars(&s.OOM, q.src)
}

// Watches implements oom.Replay.
func (f *oomFigure) Watches(device int16) bool { return f.r.accounts.filter.HasDevice(device) }

// DriverBytes implements oom.Replay.
func (f *oomFigure) DriverBytes() uint64 {
	return f.r.accounts.details[heap.AccountDriver].Total.Current
}

// LostRecords implements oom.Replay.
func (f *oomFigure) LostRecords() uint64 { return f.r.losses.count }

// CategoryOf implements oom.Replay.
func (f *oomFigure) CategoryOf(id uint32, b *heap.Block) string {
	a := &f.r.accounts
	switch {
	case b.Hidden:
		return ""
	case a.iterations == nil && !f.Places: // names of call stacks were not asked for
		return ""
	case a.iterations == nil || a.iterations.Account != b.Account:
		return f.ByPhase.Of(&a.resolver, a.originOf(id, b).Category, b)
	}
	return a.iterations.CategoryOf(&a.details[b.Account].Cells.List[a.live.At(id).Cell])
}

// ElementOf implements oom.Replay.
func (f *oomFigure) ElementOf(id uint32, b *heap.Block) uint8 {
	o := f.r.accounts.originOf(id, b)
	if o.Name == 0 {
		return 0
	}
	return cmp.Or(f.r.elements[o.Name], trace.WideElement)
}

// IsNewCode implements oom.Replay.
func (f *oomFigure) IsNewCode(b *heap.Block) bool {
	t := f.r.accounts.iterations
	return t != nil && t.Account == b.Account && t.IsNewCode(b.PyStack)
}

// Passing implements oom.Replay. Nothing frees the block in its pass any more, by which other blocks are known to be of
// this kind.
func (f *oomFigure) Passing(id uint32) {
	b := f.r.heap.Block(id)
	if t := f.r.accounts.iterations; t == nil || t.Account != b.Account {
		return
	}
	if d := f.r.accounts.byOrigin(b); d != nil {
		f.r.endsInPass(d, id, b)
	}
}

// AtRefusal implements oom.Replay. It costs a look at all that is live, so it is done only where that may be the moment
// that was asked for.
func (f *oomFigure) AtRefusal(time int64) any {
	if f.r.moments.want.Kind != moment.OOM || f.r.moments.kept != nil {
		return nil
	}
	return f.r.now(time)
}

// OOMEnded implements oom.Replay.
func (f *oomFigure) OOMEnded(number int, outcome string, state any) {
	m := &f.r.moments
	if s, taken := state.(*moment.State); taken && (m.want.OOM == number || m.want.OOM == 0 && m.kept == nil &&
		outcome == report.OOMFailed) {
		m.kept = s
	}
}

// finishForNow ends every OOM event as if nothing more came, and returns what takes that back: a trace that grows may
// have more.
func (f *oomFigure) finishForNow() (undo func()) {
	kept, undoEvents := f.r.moments.kept, f.FinishForNow()
	return func() {
		undoEvents()
		f.r.moments.kept = kept
	}
}
