package analyzer

import (
	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// Block is a block of memory that is or was live: its address, size, requested bytes, account, device, and the call
// stack, thread and tag of its allocation. Other programs, which cannot import internal/heap, name it by this.
type Block = heap.Block

// Watcher is told, while a trace is replayed, of the blocks of all accounts that pass the filters. What it is handed is
// valid during the call only; numbers of blocks are used again once their blocks were closed.
type Watcher interface {
	// Opened reports a new live block, Closed the end of one, as heap.Observer has it.
	Opened(id uint32, b *heap.Block, e *trace.Event)
	Closed(id uint32, b *heap.Block, e *trace.Event)
	// Passed reports an allocation that came after its block had ended: it counts, and was never seen live.
	Passed(b *heap.Block)
	// Event reports every event, after what it did to blocks.
	Event(e *trace.Event)
	// Moment reports that this may be the moment of Options.At. What it returns of the moment that it was in the end is
	// Followed.Moment.
	Moment() any
}

// watchFigure hands what happens to a Watcher.
type watchFigure struct {
	noFigure
	Watcher
	chosen any // what the watcher kept of the moment that was asked for
}

func (w *watchFigure) needs() need { return need{allKinds, true, true} }

func (w *watchFigure) opened(x *change) { w.Opened(x.id, x.block, x.event) }

func (w *watchFigure) closed(x *change) { w.Closed(x.id, x.block, x.event) }

func (w *watchFigure) passed(b *heap.Block) { w.Passed(b) }

func (w *watchFigure) event(e *trace.Event) { w.Event(e) }

// watch lets a Watcher see the replay.
func (r *replayer) watch(w Watcher) {
	r.watcher = &watchFigure{Watcher: w}
	r.figures.list = append(r.figures.list, r.watcher)
}

// Followed is what is known once a trace was replayed for a Watcher. It must be closed.
type Followed struct {
	Summary *report.Summary
	Moment  any // what the Watcher returned of the moment of Options.At; nil for the peak, of which it is not told

	profile *Profile
}

// Follow reads a trace to its end and tells a Watcher what happens. Errors are those of Summarize.
func Follow(src trace.Source, opts Options, w Watcher) (*Followed, error) {
	p, err := NewProfile(src, opts)
	if err != nil {
		return nil, err
	}
	p.replayer.watch(w)
	if err := p.Update(); err != nil {
		p.Close()
		return nil, err
	}
	s, err := p.Report(opts.Question)
	if err != nil {
		p.Close()
		return nil, err
	}
	p.replayer.accounts.resolver.Stacks.Start()
	return &Followed{Summary: s, Moment: p.replayer.watcher.chosen, profile: p}, nil
}

// Close closes the files that names were looked for in, and releases the memory.
func (f *Followed) Close() { f.profile.Close() }

// Live yields the blocks that pass the filters and are live at the end. They are valid during the call.
func (f *Followed) Live(yield func(b *heap.Block)) {
	f.profile.replayer.heap.Each(func(_ uint32, b *heap.Block) {
		if !b.Hidden {
			yield(b)
		}
	})
}

// Frames returns the frames of a call stack, Python and native ones in one, innermost first; of what libraries do
// inside, one frame stays unless all are wanted.
func (f *Followed) Frames(native, python trace.StackID, full bool) []symbol.Frame {
	return f.profile.replayer.accounts.resolver.Stacks.Of(callstack.Pair{Native: native, Python: python}).Frames(full)
}

// User reports whether a frame is the program's own code and not that of a library.
func (f *Followed) User(frame symbol.Frame) bool {
	return f.profile.replayer.accounts.resolver.Stacks.Classifier.User(frame)
}

// Place is the readable form of a frame's file, as StackSet.Place has it.
func (f *Followed) Place(frame symbol.Frame) string {
	return f.profile.replayer.accounts.resolver.Stacks.Classifier.Place(frame.File)
}

// Library names the object file that made the call of a stack.
func (f *Followed) Library(native trace.StackID) string {
	libraries := f.profile.replayer.accounts.resolver.Libraries
	return libraries.Name(libraries.Of(native))
}

// Text returns an interned string, such as a tag or a mark's name; "" for none.
func (f *Followed) Text(id trace.StringID) string {
	return f.profile.replayer.accounts.resolver.Tables.String(id)
}

// Thread names a thread of the program.
func (f *Followed) Thread(id trace.ThreadID) string {
	return profile.ThreadKey(&f.profile.replayer.accounts.resolver, uint64(id))
}

// Problems are what kept frames from being named, and what to do.
func (f *Followed) Problems() []string { return f.profile.replayer.accounts.resolver.Stacks.Problems() }
