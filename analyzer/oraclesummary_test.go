package analyzer

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
)

// finish turns what the oracle saw into the summary that is expected.
func (o *oracle) finish() *report.Summary {
	s := o.s
	s.Health.UnmatchedFrees = uint64(len(o.lateFree))
	main := heap.AccountDriver
	var levels []heap.Account
	if !s.Framework.Empty() {
		main = heap.AccountFramework
		levels = append(levels, heap.AccountFramework)
	}
	if !s.Driver.Empty() {
		levels = append(levels, heap.AccountDriver)
	}
	o.finishDevices()
	for _, by := range o.by {
		for _, a := range levels {
			s.Groups = append(s.Groups, o.group(by, a))
		}
	}
	for _, a := range levels {
		s.Lifetimes[a.String()] = o.lifetimes(a)
	}
	state, label := o.peaks[main.String()], "peak"
	switch at := o.opts.At; {
	case at.Kind == moment.Exit:
		state = o.now(o.last)
	case at.Kind == moment.Time && o.at == nil:
		state = o.now(at.Time)
	case o.at != nil:
		state = *o.at
	}
	if !o.opts.At.IsZero() {
		label = o.opts.At.String()
		s.At = o.moment(state, label, main)
	}
	for _, by := range o.by {
		s.Ledgers = append(s.Ledgers, o.ledger(state, label, by, main))
	}
	return s
}

// fromDriver says whether reserved bytes can be read off the driver's events.
func (o *oracle) fromDriver() bool {
	held := false
	for index := range o.deviceOf {
		held = held || o.lib != "" && o.holdPeak[fmt.Sprint(o.lib, index)] > 0
	}
	return held
}

func (o *oracle) finishDevices() {
	s := o.s
	counted := false
	for _, d := range o.deviceOf {
		counted = counted || d.Reported != nil
	}
	switch {
	case o.fromDriver():
		s.Health.ReservedFrom = "driver"
	case counted:
		s.Health.ReservedFrom = "reports"
	}
	for _, index := range []int16{-1, 0, 1} {
		d := o.device(index)
		if len(o.opts.Devices) > 0 && !slices.Contains(o.opts.Devices, index) || index < 0 && d.Driver.Empty() &&
			d.Framework.Empty() {
			continue
		}
		switch s.Health.ReservedFrom {
		case "driver":
			d.ReservedBytesCurrent, d.ReservedBytesPeak = o.heldBy(o.live, o.lib, index),
				o.holdPeak[fmt.Sprint(o.lib, index)]
		case "reports":
			if d.Reported != nil {
				d.ReservedBytesCurrent, d.ReservedBytesPeak = d.Reported.ReservedBytes, d.Reported.ReservedBytesPeak
			}
		}
		s.Devices = append(s.Devices, *d)
	}
}

func (o *oracle) group(by string, a heap.Account) report.Group {
	g := report.Group{By: by, Level: a.String(), Device: "all", Rows: []report.Row{}}
	if len(o.opts.Devices) > 0 {
		g.Device = strings.Trim(strings.Join(strings.Fields(fmt.Sprint(o.opts.Devices)), ","), "[]")
	}
	for name, row := range o.rows {
		if !strings.HasPrefix(name, a.String()+"|"+by+"|") {
			continue
		}
		mine := func(b *oracleBlock) bool { return b.visible && b.account == a && o.key(b.e, by) == row.Key }
		row.PeakBytes = sum(o.peaks[a.String()].blocks, mine)
		row.LiveBytes = sum(o.live, mine)
		g.Rows = append(g.Rows, *row)
	}
	sort.Slice(g.Rows, func(i, j int) bool {
		a, b := g.Rows[i], g.Rows[j]
		return fmt.Sprintf("%020d %020d %020d", a.PeakBytes, a.LiveBytes, a.AllocBytes) >
			fmt.Sprintf("%020d %020d %020d", b.PeakBytes, b.LiveBytes, b.AllocBytes) ||
			a.PeakBytes == b.PeakBytes && a.LiveBytes == b.LiveBytes && a.AllocBytes == b.AllocBytes && a.Key < b.Key
	})
	return g
}

func (o *oracle) lifetimes(a heap.Account) report.LifetimeHist {
	h := o.s.Lifetimes[a.String()]
	h.Buckets = []report.LifetimeBucket{}
	var digits []int
	for d := range o.hist[a] {
		digits = append(digits, d)
	}
	sort.Ints(digits)
	for i, d := range digits {
		for gap := d; i > 0 && gap > digits[i-1]+1; gap-- {
			h.Buckets = append(h.Buckets, report.LifetimeBucket{BelowNS: uint64(math.Pow10(digits[i-1] + d - gap + 1))})
		}
		h.Buckets = append(h.Buckets, *o.hist[a][d])
	}
	return h
}

// shown returns what a state holds of an account, by key, most first.
func (o *oracle) shown(st oracleState, by string, a heap.Account) []report.MomentRow {
	sums := map[string]uint64{}
	for _, b := range st.blocks {
		if b.visible && b.account == a {
			sums[o.key(b.e, by)] += b.e.Size
		}
	}
	rows := []report.MomentRow{}
	for key, bytes := range sums {
		if bytes > 0 {
			rows = append(rows, report.MomentRow{Key: key, Label: o.label(by, key), LiveBytes: bytes})
		}
	}
	sort.Slice(rows, func(i, j int) bool {
		return rows[i].LiveBytes > rows[j].LiveBytes || rows[i].LiveBytes == rows[j].LiveBytes &&
			rows[i].Key < rows[j].Key
	})
	return rows
}

func (o *oracle) reservedAt(st oracleState, index int16) uint64 {
	if o.s.Health.ReservedFrom == "driver" {
		return o.heldBy(st.blocks, o.lib, index)
	}
	return st.reported[index]
}

func (o *oracle) ledger(st oracleState, label, by string, main heap.Account) report.Ledger {
	l := report.Ledger{By: by, Level: main.String(), Moment: label, TimeNS: st.time, Rows: []report.LedgerRow{}}
	for _, r := range o.shown(st, by, main) {
		l.Rows = append(l.Rows, report.LedgerRow{Owner: report.OwnerBlocks, Key: r.Key, Label: r.Label,
			Bytes: r.LiveBytes})
	}
	narrowed := o.opts.Tag != "" || o.opts.Library != "" || o.opts.Focus != nil || o.opts.Ignore != nil
	if main == heap.AccountFramework && !narrowed {
		o.beyond(&l, st)
	}
	for _, r := range l.Rows {
		l.WholeBytes += r.Bytes
	}
	return l
}

// beyond adds the slack and what the framework does not hold.
func (o *oracle) beyond(l *report.Ledger, st oracleState) {
	var reserved uint64
	sums := map[string]uint64{}
	for index := range o.deviceOf {
		if len(o.opts.Devices) > 0 && !slices.Contains(o.opts.Devices, index) {
			continue
		}
		reserved += o.reservedAt(st, index)
		for _, b := range st.blocks {
			if b.account == heap.AccountDriver && b.e.Device == index {
				sums[o.library(b.e)] += b.e.Size
			}
		}
	}
	allocated := sum(st.blocks, func(b *oracleBlock) bool { return b.visible && b.account == heap.AccountFramework })
	if o.s.Health.ReservedFrom != "" {
		l.SlackBytes = int64(reserved) - int64(allocated)
	}
	if l.SlackBytes > 0 {
		l.Rows = append(l.Rows, report.LedgerRow{Owner: report.OwnerSlack, Key: "slack", Bytes: uint64(l.SlackBytes)})
	}
	if o.s.Health.ReservedFrom != "driver" {
		driver := sum(st.blocks, func(b *oracleBlock) bool { return b.visible && b.account == heap.AccountDriver })
		if driver > reserved {
			l.Rows = append(l.Rows, report.LedgerRow{Owner: report.OwnerOutside, Key: "(unknown)",
				Bytes: driver - reserved})
		}
		return
	}
	delete(sums, o.lib)
	var rows []report.LedgerRow
	for lib, bytes := range sums {
		if bytes > 0 {
			rows = append(rows, report.LedgerRow{Owner: report.OwnerOutside, Key: lib, Bytes: bytes})
		}
	}
	sort.Slice(rows, func(i, j int) bool {
		return rows[i].Bytes > rows[j].Bytes || rows[i].Bytes == rows[j].Bytes && rows[i].Key < rows[j].Key
	})
	l.Rows = append(l.Rows, rows...)
}

func (o *oracle) moment(st oracleState, label string, main heap.Account) *report.Moment {
	on := func(a heap.Account, keep func(int16) bool) report.MomentLevel {
		if o.opts.At.Kind == moment.Peak && main == heap.AccountDriver && a != main {
			return report.MomentLevel{}
		}
		return report.MomentLevel{LiveBytes: sum(st.blocks, func(b *oracleBlock) bool {
			return b.visible && b.account == a && keep(b.e.Device)
		})}
	}
	all := func(int16) bool { return true }
	m := &report.Moment{What: label, TimeNS: st.time, Driver: on(heap.AccountDriver, all),
		Framework: on(heap.AccountFramework, all), Devices: []report.MomentDevice{},
		Groups: []report.MomentGroup{}}
	for _, d := range o.s.Devices {
		one := func(index int16) bool { return index == d.Index }
		v := report.MomentDevice{Index: d.Index, Driver: on(heap.AccountDriver, one),
			Framework: on(heap.AccountFramework, one)}
		if o.opts.At.Kind != moment.Peak || main == heap.AccountFramework {
			v.ReservedBytes = o.reservedAt(st, d.Index)
		}
		m.Devices = append(m.Devices, v)
	}
	for _, by := range o.by {
		for _, a := range []heap.Account{heap.AccountFramework, heap.AccountDriver} {
			if (o.opts.At.Kind != moment.Peak || a == main) && o.levels(a, 0)[0].AllocCount > 0 {
				m.Groups = append(m.Groups, report.MomentGroup{By: by, Level: a.String(), Rows: o.shown(st, by, a)})
			}
		}
	}
	return m
}
