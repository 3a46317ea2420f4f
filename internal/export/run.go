package export

import (
	"errors"
	"fmt"
	"io"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/internal/render/layout"
	"memtrace/trace"
)

// Run is a trace that can be read more than once, and what to count of it: the input of formats that contain the
// lifetimes of blocks.
type Run struct {
	Open  func() (trace.Source, io.Closer, error) // the trace, from its beginning
	Count analyzer.Options
	Level string // "framework" or "driver", "" for the one that reports put first
}

// Written describes the content of a file.
type Written struct {
	Summary *report.Summary
	Words   string   // how much it is, and of which moment
	Limits  []string // sentences on what is left out
}

// followed reads the trace for a watcher, and before that if the options require names. The watcher gets the source of
// names as of the first event: all of them if the trace is read ahead.
func (r *Run) followed(o analyzer.Options, watcher func(names trace.Source) analyzer.Watcher) (f *analyzer.Followed,
	err error) {
	src, closer, err := r.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	if o.Focus != nil || o.Ignore != nil || o.Training || o.At.NeedsAhead() {
		ahead, done, err := r.Open()
		if err != nil {
			return nil, err
		}
		defer done.Close()
		o.Ahead = ahead
		return analyzer.Follow(src, o, watcher(ahead))
	}
	return analyzer.Follow(src, o, watcher(src))
}

// stacks reads the trace for its call stacks.
func (r *Run) stacks() (set *analyzer.StackSet, err error) {
	src, closer, err := r.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	o := r.Count
	if o.Focus != nil || o.Ignore != nil || o.At.NeedsAhead() {
		ahead, done, err := r.Open()
		if err != nil {
			return nil, err
		}
		defer done.Close()
		o.Ahead = ahead
	}
	return analyzer.Stacks(src, o, r.Level)
}

// narrowed reports whether filters leave out some of a device's memory, so that the devices' and allocators' own counts
// do not apply to the rest.
func (r *Run) narrowed() bool {
	return r.Count.Tag != "" || r.Count.Library != "" || r.Count.Focus != nil || r.Count.Ignore != nil
}

// amount formats the memory at a moment.
func amount(bytes uint64, moment string, time int64) string {
	if moment == "" {
		moment = "peak"
	}
	if moment == "peak" {
		moment = "the peak"
	}
	words := fmt.Sprintf("%s at %s", layout.Bytes(bytes), moment)
	if time > 0 {
		words += ", after " + layout.Duration(time)
	}
	return words
}

// watchNothing is an analyzer.Watcher that takes nothing in, for those that need some of its calls.
type watchNothing struct{}

func (watchNothing) Opened(uint32, *heap.Block, *trace.Event) {}
func (watchNothing) Closed(uint32, *heap.Block, *trace.Event) {}
func (watchNothing) Passed(*heap.Block)                       {}
func (watchNothing) Event(*trace.Event)                       {}
func (watchNothing) Moment() any                              { return nil }
