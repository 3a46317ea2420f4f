package hostile

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// place is where figures are kept: an account as reports name it and a device, -1 for accounts that reports do not
// divide by device.
type ledgerPlace struct {
	account string
	device  int
}

func (p ledgerPlace) String() string {
	if p.device < 0 {
		return p.account
	}
	return fmt.Sprintf("%s of device %d", p.account, p.device)
}

// ledgerPlaceOf leaves out devices where a report does.
func ledgerPlaceOf(account string, device int) ledgerPlace {
	if account != "driver" && account != "managed" && account != "graph" {
		device = -1
	}
	return ledgerPlace{account, device}
}

// figures are what an account comes to. All may go down while differences are formed.
type figures struct {
	Made       int64 `json:"made"`
	MadeBytes  int64 `json:"made_bytes"`
	Ended      int64 `json:"ended"`
	EndedBytes int64 `json:"ended_bytes"`
	Refused    int64 `json:"refused"`
}

func (f figures) plus(g figures, times int64) figures {
	return figures{f.Made + times*g.Made, f.MadeBytes + times*g.MadeBytes, f.Ended + times*g.Ended,
		f.EndedBytes + times*g.EndedBytes, f.Refused + times*g.Refused}
}

func (f figures) String() string {
	return fmt.Sprintf("%d blocks, %d bytes made, %d blocks, %d bytes ended, %d refused", f.Made, f.MadeBytes, f.Ended,
		f.EndedBytes, f.Refused)
}

// statement is the figures of one thread, or of a process, by place. Places without figures are left out.
type statement struct {
	at          map[ledgerPlace]figures
	failedFrees int64
}

func newStatement() statement { return statement{at: map[ledgerPlace]figures{}} }

func (s *statement) add(at ledgerPlace, f figures, times int64) {
	if sum := s.at[at].plus(f, times); sum != (figures{}) {
		s.at[at] = sum
	} else {
		delete(s.at, at)
	}
}

func (s *statement) addAll(t statement, times int64) {
	for at, f := range t.at {
		s.add(at, f, times)
	}
	s.failedFrees += times * t.failedFrees
}

// differs describes how another statement differs, "" if it does not.
func (s statement) differs(t statement) string {
	var words []string
	seen := map[ledgerPlace]bool{}
	for _, places := range []map[ledgerPlace]figures{s.at, t.at} {
		for at := range places {
			if !seen[at] && s.at[at] != t.at[at] {
				words = append(words, fmt.Sprintf("%s: %s, against %s", at, s.at[at], t.at[at]))
			}
			seen[at] = true
		}
	}
	if s.failedFrees != t.failedFrees {
		words = append(words, fmt.Sprintf("%d refused frees, against %d", s.failedFrees, t.failedFrees))
	}
	slices.Sort(words)
	return strings.Join(words, "\n")
}

// ledgerBook is the program's own account.
type ledgerBook struct {
	Process uint64
	Serial  bool
	Threads []ledgerThread
	Peaks   []struct {
		Account     string
		Device      int
		All         bool
		Least, Most int64
	}
	Calls map[string]int
}

// ledgerThread is one thread's page. One that was killed in the middle of a call also has the state if the call took
// effect.
type ledgerThread struct {
	Thread  uint64
	Calling bool
	Now     ledgerCopy
	After   ledgerCopy
}

type ledgerCopy struct {
	FailedFrees int64 `json:"failed_frees"`
	Cells       []struct {
		Account string
		Device  int
		figures
	}
}

func (c ledgerCopy) statement() statement {
	s := newStatement()
	s.failedFrees = c.FailedFrees
	for _, cell := range c.Cells {
		s.add(ledgerPlaceOf(cell.Account, cell.Device), cell.figures, 1)
	}
	return s
}

func readBook(t *testing.T, program, path string) ledgerBook {
	t.Helper()
	cmd := exec.Command(program, "show", path)
	cmd.Env = append(cmd.Environ(), "LD_LIBRARY_PATH="+nullGPU(t))
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("show %s: %v", path, err)
	}
	var b ledgerBook
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// cut reports whether a thread was killed in the middle of a call.
func (b ledgerBook) cut() bool {
	return slices.ContainsFunc(b.Threads, func(p ledgerThread) bool { return p.Calling })
}

// settle compares the pages with what a trace has of each thread and returns what they come to together. What a thread
// was about to do when it was killed may have happened or not; open holds those calls that the trace does not have.
func (b ledgerBook) settle(t *testing.T, have map[uint64]statement) (sum statement, open []statement) {
	t.Helper()
	sum = newStatement()
	wrong := 0
	for _, page := range b.Threads {
		if page.Thread == 0 {
			continue
		}
		now, seen := page.Now.statement(), have[page.Thread]
		if page.Calling {
			after := page.After.statement()
			if seen.differs(after) == "" {
				sum.addAll(after, 1)
				continue
			}
			call := newStatement()
			call.addAll(after, 1)
			call.addAll(now, -1)
			open = append(open, call)
		}
		if words := seen.differs(now); words != "" {
			if wrong++; wrong <= 5 {
				t.Errorf("thread %d, calling %v: the trace against the book:\n%s", page.Thread, page.Calling, words)
			}
		}
		sum.addAll(now, 1)
	}
	for thread, s := range have {
		if !slices.ContainsFunc(b.Threads, func(p ledgerThread) bool { return p.Thread == thread }) {
			t.Errorf("the trace has a thread %d that the book does not know: %v", thread, s.at)
		}
	}
	return sum, open
}
