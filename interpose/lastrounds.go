package main

import "memtrace/trace"

// maxFinalRounds bounds how often the last round is repeated while threads still record what they were inside when the
// process began to end.
const maxFinalRounds = 8

// drainRest drains until nothing more arrives, and returns which order numbers will never come: those of calls that do
// not return before the process ends. A number that is missing was drawn by a thread that is inside a call still, or it
// was recorded before the calls in flight were read, and the next round would have brought it.
func (d *drainer) drainRest() (trace.Drawn, error) {
	for rounds := 1; ; rounds++ {
		drawn := d.spool.Drawn()
		moved, more, err := d.round(true)
		if err != nil || rounds >= maxFinalRounds || moved == 0 && !more {
			return drawn, err
		}
	}
}
