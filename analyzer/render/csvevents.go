package render

import (
	"iter"
	"maps"
	"slices"
	"strconv"

	"memtrace/analyzer/render/layout"
	"memtrace/analyzer/report"
)

func csvHeights(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, h := range s.Heights {
			for i, bytes := range h.PeakBytes {
				if !yield([]string{h.Level, layout.Seconds(int64(i) * h.WidthNS), layout.Seconds(int64(i+1) * h.WidthNS), number(bytes)}) {
					return
				}
			}
		}
	}
}

func csvLifetimes(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, level := range slices.Sorted(maps.Keys(s.Lifetimes)) {
			for _, b := range s.Lifetimes[level].Buckets {
				if !yield([]string{level, layout.Seconds(int64(b.BelowNS)), number(b.Count), number(b.Bytes)}) {
					return
				}
			}
		}
	}
}

func csvMarks(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, m := range s.Marks {
			if !yield([]string{m.Name, number(m.Count), layout.Seconds(m.FirstTimeNS), layout.Seconds(m.LastTimeNS), number(m.DriverBytes), number(m.FrameworkBytes)}) {
				return
			}
		}
	}
}

func csvOutOfMemory(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for i := range s.OOM.Events {
			e := &s.OOM.Events[i]
			if !yield([]string{layout.Seconds(e.TimeNS), number(e.Device), e.Outcome, e.Level, number(e.RequestedBytes), number(e.Attempts), number(e.AllocatedBytes), number(e.ReservedBytes),
				number(e.DriverBytes), number(e.TotalBytes), e.Site, e.Tag, e.Thread, e.Call}) {
				return
			}
		}
	}
}

func csvDeviceLedgers(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		if s.DeviceLedger == nil {
			return
		}
		for _, d := range s.DeviceLedger.Devices {
			for _, l := range d.Ledgers {
				for _, r := range l.Rows {
					if !yield([]string{number(d.Index), l.By, l.Moment, layout.Seconds(l.Sample.TimeNS), r.Owner, r.Key, number(r.Bytes)}) {
						return
					}
				}
			}
		}
	}
}

func csvDeviceSamples(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		if s.DeviceLedger == nil {
			return
		}
		for _, d := range s.DeviceLedger.Devices {
			for i := range d.Samples {
				p := &d.Samples[i]
				if !yield([]string{number(d.Index), layout.Seconds(p.TimeNS), p.Occasion, number(p.UsedBytes), number(p.OwnBytes), number(p.OthersBytes), number(p.KeptBytes), number(p.TrackedBytes),
					number(p.ContextBytes), number(p.RemainderBytes)}) {
					return
				}
			}
		}
	}
}

// csvIterations has columns for the categories that the rules have: what they held at the iteration's peak.
func csvIterations(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		t := s.Training
		if t == nil || len(t.Iterations) == 0 {
			return
		}
		header := []string{"iteration", "epoch", "ended", "start_seconds", "end_seconds", "peak_seconds", "peak_phase", "peak_bytes"}
		for _, category := range t.Categories {
			header = append(header, "peak_bytes: "+category)
		}
		if !yield(append(header, "reserved_peak_bytes", "end_bytes", "alloc_count", "free_count")) {
			return
		}
		for i := range t.Iterations {
			it := &t.Iterations[i]
			row := []string{number(it.Number), number(it.Epoch), strconv.FormatBool(it.Ended), layout.Seconds(it.StartNS), layout.Seconds(it.EndNS), layout.Seconds(it.Peak.TimeNS), it.Peak.Phase, number(it.Peak.Bytes)}
			for _, bytes := range it.Peak.Held {
				row = append(row, number(bytes))
			}
			var end uint64
			for _, bytes := range it.End {
				end += bytes
			}
			if !yield(append(row, number(it.ReservedPeakBytes), number(end), number(it.AllocCount), number(it.FreeCount))) {
				return
			}
		}
	}
}
