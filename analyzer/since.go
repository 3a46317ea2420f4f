package analyzer

import (
	"fmt"

	"memtrace/trace"
)

// checkSince refuses moments at which peaks cannot begin anew: those that are known afterwards only.
func checkSince(at At) error {
	switch at.kind {
	case momentNone, momentMark, momentStep, momentTime:
		return nil
	}
	return fmt.Errorf("--since %s: name a moment such as mark:NAME, step:N or a time since the start", at.text)
}

// beginIfSince begins all peaks anew where e is, or comes right behind, the first event of Options.Since.
func (c *collector) beginIfSince(e *trace.Event) {
	if c.since.before(e) || c.since.hits(e, c.resolver.Tables) {
		c.since = At{}
		c.restart(e.Time)
	}
}

// restart forgets what was highest: what is live now is the highest from here on. Shares of a maximum, being asked for
// the next one, give what they are now: see share.peak.
func (c *collector) restart(time int64) {
	for a := range c.totals {
		c.totals[a].Restart(time)
	}
	for _, d := range c.details {
		if d == nil {
			continue
		}
		d.Total.Restart(time)
		d.PeakAllocs = d.Total.Allocs
		for i := range d.Devices {
			d.Devices[i].Restart(time)
		}
	}
	for i := range c.device.Holdings.Devices {
		d := &c.device.Holdings.Devices[i]
		d.Last.AllocatedBytesPeak, d.Last.ReservedBytesPeak = d.Last.AllocatedBytes, d.Last.ReservedBytes
		for n := range d.ByLibrary {
			d.ByLibrary[n].Peak = d.ByLibrary[n].Current
		}
	}
}
