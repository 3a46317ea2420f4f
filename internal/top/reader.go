package top

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/moment"
	"memtrace/internal/spool"
	"memtrace/trace"
)

// readShare bounds the time that reading one trace takes from a core: a refresh waits for at least so many times as
// long as the last one took.
const readShare = 4

// reader follows one recorded process. Reading runs on a goroutine of its own, one at a time, so that a long trace
// delays nothing but its own figures.
type reader struct {
	host     *Host
	found    found
	by       string // "": what a report would choose
	detailed bool   // requests ownership.parts

	mu       sync.Mutex
	done     chan struct{} // closed when the current reading ends; nil without one
	closed   bool
	next     time.Time // not before
	source   *spool.Follower
	profile  *analyzer.Profile
	question analyzer.Question
	kept     bookmark
	owners   *ownership
	problem  string
	fraction float64 // of the first reading
}

func newReader(host *Host, found found, by string, detailed bool) *reader {
	return &reader{host: host, found: found, by: by, detailed: detailed,
		kept: newBookmark(host.Bookmarks, found.tracePath, detailed)}
}

// advance starts to read what is new, unless the last reading goes on or was so long that it is too early for another.
// The channel is closed when nothing is being read; nil means that nothing is.
func (r *reader) advance() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.done == nil && time.Now().Before(r.next) || r.found.problem != "" {
		return nil
	}
	if r.done == nil {
		r.done = make(chan struct{})
		go r.read()
	}
	return r.done
}

// latest returns a channel that is closed when a reading that began after the call has ended, however soon it comes
// after the last one.
func (r *reader) latest() <-chan struct{} {
	r.mu.Lock()
	earlier := r.done
	r.mu.Unlock()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		if earlier != nil {
			<-earlier
		}
		r.mu.Lock()
		r.next = time.Time{}
		r.mu.Unlock()
		if done := r.advance(); done != nil {
			<-done
		}
	}()
	return finished
}

// read does one refresh. A fault in reading, such as a spool that is truncated while it is mapped, is reported like any
// error: the view goes on, and its terminal is in a state in which a crash could not be read.
func (r *reader) read() {
	debug.SetPanicOnFault(true)
	begin := time.Now()
	var owners *ownership
	var err error
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("internal fault: %v", fault)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		close(r.done)
		r.done = nil
		// the first reading catches up with the whole past, which predicts nothing about the next
		if end := time.Now(); r.owners != nil {
			r.next = end.Add(readShare * end.Sub(begin))
		}
		if err != nil {
			r.problem = err.Error()
		} else {
			r.owners, r.problem = owners, ""
		}
		if r.closed {
			r.release()
		}
	}()
	owners, err = r.refresh(begin)
}

func (r *reader) refresh(begin time.Time) (*ownership, error) {
	if r.profile != nil && r.source.Replaced() {
		r.release()
	}
	summary, err := r.current()
	if err != nil {
		return nil, err
	}
	r.kept.save(r.profile, r.source.Health().Events)
	owners := ownersOf(summary)
	owners.ReadAt = begin
	if r.detailed {
		owners.parts, owners.By = r.partsOf(summary)
	}
	if offset, reason, damaged := r.source.Damage(); damaged {
		owners.Problem = fmt.Sprintf("the trace is damaged at offset %d (%s): the figures are as of there",
			offset, reason)
	}
	return owners, nil
}

// current brings the profile up to date and answers the question. The first time, it goes on from where another view
// left off, if one did.
func (r *reader) current() (*report.Summary, error) {
	if r.profile == nil {
		if kept := r.kept.load(); kept != nil {
			summary, err := r.goOn(kept)
			if !errors.Is(err, analyzer.ErrBookmark) {
				return summary, err
			}
			r.release()
		}
		if err := r.begin(); err != nil {
			return nil, err
		}
	}
	return r.summary()
}

// goOn begins at a bookmark. Any fault there is one of the bookmark, as far as is known.
func (r *reader) goOn(kept *trace.Keyframe) (s *report.Summary, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("%w: internal fault: %v", analyzer.ErrBookmark, fault)
		}
	}()
	if err := r.begin(); err != nil {
		return nil, err
	}
	if err := r.profile.GoOn(kept); err != nil {
		return nil, err
	}
	return r.summary()
}

func (r *reader) begin() error {
	opts, err := r.options()
	if err != nil {
		return err
	}
	opts.Progress = r.progress
	source, err := spool.Follow(r.found.tracePath, r.found.spoolPath)
	if err != nil {
		return r.host.OpenError(r.found.name(), err)
	}
	profile, err := analyzer.NewProfile(source, opts)
	if err != nil {
		_ = source.Close() // read only
		return err
	}
	r.source, r.profile, r.question = source, profile, opts.Question
	return nil
}

// summary replays what is new, and returns the present state.
func (r *reader) summary() (*report.Summary, error) {
	if err := r.source.Refresh(); err != nil {
		return nil, err
	}
	if err := r.profile.Update(); err != nil {
		return nil, fmt.Errorf("%s: %w", r.found.name(), err)
	}
	question := r.question
	if !r.detailed {
		r.mu.Lock()
		divide(&question, r.by)
		r.mu.Unlock()
	}
	s, err := r.profile.Report(question)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.found.name(), err)
	}
	return s, nil
}

// options are what every reading of the trace requests.
func (r *reader) options() (analyzer.Options, error) {
	at, err := moment.Parse("exit")
	if err != nil {
		return analyzer.Options{}, err
	}
	opts := analyzer.Options{Question: analyzer.Question{At: at}, Symbols: r.host.Symbols, Own: r.host.Own}
	if r.detailed {
		return opts, requestParts(&opts, r.by)
	}
	return opts, addCategories(&opts)
}

// divide requests the owners by a grouping.
func divide(q *analyzer.Question, by string) {
	q.Groupings, q.Sites = nil, true // lines of the program are more specific than libraries
	if by != "" {
		q.Groupings, q.Sites = []string{by}, false
	}
}

// divideBy chooses what owners are grouped by from the next reading on, which is due at once.
func (r *reader) divideBy(by string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by != by {
		r.by, r.next = by, time.Time{}
	}
}

func (r *reader) progress(read int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if size := r.source.Size(); size > 0 {
		r.fraction = min(1, float64(read)/float64(size))
	}
}

// state returns what was last read, why that is nothing, and while the first reading lasts, how far it is.
func (r *reader) state() (owners *ownership, problem string, fraction *float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found.problem != "" {
		return nil, r.found.problem, nil
	}
	if r.owners == nil && r.problem == "" {
		part := r.fraction
		return nil, "", &part
	}
	return r.owners, r.problem, nil
}

// close closes the files; a reading in progress does so when it ends.
func (r *reader) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.done == nil {
		r.release()
	}
}

func (r *reader) release() {
	if r.profile != nil {
		r.profile.Close()
	}
	if r.source != nil {
		_ = r.source.Close() // read only
	}
	r.source, r.profile = nil, nil
}
