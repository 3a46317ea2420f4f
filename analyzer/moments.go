package analyzer

import (
	"memtrace/internal/device"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// moments keep the state at the moment that was asked for.
type moments struct {
	want moment.At
	kept *moment.State // nil until it came
}

// before comes ahead of every event.
func (m *moments) before(r *replayer, e *trace.Event) {
	if m.kept == nil && m.want.Before(e) {
		m.kept = r.now(m.want.Time)
	}
}

// keepIfWanted copies the totals if e is the moment that was asked for; the last one stays.
func (m *moments) keepIfWanted(r *replayer, e *trace.Event) {
	if m.want.Hits(e, r.accounts.resolver.Tables) {
		m.kept = r.now(e.Time)
	}
}

// needRows reports whether every event may be the moment, or may be the first one after it.
func (m *moments) needRows() bool {
	return m.want.Kind == moment.Time && m.kept == nil || m.want.Kind == moment.Teardown
}

// now copies the running totals.
func (r *replayer) now(time int64) *moment.State {
	m := &moment.State{Time: time, Exact: !r.losses.begun}
	for _, a := range detailedAccounts {
		d := r.accounts.details[a]
		m.Events[a] = d.Total.Events()
		m.Devices[a] = collect(d.Devices, func(v *profile.DeviceMeter) uint64 { return v.Current })
		m.Held[a] = d.Cells.Holding(nil, currentShare, currentShare)
	}
	r.copyHoldings(m, func(v *heap.Share) uint64 { return v.Current })
	m.Requested = r.accounts.requests.Now(r.accounts.details[heap.AccountFramework])
	m.Waiting = r.allocator.Now()
	if list := m.Held[heap.AccountFramework]; !r.accounts.requests.Known() {
		for i := range list {
			list[i].Unknown = list[i].Bytes
		}
	}
	if r.watcher != nil {
		m.Watched = r.watcher.Moment()
	}
	return m
}

// peakOf returns the state at the peak of the main level: the framework's if it has blocks, else the driver's.
func (r *replayer) peakOf(main heap.Account) *moment.State {
	d := r.accounts.details[main]
	epoch := d.Total.Epoch
	m := &moment.State{Time: d.Total.PeakTime, Exact: r.losses.after(main, epoch)}
	m.Devices[main] = collect(d.Devices, func(v *profile.DeviceMeter) uint64 { return v.Part.Peak(epoch) })
	atPeak := func(v *heap.Share) uint64 { return v.Peak(epoch) }
	m.Held[main] = d.Cells.Holding(nil, atPeak, atPeak)
	if main == heap.AccountFramework {
		m.Devices[heap.AccountDriver] = collect(r.accounts.details[heap.AccountDriver].Devices,
			func(v *profile.DeviceMeter) uint64 {
				return v.AtFramework.Peak(epoch)
			})
		r.copyHoldings(m, atPeak)
		m.Waiting = r.allocator.AtPeak(epoch)
		m.Requested = r.accounts.requests.AtPeak(d)
	}
	return m
}

func (r *replayer) copyHoldings(m *moment.State, value func(*heap.Share) uint64) {
	for i := range r.device.Holdings.Devices {
		d := &r.device.Holdings.Devices[i]
		m.ByLibrary = append(m.ByLibrary, collect(d.ByLibrary, func(v *device.LibraryBytes) uint64 {
			return value(&v.Share)
		}))
		m.Reported = append(m.Reported, value(&d.Reserved))
	}
}

func collect[T any](list []T, value func(*T) uint64) []uint64 {
	values := make([]uint64, len(list))
	for i := range list {
		values[i] = value(&list[i])
	}
	return values
}
