package moment

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"memtrace/trace"
)

// Kind is the way in which a moment is named.
type Kind uint8

// Kinds of moments.
const (
	None Kind = iota
	Peak
	Exit
	Mark
	Step
	Time
	OOM
	Teardown
	Iteration
)

// At names a moment of the run. The zero value names none.
type At struct {
	Kind Kind
	Name string // of a mark
	Step uint64 // or the number of an iteration
	Time int64  // nanoseconds since the start
	OOM  int    // number of the OOM event, from 1; 0: the first that failed
	Seq  uint64 // of Teardown, and of OOM in a window: the order number of the event before; 0 until it is known
	text string
}

// Parse parses the value of --at: "peak", "exit", "mark:NAME" (the last mark of that name), "step:N" (the beginning of
// step N), "iteration:N" (the end of iteration N, see AtEnd), "oom" (the first time that memory ran out and the
// allocation failed) or "oom:N" (the Nth of the list of OOM events), "teardown" (right after the last allocation of the
// level that reports put first: only frees follow), or a duration since the start of the trace such as "1.5s" or
// "200ms".
func Parse(text string) (At, error) {
	at := At{text: text}
	if name, ok := strings.CutPrefix(text, "mark:"); ok {
		if name == "" {
			return At{}, fmt.Errorf("mark: needs the mark's name, as in mark:loaded")
		}
		at.Kind, at.Name = Mark, name
		return at, nil
	}
	if number, ok := strings.CutPrefix(text, "step:"); ok {
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return At{}, fmt.Errorf("step: needs the step's number, as in step:10; got %q", number)
		}
		at.Kind, at.Step = Step, n
		return at, nil
	}
	if number, ok := strings.CutPrefix(text, "oom:"); ok {
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil || n == 0 {
			return At{}, fmt.Errorf("oom: needs the event's number from 1, as in oom:1; got %q", number)
		}
		at.Kind, at.OOM = OOM, int(n)
		return at, nil
	}
	if number, ok := strings.CutPrefix(text, "iteration:"); ok {
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || n == 0 {
			return At{}, fmt.Errorf("iteration: needs the iteration's number, as in iteration:3; got %q", number)
		}
		at.Kind, at.Step = Iteration, n
		return at, nil
	}
	switch text {
	case "":
		return At{}, nil
	case "oom":
		at.Kind = OOM
		return at, nil
	case "peak":
		at.Kind = Peak
		return at, nil
	case "exit":
		at.Kind = Exit
		return at, nil
	case "teardown":
		at.Kind = Teardown
		return at, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return At{}, fmt.Errorf("no moment %q; use peak, teardown, exit, oom, oom:N, mark:NAME, step:N, "+
			"iteration:N or a time since the start such as 1.5s", text)
	}
	at.Kind, at.Time = Time, d.Nanoseconds()
	return at, nil
}

// AtEnd returns the moment of an iteration, of which only its number is known, as the time at which it ended.
func (a At) AtEnd(time int64) At {
	a.Kind, a.Time = Time, time
	return a
}

// String returns what Parse read.
func (a At) String() string { return a.text }

// IsZero reports whether no moment was requested.
func (a At) IsZero() bool { return a.Kind == None }

// NeedsAhead reports whether the moment can only be found by reading the trace once more, ahead.
func (a At) NeedsAhead() bool { return a.Kind == Teardown }

// FoundAfterwards reports whether the state at the moment is known after the whole replay, without being kept during
// it.
func (a At) FoundAfterwards() bool {
	return a.Kind == None || a.Kind == Peak || a.Kind == Exit
}

// Before reports whether the moment is between e and the previous event.
func (a At) Before(e *trace.Event) bool {
	return a.Kind == Time && e.Time > a.Time && e.Flags&trace.FlagLate == 0
}

// Hits reports whether e is the event that the moment names.
func (a At) Hits(e *trace.Event, tables *trace.Tables) bool {
	switch e.Kind {
	case trace.EventMark:
		return a.Kind == Mark && tables.String(e.Name) == a.Name
	case trace.EventStep:
		return a.Kind == Step && e.Count == a.Step
	case trace.EventAlloc:
		return a.Kind == Teardown && e.Seq == a.Seq
	}
	return false
}

// BehindEvent reports whether the moment is right after e.
func (a *At) BehindEvent(e *trace.Event) bool {
	return a.Seq != 0 && e.Seq == a.Seq && (a.Kind == Teardown || a.Kind == OOM) && e.Flags&trace.FlagLate == 0
}

// AtOrBefore reports whether the moment is that of e, or is between e and the previous event.
func (a *At) AtOrBefore(e *trace.Event, tables *trace.Tables) bool {
	return a.Before(e) || (e.Kind == trace.EventMark || e.Kind == trace.EventStep) && a.Hits(e, tables)
}
