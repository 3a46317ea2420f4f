package analyzer

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"memtrace/analyzer/device"
	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
	"memtrace/analyzer/training"
	"memtrace/trace"
)

type momentKind uint8

const (
	momentNone momentKind = iota
	momentPeak
	momentExit
	momentMark
	momentStep
	momentTime
	momentOOM
	momentTeardown
)

// At names a moment of the run. The zero value names none.
type At struct {
	kind momentKind
	name string
	step uint64
	time int64
	oom  int    // number of the OOM event, from 1; 0: the first that failed
	seq  uint64 // of momentTeardown, and of momentOOM in a window: the order number of the event before
	text string
}

// ParseAt reads what stands behind --at: "peak", "exit", "mark:NAME" (the last mark of that name), "step:N" (the
// beginning of step N), "oom" (the first time that memory ran out and the program did not get it) or "oom:N" (the Nth
// of the list of OOM events), "teardown" (right behind the last allocation of the level that reports put first: what
// comes then only gives back), or a duration since the start of the trace such as "1.5s" or "200ms".
func ParseAt(text string) (At, error) {
	at := At{text: text}
	if name, ok := strings.CutPrefix(text, "mark:"); ok {
		if name == "" {
			return At{}, fmt.Errorf("mark: needs the mark's name, as in mark:loaded")
		}
		at.kind, at.name = momentMark, name
		return at, nil
	}
	if number, ok := strings.CutPrefix(text, "step:"); ok {
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return At{}, fmt.Errorf("step: needs the step's number, as in step:10; got %q", number)
		}
		at.kind, at.step = momentStep, n
		return at, nil
	}
	if number, ok := strings.CutPrefix(text, "oom:"); ok {
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil || n == 0 {
			return At{}, fmt.Errorf("oom: needs the event's number from 1, as in oom:1; got %q", number)
		}
		at.kind, at.oom = momentOOM, int(n)
		return at, nil
	}
	switch text {
	case "":
		return At{}, nil
	case "oom":
		at.kind = momentOOM
		return at, nil
	case "peak":
		at.kind = momentPeak
		return at, nil
	case "exit":
		at.kind = momentExit
		return at, nil
	case "teardown":
		at.kind = momentTeardown
		return at, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return At{}, fmt.Errorf("no moment %q; use peak, teardown, exit, oom, oom:N, mark:NAME, step:N or a time since the start such as 1.5s", text)
	}
	at.kind, at.time = momentTime, d.Nanoseconds()
	return at, nil
}

// String returns what ParseAt read.
func (a At) String() string { return a.text }

// IsZero reports whether no moment was asked for.
func (a At) IsZero() bool { return a.kind == momentNone }

// NeedsAhead reports whether the moment can only be found by Options.Ahead.
func (a At) NeedsAhead() bool { return a.kind == momentTeardown }

// foundAfterwards reports whether the state at the moment can be told once everything was replayed, without having been
// kept on the way.
func (a At) foundAfterwards() bool {
	return a.kind == momentNone || a.kind == momentPeak || a.kind == momentExit
}

// checkAhead refuses moments that only Options.Ahead could find, where there is none.
func (o *Options) checkAhead() error {
	for i, at := range []At{o.At, o.From, o.To} {
		if (at.NeedsAhead() || i > 0 && at.kind == momentOOM) && o.Ahead == nil {
			return fmt.Errorf("the moment %s needs the trace once more to be read ahead", at)
		}
	}
	return nil
}

// NeedsAhead reports whether something that was asked for is told by what stands behind it in the trace.
func (o *Options) NeedsAhead() bool {
	return o.Focus != nil || o.Ignore != nil || o.Training || o.At.NeedsAhead() || !o.To.IsZero() || o.From.NeedsAhead() || o.From.kind == momentOOM
}

// behind keeps what the first reading of a trace found out about the moment.
func (a *At) behind(p *training.Lookahead) {
	if a.seq = p.LastAlloc[heap.AccountDriver]; p.Framework {
		a.seq = p.LastAlloc[heap.AccountFramework]
	}
}

// before reports whether the moment lies between e and the events before it.
func (a At) before(e *trace.Event) bool {
	return a.kind == momentTime && e.Time > a.time && e.Flags&trace.FlagLate == 0
}

// hits reports whether e is the event that the moment names.
func (a At) hits(e *trace.Event, tables *trace.Tables) bool {
	switch e.Kind {
	case trace.EventMark:
		return a.kind == momentMark && tables.String(e.Name) == a.name
	case trace.EventStep:
		return a.kind == momentStep && e.Count == a.step
	case trace.EventAlloc:
		return a.kind == momentTeardown && e.Seq == a.seq
	}
	return false
}

// moment is a copy of the running totals, or of what they were at a peak. Slices by device slot; nil where a figure is
// not known.
type moment struct {
	time      int64
	allocs    [heap.AccountCount]uint64                 // allocations until then
	devices   [heap.AccountCount][]uint64               // driver and framework: live bytes by device slot
	held      [heap.AccountCount][]profile.Held         // driver and framework: live bytes by origin
	places    [heap.AccountCount]map[profile.Origin]int // in held; nil before the first move
	byLibrary [][]uint64                                // driver bytes by device slot and library, whatever the filters are
	reported  []uint64                                  // the framework's reserved counter by device slot
	requested []*report.Requested                       // of the framework's blocks on all devices, then by device slot; nil where it is not known
	waiting   []uint64                                  // bytes of the framework's blocks that wait for other streams, by device slot
	exact     bool                                      // it lies before the first lost record
	watched   any                                       // the watcher's own
}

// on is the part of a moment that one device has of it.
func (m *moment) on(slot int) *moment {
	part := &moment{time: m.time, exact: m.exact}
	only := func(bytes []uint64) []uint64 {
		list := make([]uint64, len(bytes))
		if slot < len(bytes) {
			list[slot] = bytes[slot]
		}
		return list
	}
	for a := range m.held {
		part.devices[a] = only(m.devices[a])
		for i := range m.held[a] {
			if h := &m.held[a][i]; profile.DeviceSlot(h.Device) == slot {
				part.held[a] = append(part.held[a], *h)
			}
		}
	}
	part.reported, part.waiting = only(m.reported), only(m.waiting)
	part.byLibrary = make([][]uint64, len(m.byLibrary))
	if slot < len(m.byLibrary) {
		part.byLibrary[slot] = m.byLibrary[slot]
	}
	return part
}

// live returns the live bytes of an account on all devices.
func (m *moment) live(a heap.Account) (sum uint64) {
	for _, bytes := range m.devices[a] {
		sum += bytes
	}
	return sum
}

// now copies the running totals.
func (c *collector) now(time int64) *moment {
	m := &moment{time: time, exact: !c.losses.begun}
	for a, d := range c.details {
		if d == nil {
			continue
		}
		m.allocs[a] = d.Total.Allocs
		m.devices[a] = collect(d.Devices, func(v *profile.DeviceMeter) uint64 { return v.Current })
		m.held[a] = d.Cells.Holding(nil, currentShare, currentShare)
	}
	c.copyHoldings(m, func(v *meter.Share) uint64 { return v.Current })
	m.requested = c.requests.Now(c.details[heap.AccountFramework])
	m.waiting = c.allocator.Now()
	if list := m.held[heap.AccountFramework]; !c.requests.Known() {
		for i := range list {
			list[i].Unknown = list[i].Bytes
		}
	}
	if c.watcher != nil {
		m.watched = c.watcher.Moment()
	}
	return m
}

// peakOf returns the state at the peak of the main level: the framework's if it has blocks, else the driver's.
func (c *collector) peakOf(main heap.Account) *moment {
	d := c.details[main]
	epoch := d.Total.Epoch
	m := &moment{time: d.Total.PeakTime, exact: c.losses.after(main, epoch)}
	m.devices[main] = collect(d.Devices, func(v *profile.DeviceMeter) uint64 { return v.Part.Peak(epoch) })
	atPeak := func(v *meter.Share) uint64 { return v.Peak(epoch) }
	m.held[main] = d.Cells.Holding(nil, atPeak, atPeak)
	if main == heap.AccountFramework {
		m.devices[heap.AccountDriver] = collect(c.details[heap.AccountDriver].Devices, func(v *profile.DeviceMeter) uint64 { return v.AtFramework.Peak(epoch) })
		c.copyHoldings(m, atPeak)
		m.waiting = c.allocator.AtPeak(epoch)
	}
	return m
}

func (c *collector) copyHoldings(m *moment, value func(*meter.Share) uint64) {
	for i := range c.device.Holdings.Devices {
		d := &c.device.Holdings.Devices[i]
		m.byLibrary = append(m.byLibrary, collect(d.ByLibrary, func(v *device.LibraryBytes) uint64 { return value(&v.Share) }))
		m.reported = append(m.reported, value(&d.Reserved))
	}
}

func collect[T any](list []T, value func(*T) uint64) []uint64 {
	values := make([]uint64, len(list))
	for i := range list {
		values[i] = value(&list[i])
	}
	return values
}

// reservedOn returns what the framework's allocator held on a device.
func (m *moment) reservedOn(slot int, h *device.Holdings) uint64 {
	switch {
	case slot >= len(m.reported):
		return 0
	case !h.FromDriver():
		return m.reported[slot]
	case int(h.Library) < len(m.byLibrary[slot]):
		return m.byLibrary[slot][h.Library]
	}
	return 0
}
