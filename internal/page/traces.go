package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"memtrace/analyzer/report"
)

const (
	// readShare bounds the time that reading a trace which grows takes from a core: it is read again only after so many
	// times as long as that took.
	readShare = 4
	leastWait = time.Second
	// maxRead is of how many traces what was read is kept.
	maxRead = 4
)

// Entry is a trace that can be shown.
type Entry struct {
	Path    string
	Command string // of the program; "" unknown
	State   string // such as "running"
	Bytes   int64
	Changed time.Time
	Problem string // why it cannot be read, "" if it can

	Version string // changes when the files of the trace do
}

// Traces are what a server shows. The functions may be called by several goroutines.
type Traces struct {
	Title  string // of the index
	Writer string // the program and its version
	Blocks int    // that a page holds; questions about those of larger traces are answered

	// List finds the traces.
	List func() ([]Entry, error)
	// Version changes if a trace's files do.
	Version func(path string) string
	// Read summarises a trace, with the history of its blocks.
	Read func(path string) (*report.Summary, error)

	mu    sync.Mutex
	known map[string]*shown // by id
	order []string          // ids of those that were read, the latest one last
}

// shown is a trace whose page was requested.
type shown struct {
	path    string
	first   sync.Mutex // held while it is read for the first time
	mu      sync.Mutex
	reading bool      // again, beside the answers
	next    time.Time // it is not read again before
	files   string    // as of Version, when it was read
	problem string    // why the latest reading failed
	now     *moment   // nil: it was not read
	before  *moment   // the one before, which pages may still request; nil without one
}

// moment is a trace as it was when it was read. It does not change.
type moment struct {
	number  int // from 1
	live    bool
	events  uint64
	ended   string
	html    []byte
	answers *Answers // nil: all blocks are on the page
}

// PageID is the name of a trace in an address: its path cannot be derived from it, nor any path made of it.
func PageID(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:10])
}

// PagePath is the address of a trace's page, below the server's.
func PagePath(token, path string) string { return "/" + token + "/t/" + PageID(path) }

// find returns a trace of the list by its id. Files that came since the last look are found.
func (t *Traces) find(id string) (*shown, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.known[id]; s != nil {
		return s, nil
	}
	list, err := t.List()
	if err != nil {
		return nil, err
	}
	for _, entry := range list {
		if PageID(entry.Path) == id {
			if t.known == nil {
				t.known = make(map[string]*shown)
			}
			t.known[id] = &shown{path: entry.Path}
			return t.known[id], nil
		}
	}
	return nil, errNoPage
}

// latest returns a trace as it was read last. The first reading is waited for; where there may be more by now, another
// one begins, which the next question finds.
func (t *Traces) latest(id string) (m *moment, problem string, err error) {
	s, err := t.find(id)
	if err != nil {
		return nil, "", err
	}
	s.first.Lock()
	defer s.first.Unlock()
	s.mu.Lock()
	read := s.now != nil
	due := read && !s.reading && !time.Now().Before(s.next) && (s.now.live || t.Version(s.path) != s.files)
	s.reading = s.reading || due
	s.mu.Unlock()
	if due {
		go func() {
			t.refresh(s)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reading = false
		}()
	}
	if !read {
		t.refresh(s)
		t.keep(id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return nil, "", errors.New(s.problem)
	}
	return s.now, s.problem, nil
}

// refresh reads a trace.
func (t *Traces) refresh(s *shown) {
	s.mu.Lock()
	before := s.now
	s.mu.Unlock()
	begin, files := time.Now(), t.Version(s.path)
	now, err := t.read(s.path, before)
	end := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files, s.next, s.problem = files, end.Add(max(leastWait, readShare*end.Sub(begin))), ""
	if err != nil {
		s.problem = err.Error()
		return
	}
	if now != s.now {
		s.now, s.before = now, s.now
	}
}

// of returns the state of a number, if that is still known.
func (s *shown) of(number string) *moment {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range []*moment{s.now, s.before} {
		if m != nil && strconv.Itoa(m.number) == number {
			return m
		}
	}
	return nil
}

// read makes the page of a trace's present state, unless that is the one before. A fault in reading, such as a spool
// that is truncated while it is mapped, is reported like any error: other requests go on.
func (t *Traces) read(path string, before *moment) (m *moment, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("internal fault: %v", fault)
		}
	}()
	summary, err := t.Read(path)
	if err != nil {
		return nil, err
	}
	m = &moment{number: 1, live: summary.Process.Ended == report.EndedRunning, events: summary.Health.Events,
		ended: summary.Process.Ended}
	if before != nil {
		if m.number = before.number + 1; m.events == before.events && m.ended == before.ended {
			return before, nil
		}
	}
	o := Options{Path: filepath.Base(path), Writer: t.Writer, Served: strconv.Itoa(m.number)}
	if o.Remote = summary.History != nil && len(summary.History.Blocks) > t.Blocks; o.Remote {
		if m.answers, err = NewAnswers(summary); err != nil {
			return nil, err
		}
	}
	var html bytes.Buffer
	if err := Write(&html, summary, o); err != nil {
		return nil, err
	}
	m.html = html.Bytes()
	return m, nil
}

// keep notes that a trace was read, and forgets what was read of others, those of long ago first.
func (t *Traces) keep(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range t.order {
		if other == id {
			t.order = append(t.order[:i], t.order[i+1:]...)
			break
		}
	}
	if t.order = append(t.order, id); len(t.order) > maxRead {
		delete(t.known, t.order[0])
		t.order = t.order[1:]
	}
}

func (t *Traces) page(id string) ([]byte, error) {
	m, _, err := t.latest(id)
	if err != nil {
		return nil, err
	}
	return m.html, nil
}

// state is what refresh.js requests.
type state struct {
	Version string `json:"version"`
	Live    bool   `json:"live"`
	Problem string `json:"problem"` // why there is nothing newer
}

func (t *Traces) state(id string) (state, error) {
	m, problem, err := t.latest(id)
	if err != nil {
		return state{}, err
	}
	return state{strconv.Itoa(m.number), m.live, problem}, nil
}

// errNewer is the error of a question about a state that is not known any more: in others, events and owners may have
// other numbers.
var errNewer = errors.New("there is a newer state of the trace: load the page again")

// answer answers a question about the blocks of one of the states that were read last.
func (t *Traces) answer(id, question string, values url.Values) (any, error) {
	if _, _, err := t.latest(id); err != nil { // reads a trace that was forgotten
		return nil, err
	}
	s, err := t.find(id)
	if err != nil {
		return nil, err
	}
	m := s.of(values.Get("version"))
	switch {
	case m == nil:
		return nil, errNewer
	case m.answers == nil:
		return nil, errNoPage
	}
	answer, err := m.answers.Answer(question, values)
	if err != nil && !errors.Is(err, ErrQuestion) {
		err = &badQuestion{err}
	}
	return answer, err
}

// index lists the traces.
func (t *Traces) index(token string) ([]byte, error) {
	list, err := t.List()
	if err != nil {
		return nil, err
	}
	var rows []IndexRow
	for _, entry := range list {
		row := IndexRow{Name: filepath.Base(entry.Path), Command: entry.Command, State: entry.State,
			Bytes: entry.Bytes, Changed: entry.Changed, Problem: entry.Problem}
		if entry.Problem == "" {
			row.Address = PagePath(token, entry.Path)
		}
		rows = append(rows, row)
	}
	var html bytes.Buffer
	if err := WriteIndex(&html, t.Title, t.Writer, rows); err != nil {
		return nil, fmt.Errorf("list traces: %w", err)
	}
	return html.Bytes(), nil
}
