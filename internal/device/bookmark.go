package device

import (
	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// What of the devices stands in a bookmark beyond a keyframe: highest values, parts of maxima, samples.

// shares are those that are told of the driver's maximum.
func (d *deviceSizes) shares() []*heap.Share {
	return []*heap.Share{&d.rounding, &d.pages, &d.async, &d.pooled, &d.graphs}
}

// KeepRun keeps what Keep leaves out. The error is that of a sample that JSON cannot hold.
func (s *State) KeepRun(to *trace.State) error {
	holdings, sizes, samples := to.Table("run.holdings"), to.Table("run.sizes"), to.Table("run.samples")
	for i := range s.Holdings.Devices {
		d := &s.Holdings.Devices[i]
		d.Reserved.Keep(holdings)
		holdings.Put(uint64(len(d.ByLibrary)))
		for n := range d.ByLibrary {
			d.ByLibrary[n].Share.Keep(holdings)
		}
	}
	for i := range s.Sizes.Devices {
		d := &s.Sizes.Devices[i]
		d.requested.Keep(sizes)
		for _, share := range d.shares() {
			share.Keep(sizes)
		}
	}
	for i := range s.Samples.Devices {
		book := &s.Samples.Devices[i]
		samples.Put(book.Count, uint64(len(book.List)))
		for n := range book.List {
			if err := samples.PutJSON(&book.List[n]); err != nil {
				return err
			}
		}
	}
	return nil
}

// RestoreRun brings back what KeepRun kept, behind Restore.
func (s *State) RestoreRun(from *trace.State) {
	holdings, sizes, samples := from.Table("run.holdings"), from.Table("run.sizes"), from.Table("run.samples")
	for i := range s.Holdings.Devices {
		d := &s.Holdings.Devices[i]
		d.Reserved.Restore(holdings)
		if holdings.Next() != uint64(len(d.ByLibrary)) {
			holdings.Fail()
			return
		}
		for n := range d.ByLibrary {
			d.ByLibrary[n].Share.Restore(holdings)
		}
	}
	for i := range s.Sizes.Devices {
		d := &s.Sizes.Devices[i]
		d.requested.Restore(sizes)
		for _, share := range d.shares() {
			share.Restore(sizes)
		}
	}
	for slot := 0; samples.More() && slot < heap.MaxSlots; slot++ {
		book := heap.Slot(&s.Samples.Devices, slot)
		book.Count = samples.Next()
		for range min(samples.Next(), MaxSamples) {
			var v report.Sample
			samples.JSON(&v)
			book.List = append(book.List, v)
		}
	}
}

// KeepRun keeps what Keep leaves out.
func (w *Waiting) KeepRun(to *trace.State) {
	t := to.Table("run.waiting")
	for i := range w.devices {
		w.devices[i].Keep(t)
	}
}

// RestoreRun brings back what KeepRun kept, behind Restore.
func (w *Waiting) RestoreRun(from *trace.State) {
	t := from.Table("run.waiting")
	for i := range w.devices {
		w.devices[i].Restore(t)
	}
}
