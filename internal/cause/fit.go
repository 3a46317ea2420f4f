package cause

import (
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/rules"
)

// scaling are the categories whose bytes grow with the batch, in every phase and in passes only: what an optimizer
// makes for itself meanwhile does not.
var (
	scaling       = []string{"Feature maps", "Recomputed feature maps", "Input data"}
	scalingPasses = []string{"Intermediate gradients", "Temporary"}
)

// Fit says how much larger a batch the device has room for.
type Fit struct {
	Device  int16
	Fixed   uint64 // bytes of blocks at the moment that decides which stay as they are
	Scaling uint64 // bytes of blocks then that grow with the batch
	// the largest batch that fits, as a multiple of this run's, if the allocator leaves as large a part idle as in this
	// run, or leastIdle
	Factor float64
	Most   float64 // the same if it leaves nothing idle
}

// leastIdle is the least part that is reckoned to be idle of what blocks have: segments are filled by chance, and with
// other sizes of blocks otherwise than in this run.
const leastIdle = 0.1

// fitMoment is a moment of an iteration, divided by what a larger batch changes.
type fitMoment struct{ fixed, scaling uint64 }

// FitOf finds the largest batch that fits a program that trains on one device; nil where that is not known, as without
// names and iterations, or where memory ran out.
func FitOf(s *report.Summary) *Fit {
	t := s.Training
	d := trainedDevice(s)
	if t == nil || d == nil || s.OOM.Count > 0 || s.Bounds != nil || s.Window != nil || !s.Trains() {
		return nil
	}
	moments := fitMoments(t)
	if len(moments) == 0 {
		return nil
	}
	room := float64(d.TotalBytes) - float64(beside(s, d))
	cached := max(float64(d.ReservedBytesPeak)/float64(max(d.Framework.PeakBytes, 1)), 1+leastIdle)
	fit := &Fit{Device: d.Index}
	for _, m := range moments {
		if m.scaling == 0 {
			continue
		}
		if factor := (room/cached - float64(m.fixed)) / float64(m.scaling); fit.Scaling == 0 || factor < fit.Factor {
			most := (room - float64(m.fixed)) / float64(m.scaling)
			fit.Fixed, fit.Scaling, fit.Factor, fit.Most = m.fixed, m.scaling, factor, most
		}
	}
	if fit.Scaling == 0 || fit.Factor < 1 {
		return nil
	}
	return fit
}

// trainedDevice is the only device that the framework used, if its size is known.
func trainedDevice(s *report.Summary) (only *report.Device) {
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Framework.Empty() && d.Driver.Empty() {
			continue
		}
		if only != nil {
			return nil
		}
		only = d
	}
	if only == nil || only.Framework.Empty() || only.TotalBytes == 0 {
		return nil
	}
	return only
}

// beside is what is in use of a device and is not the framework's: contexts, other processes, other libraries.
func beside(s *report.Summary, d *report.Device) (bytes uint64) {
	if outside := d.Driver.PeakBytes; outside > d.ReservedBytesPeak {
		bytes = outside - d.ReservedBytesPeak
	}
	for device, l := range s.DeviceLedger.Highest() {
		if device == d.Index {
			return bytes + l.Sample.ContextBytes + l.Sample.OthersBytes + uint64(max(l.Sample.RemainderBytes, 0))
		}
	}
	return bytes
}

// fitMoments are the highest moments of each phase of the iterations that ended, but for the first one, in which
// optimizers make their state. None where of much it is not known whether it grows with the batch.
func fitMoments(t *report.Training) (list []fitMoment) {
	if t.IterationsBy == report.IterationsByNothing || t.IterationsBy == report.IterationsByPeriod {
		return nil
	}
	ended := 0
	for i := range t.Iterations {
		it := &t.Iterations[i]
		if !it.Ended || t.IsBefore(i) {
			continue
		}
		if len(it.Stayed) != len(t.Categories) {
			return nil
		}
		if ended++; ended == 1 {
			continue
		}
		for _, m := range []*report.IterationMoment{&it.Peak, it.Forward, it.Backward, it.Optimizer} {
			if m == nil {
				continue
			}
			part, unknown := divided(t, m, it.Stayed)
			if unknown > m.Bytes/10 {
				return nil
			}
			list = append(list, part)
		}
	}
	return list
}

// divided says what of a moment grows with the batch, and what of it nobody knows. Of the categories that do, that is
// what stayed in the iteration from before it: a queue of batches, a cache, a leak, all the data. What no rule is for
// grows with the batch if it came in the passes of the iteration, and went with it or with a later one.
func divided(t *report.Training, m *report.IterationMoment, stayed []uint64) (part fitMoment, unknown uint64) {
	for i, bytes := range m.Held {
		switch category := t.Categories[i]; {
		case slices.Contains(scaling, category), m.Phase != "optimizer" && slices.Contains(scalingPasses, category):
			part.scaling, unknown = part.scaling+bytes, unknown+min(bytes, stayed[i])
		case category == rules.Others:
			stays := bytes
			if m.Phase != "optimizer" {
				stays = min(bytes, stayed[i])
			}
			part.fixed, part.scaling, unknown = part.fixed+stays, part.scaling+bytes-stays, unknown+bytes
		default:
			part.fixed += bytes
		}
	}
	return part, unknown
}
