package analyzer

import (
	"fmt"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/report"
)

// Watches implements oom.Replay.
func (c *collector) Watches(device int16) bool { return c.filter.HasDevice(device) }

// DriverBytes implements oom.Replay.
func (c *collector) DriverBytes() uint64 { return c.details[heap.AccountDriver].Total.Current }

// LostRecords implements oom.Replay.
func (c *collector) LostRecords() uint64 { return c.lost }

// AtRefusal implements oom.Replay. It costs a look at all that is live, so it is done only where that may be the moment
// that was asked for.
func (c *collector) AtRefusal(time int64) any {
	if c.want.kind != momentOOM || c.moment != nil {
		return nil
	}
	return c.now(time)
}

// OOMEnded implements oom.Replay.
func (c *collector) OOMEnded(number int, outcome string, state any) {
	if m, taken := state.(*moment); taken && (c.want.oom == number || c.want.oom == 0 && c.moment == nil && outcome == report.OOMFailed) {
		c.moment = m
	}
}

// finishOOMForNow ends every OOM event as if nothing more came, and returns what takes that back: a trace that grows
// may say more.
func (c *collector) finishOOMForNow() (undo func()) {
	moment, undoEvents := c.moment, c.ooms.FinishForNow()
	return func() {
		undoEvents()
		c.moment = moment
	}
}

// noOOM says why there is no such moment.
func (c *collector) noOOM(want At) error {
	told := c.ooms.Number()
	if told == 0 {
		return fmt.Errorf("the trace has no moment %s: memory never ran out", want)
	}
	if want.oom == 0 {
		return fmt.Errorf("the trace has no moment %s: memory ran out %d times, but the program got it in the end; choose oom:1 to oom:%d", want, told, told)
	}
	return fmt.Errorf("the trace has no moment %s: memory ran out %d times, so oom:%d is the last", want, told, told)
}
