// Package contradiction looks for what cannot be in a summary, whatever trace it was made from. Only tests use
// it.
package contradiction

import (
	"fmt"
	"reflect"
	"strings"

	"memtrace/analyzer/report"
)

// most is more than any sum of sizes that the analyzer accepts; what is higher was a difference below zero.
const most = 1 << 62

// checker collects what is wrong in a summary.
type checker struct {
	faults []string
	upper  bool // nothing can have been more than was recorded
}

func (c *checker) require(ok bool, format string, args ...any) {
	if !ok {
		c.faults = append(c.faults, fmt.Sprintf(format, args...))
	}
}

// In lists where a summary contradicts itself, whatever trace it was made from: rows that do not add up to their
// total, more live than there ever was, totals that wrapped around.
func In(s *report.Summary) []string {
	c := checker{upper: s.Bounds == nil || s.Bounds.RecordedIsUpper}
	c.level("driver", s.Driver)
	c.level("framework", s.Framework)
	for name, l := range s.Other {
		c.level(name, l)
	}
	c.devices("driver", s.Driver, s.Devices, func(d *report.Device) report.Level { return d.Driver })
	c.devices("framework", s.Framework, s.Devices, func(d *report.Device) report.Level { return d.Framework })
	levels := map[string]report.Level{"driver": s.Driver, "framework": s.Framework}
	for i := range s.Groups {
		c.group(&s.Groups[i], levels[s.Groups[i].Level])
	}
	for i := range s.Ledgers {
		c.ledger("ledger", &s.Ledgers[i])
	}
	for i := range s.OOM.Events {
		for j := range s.OOM.Events[i].Ledgers {
			c.ledger("out of memory", &s.OOM.Events[i].Ledgers[j])
		}
	}
	for name, l := range s.Lifetimes {
		c.lifetimes(name, l, levels[name])
	}
	for _, m := range s.Marks {
		c.require(m.DriverBytes <= s.Driver.PeakBytes && m.FrameworkBytes <= s.Framework.PeakBytes,
			"mark %q: %d and %d bytes, more than the peaks", m.Name, m.DriverBytes, m.FrameworkBytes)
	}
	for kind, n := range s.Objects {
		c.require(n.LiveCount <= n.CreatedCount, "%s: %+v", kind, n)
	}
	c.sites(s.Sites)
	c.categories(s.Categories)
	c.deviceLedgers(s.DeviceLedger)
	c.moment(s)
	c.training(s.Training)
	c.wrapped("", reflect.ValueOf(s).Elem())
	return c.faults
}

func (c *checker) level(name string, l report.Level) {
	c.require(l.LiveBytes <= l.PeakBytes && l.PeakBytes <= l.AllocBytes,
		"%s: live, peak and all that was allocated do not follow each other: %+v", name, l)
	c.require(l.PeakBytesLower == nil || !c.upper || *l.PeakBytesLower <= l.PeakBytes &&
		*l.LiveBytesLower <= l.LiveBytes, "%s: lower bounds above what was recorded: %+v", name, l)
	c.require(l.FreeCount <= l.AllocCount, "%s: more frees than allocations: %+v", name, l)
	c.require(l.LiveBytes == 0 || l.FreeCount < l.AllocCount, "%s: something is live and everything was freed: %+v",
		name, l)
	c.requested(name, l.RequestedAtPeak, l.PeakBytes)
	c.requested(name, l.RequestedLive, l.LiveBytes)
}

func (c *checker) requested(name string, r *report.Requested, bytes uint64) {
	c.require(r == nil || r.Bytes+r.RestBytes+r.UnknownBytes == bytes &&
		max(r.Bytes, r.RestBytes, r.UnknownBytes) <= bytes, "%s: the parts of %d bytes are %+v", name, bytes, r)
}

func (c *checker) devices(name string, all report.Level, list []report.Device, of func(*report.Device) report.Level) {
	var sum report.Level
	var live report.Requested
	for i := range list {
		l := of(&list[i])
		if r := l.RequestedLive; r != nil {
			live = report.Requested{Bytes: live.Bytes + r.Bytes, RestBytes: live.RestBytes + r.RestBytes,
				UnknownBytes: live.UnknownBytes + r.UnknownBytes}
		}
		c.level(fmt.Sprintf("%s, device %d", name, list[i].Index), l)
		c.require(l.PeakBytes <= all.PeakBytes, "%s: device %d peaks at %d, all at %d", name, list[i].Index,
			l.PeakBytes, all.PeakBytes)
		sum.PeakBytes += l.PeakBytes
		sum.LiveBytes += l.LiveBytes
		sum.AllocBytes += l.AllocBytes
		sum.AllocCount += l.AllocCount
		sum.FreeCount += l.FreeCount
		sum.FailedCount += l.FailedCount
	}
	c.require(sum.PeakBytes >= all.PeakBytes, "%s: the devices' peaks are %d together, that of all is %d", name,
		sum.PeakBytes, all.PeakBytes)
	sum.PeakBytes, sum.PeakTimeNS = all.PeakBytes, all.PeakTimeNS
	sum.PeakBytesLower, sum.LiveBytesLower = all.PeakBytesLower, all.LiveBytesLower
	c.require(all.RequestedLive == nil || live == *all.RequestedLive,
		"%s: requests of the devices add up to %+v, not to %+v", name, live, all.RequestedLive)
	sum.RequestedAtPeak, sum.RequestedLive = all.RequestedAtPeak, all.RequestedLive
	c.require(sum == all, "%s: the devices add up to %+v, not to %+v", name, sum, all)
}

func (c *checker) group(g *report.Group, l report.Level) {
	var sum report.Row
	keys := map[string]bool{}
	for _, r := range g.Rows {
		c.require(!keys[r.Key], "%s by %s: two rows are called %q", g.Level, g.By, r.Key)
		c.require(r.FreeCount <= r.AllocCount && r.LiveBytes <= r.AllocBytes && r.PeakBytes <= r.AllocBytes,
			"%s by %s: %+v", g.Level, g.By, r)
		keys[r.Key] = true
		sum.PeakBytes += r.PeakBytes
		sum.LiveBytes += r.LiveBytes
		sum.AllocCount += r.AllocCount
		sum.FreeCount += r.FreeCount
		sum.AllocBytes += r.AllocBytes
	}
	want := report.Row{PeakBytes: l.PeakBytes, LiveBytes: l.LiveBytes, AllocCount: l.AllocCount, FreeCount: l.FreeCount,
		AllocBytes: l.AllocBytes}
	c.require(sum == want, "%s by %s: the rows add up to %+v, not to %+v", g.Level, g.By, sum, want)
}

func (c *checker) ledger(what string, l *report.Ledger) {
	var sum uint64
	for _, r := range l.Rows {
		sum += r.Bytes
		var sites uint64
		for _, s := range r.Sites {
			sites += s.Bytes
		}
		c.require(sites <= r.Bytes, "%s by %s: the places of %q hold %d of its %d bytes", what, l.By, r.Key,
			sites, r.Bytes)
	}
	c.require(sum == l.WholeBytes, "%s by %s: the rows add up to %d, not to %d", what, l.By, sum, l.WholeBytes)
}

func (c *checker) lifetimes(name string, h report.LifetimeHist, l report.Level) {
	var count uint64
	for _, b := range h.Buckets {
		count += b.Count
	}
	c.require(count == h.FreedCount && h.FreedCount <= l.FreeCount && h.TemporaryCount <= h.FreedCount,
		"lifetimes of %s: %+v with %+v", name, h, l)
}

func (c *checker) sites(s *report.Sites) {
	if s == nil {
		return
	}
	var sum uint64
	for _, p := range s.Places {
		sum += p.Bytes
		c.require(p.StackBytes <= p.Bytes && p.Bytes <= p.AllocBytes, "place %q: %+v", p.Key, p)
	}
	c.require(sum == s.WholeBytes, "the places add up to %d, not to %d", sum, s.WholeBytes)
}

func (c *checker) categories(list []report.Categories) {
	for _, v := range list {
		var sum uint64
		for _, row := range v.Rows {
			sum += row.Bytes
		}
		c.require(sum == v.SumBytes && v.SumBytes == v.TrackedBytes+v.ExcessBytes,
			"categories by %s: rows %d, sum %d, tracked %d, excess %d", v.By, sum, v.SumBytes, v.TrackedBytes,
			v.ExcessBytes)
	}
}

func (c *checker) deviceLedgers(r *report.DeviceReport) {
	if r == nil {
		return
	}
	for _, d := range r.Devices {
		for _, l := range d.Ledgers {
			var sum int64
			for _, row := range l.Rows {
				sum += row.Bytes
			}
			c.require(uint64(sum) == l.Sample.UsedBytes, "device %d by %s: the rows add up to %d, the device said %d",
				d.Index, l.By, sum, l.Sample.UsedBytes)
		}
	}
}

func (c *checker) moment(s *report.Summary) {
	m := s.At
	if m == nil {
		return
	}
	c.require(m.Driver.LiveBytes <= s.Driver.PeakBytes && m.Framework.LiveBytes <= s.Framework.PeakBytes,
		"at %s more is live than at the peak: %+v", m.What, m)
	var driver, framework uint64
	for _, d := range m.Devices {
		driver, framework = driver+d.Driver.LiveBytes, framework+d.Framework.LiveBytes
	}
	c.require(driver == m.Driver.LiveBytes && framework == m.Framework.LiveBytes,
		"at %s the devices add up to %d and %d: %+v", m.What, driver, framework, m)
	for _, g := range m.Groups {
		var sum uint64
		for _, r := range g.Rows {
			sum += r.LiveBytes
		}
		want := map[string]uint64{"driver": m.Driver.LiveBytes, "framework": m.Framework.LiveBytes}[g.Level]
		c.require(sum == want, "at %s, %s by %s: the rows add up to %d, not to %d", m.What, g.Level, g.By, sum, want)
	}
}

func (c *checker) training(t *report.Training) {
	if t == nil {
		return
	}
	for _, i := range t.Iterations {
		for name, m := range map[string]*report.IterationMoment{"peak": &i.Peak, "forward": i.Forward,
			"backward": i.Backward, "optimizer": i.Optimizer} {
			if m == nil {
				continue
			}
			var sum uint64
			for _, bytes := range m.Held {
				sum += bytes
			}
			c.require(sum == m.Bytes && m.Bytes <= i.Peak.Bytes, "iteration %d, %s: %+v, categories add up to %d",
				i.Number, name, m, sum)
		}
	}
}

// external are figures from other sources, which are passed on unchanged: a device's samples and size, a
// framework's own counters, sizes of failed requests.
var external = map[string]bool{"Sample": true, "Samples": true, "Reported": true, "TotalBytes": true, "OOM": true,
	"Untrackable": true, "Parameters": true, "Health": true, "LostRecords": true,
	"OwnAccounts": true}

// wrapped checks every number of bytes.
func (c *checker) wrapped(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.wrapped(path, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.wrapped(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			c.wrapped(fmt.Sprintf("%s[%v]", path, key), v.MapIndex(key))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Type().Field(i).IsExported() && !external[name] {
				c.wrapped(path+"."+name, v.Field(i))
			}
		}
	case reflect.Uint64:
		if strings.Contains(path, "Bytes") || strings.Contains(path, "Count") {
			c.require(v.Uint() < most, "%s is %d", strings.TrimPrefix(path, "."), v.Uint())
		}
	}
}
