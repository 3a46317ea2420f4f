package control

import (
	"errors"
	"fmt"
	"time"

	"memtrace/trace"
)

// Limits of a process's answer.
const (
	MostRows     = trace.MaxReferrerRows
	MostPatience = 30 * time.Second
	mostText     = 1 << 20 // bytes of rows
)

// Referrers is what refers to PyTorch's tensors in a process.
type Referrers struct {
	trace.Referrers
	Seq uint64 // the order number in the process's trace at which those tensors were live; 0 without a recording
}

// FindReferrers has a process look for at most so many holders; wait is how long its interpreter may be busy. Both must
// be within the limits. The answer is that of Ask.
func FindReferrers(pid, rows int, wait time.Duration) (Answer, *Referrers, error) {
	c, err := dial(pid)
	if err != nil {
		return Answer{}, nil, err
	}
	defer c.Close()
	answer, err := c.ask(fmt.Sprintf("referrers %d %d", rows, wait.Milliseconds()))
	if err != nil {
		return answer, nil, err
	}
	if answer.referrers == 0 || answer.referrers > mostText {
		return answer, nil, errSenseless
	}
	var text []byte
	for uint64(len(text)) < answer.referrers {
		part, err := c.packet()
		if err != nil {
			return answer, nil, err
		}
		text = append(text, part...)
	}
	found, err := trace.ParseReferrers(string(text))
	if err != nil || uint64(len(text)) > answer.referrers {
		return answer, nil, errSenseless
	}
	return answer, &Referrers{Referrers: *found, Seq: answer.seq}, nil
}

var errSenseless = errors.New("the process's answer makes no sense; are command and library of one version?")
