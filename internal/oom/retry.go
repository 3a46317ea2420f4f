package oom

import (
	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/trace"
)

const (
	// maxRetries bounds the list of what came after memory had run out.
	maxRetries = 100
	// retryEvents bounds how many allocations are looked at for an attempt that succeeds.
	retryEvents = 4 << 20
	// calmSteps is how many steps must end for what fails then to be another matter.
	calmSteps = 8
)

// retrying is what the tracker knows of attempts that may still succeed: the last ones of OOM.Retries. It costs nothing
// while there are none.
type retrying struct {
	waiting bool
	pystack trace.StackID  // of the last failure
	thread  trace.ThreadID // of that, 0 if it is not known
	looked  int            // allocations since
	begun   int            // steps of the program since
	ended   int            // steps that ended since
	first   uint64         // order number of the first failure
	last    uint64         // of the last one
}

// failedAgain takes in that a framework's allocator gave up, and what its blocks consisted of.
func (t *Tracker) failedAgain(e *trace.Event, c *report.OOMComposition) {
	last := len(t.Retries) - 1
	if last < 0 || !t.retrying.waiting || t.Retries[last].Device != e.Device {
		t.settle()
		if len(t.Retries) == maxRetries {
			return
		}
		t.Retries = append(t.Retries, report.OOMRetries{Device: e.Device, FirstTimeNS: e.Time,
			FirstRequestedBytes: e.Size})
		last++
	}
	v, first := &t.Retries[last], t.retrying.first
	if v.FailedCount == 0 {
		first = e.Seq
	}
	*v = report.OOMRetries{Device: v.Device, FirstTimeNS: v.FirstTimeNS, FirstRequestedBytes: v.FirstRequestedBytes,
		FailedCount: v.FailedCount + 1, LastTimeNS: e.Time, RequestedBytes: e.Size,
		LeftTimeNS: v.LeftTimeNS, LeftBytes: v.LeftBytes, LiveBytes: v.LiveBytes}
	if c != nil && c.LeftBytes > v.LeftBytes {
		v.LeftTimeNS, v.LeftBytes, v.LiveBytes = e.Time, c.LeftBytes, c.Bytes()
	}
	t.retrying = retrying{waiting: true, pystack: e.PyStack, thread: e.Thread, first: first, last: e.Seq}
}

// retried looks whether an attempt succeeds.
func (t *Tracker) retried(e *trace.Event) {
	if len(t.Retries) == 0 { // a window began behind the failure
		t.retrying.waiting = false
		return
	}
	v := &t.Retries[len(t.Retries)-1]
	switch {
	case e.Kind == trace.EventStep:
		// The next one may begin because the one that failed was given up, unless it came further than before.
		if t.retrying.begun++; t.retrying.begun > 1 || v.GrantedTimeNS != 0 {
			t.stepEnded(v, e)
		}
	case e.Kind == trace.EventName && e.Category == trace.CategoryStep:
		t.stepEnded(v, e)
	case e.Kind == trace.EventAlloc && e.Status == 0 && e.Level == cuda.LevelFramework && e.Device == v.Device:
		if t.retrying.looked++; t.retrying.looked > retryEvents {
			t.settle()
			return
		}
		if v.AsMuchTimeNS == 0 && e.Size >= v.RequestedBytes {
			v.AsMuchTimeNS, v.AsMuchBytes = e.Time, e.Size
		}
		if v.GrantedTimeNS == 0 && e.PyStack != 0 && e.PyStack == t.retrying.pystack {
			v.GrantedTimeNS, v.GrantedBytes = e.Time, e.Size
		}
	}
}

// stepEnded takes in a step that ended. One does not yet tell that an attempt came through: the first step of a
// training has no state of an optimizer beside it. A thread that failed is not retried by the steps of others, but
// those of the backward pass, which have no Python stack, belong to any, and so does what is granted to the same call.
func (t *Tracker) stepEnded(v *report.OOMRetries, e *trace.Event) {
	own := e.Thread == t.retrying.thread || t.retrying.thread == 0 || t.retrying.pystack == 0
	if v.StepTimeNS == 0 && (own || v.GrantedTimeNS != 0) {
		v.StepTimeNS = e.Time
	}
	if t.retrying.ended++; t.retrying.ended == calmSteps {
		t.settle()
	}
}

// settle ends the waiting for an attempt that succeeds.
func (t *Tracker) settle() {
	if !t.retrying.waiting {
		return
	}
	t.retrying.waiting = false
	if t.Settled != nil && len(t.Retries) > 0 {
		t.Settled(t.Retries[len(t.Retries)-1])
	}
}
