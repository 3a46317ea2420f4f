package render

import (
	"iter"
	"maps"
	"slices"
	"strconv"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

func heights(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, h := range s.Heights {
			for i, bytes := range h.PeakBytes {
				if !yield([]string{h.Level, layout.Seconds(h.FromNS + int64(i)*h.WidthNS),
					layout.Seconds(h.FromNS + int64(i+1)*h.WidthNS), layout.Number(bytes)}) {
					return
				}
			}
		}
	}
}

func lifetimes(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, level := range slices.Sorted(maps.Keys(s.Lifetimes)) {
			for _, b := range s.Lifetimes[level].Buckets {
				if !yield([]string{level, layout.Seconds(int64(b.BelowNS)), layout.Number(b.Count),
					layout.Number(b.Bytes)}) {
					return
				}
			}
		}
	}
}

func marks(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, m := range s.Marks {
			if !yield([]string{m.Name, layout.Number(m.Count), layout.Seconds(m.FirstTimeNS),
				layout.Seconds(m.LastTimeNS), layout.Number(m.DriverBytes), layout.Number(m.FrameworkBytes)}) {
				return
			}
		}
	}
}

func outOfMemory(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for i := range s.OOM.Events {
			e := &s.OOM.Events[i]
			if !yield([]string{layout.Seconds(e.TimeNS), layout.Number(e.Device), e.Outcome, e.Level,
				layout.Number(e.RequestedBytes), layout.Number(e.Attempts), layout.Number(e.AllocatedBytes),
				layout.Number(e.ReservedBytes),
				layout.Number(e.DriverBytes), layout.Number(e.TotalBytes), e.Site, e.Tag, e.Thread, e.Call}) {
				return
			}
		}
	}
}

func deviceLedgers(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		if s.DeviceLedger == nil {
			return
		}
		for _, d := range s.DeviceLedger.Devices {
			for _, l := range d.Ledgers {
				for _, r := range l.Rows {
					if !yield([]string{layout.Number(d.Index), l.By, l.Moment, layout.Seconds(l.Sample.TimeNS), r.Owner,
						r.Key, layout.Number(r.Bytes)}) {
						return
					}
				}
			}
		}
	}
}

func deviceSamples(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		if s.DeviceLedger == nil {
			return
		}
		for _, d := range s.DeviceLedger.Devices {
			for i := range d.Samples {
				p := &d.Samples[i]
				if !yield([]string{layout.Number(d.Index), layout.Seconds(p.TimeNS), p.Occasion,
					layout.Number(p.UsedBytes), layout.Number(p.OwnBytes), layout.Number(p.OthersBytes),
					layout.Number(p.KeptBytes), layout.Number(p.TrackedBytes),
					layout.Number(p.ContextBytes), layout.Number(p.RemainderBytes)}) {
					return
				}
			}
		}
	}
}

// iterations has columns for the categories that the rules have: what they held at the iteration's peak.
func iterations(s *report.Summary) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		t := s.Training
		if t == nil || len(t.Iterations) == 0 {
			return
		}
		header := []string{"iteration", "epoch", "ended", "start_seconds", "end_seconds", "peak_seconds", "peak_phase",
			"peak_bytes"}
		for _, category := range t.Categories {
			header = append(header, "peak_bytes: "+category)
		}
		if !yield(append(header, "reserved_peak_bytes", "end_bytes", "alloc_count", "free_count")) {
			return
		}
		for i := range t.Iterations {
			it := &t.Iterations[i]
			row := []string{layout.Number(it.Number), layout.Number(it.Epoch), strconv.FormatBool(it.Ended),
				layout.Seconds(it.StartNS), layout.Seconds(it.EndNS), layout.Seconds(it.Peak.TimeNS), it.Peak.Phase,
				layout.Number(it.Peak.Bytes)}
			for _, bytes := range it.Peak.Held {
				row = append(row, layout.Number(bytes))
			}
			var end uint64
			for _, bytes := range it.End {
				end += bytes
			}
			if !yield(append(row, layout.Number(it.ReservedPeakBytes), layout.Number(end), layout.Number(it.AllocCount),
				layout.Number(it.FreeCount))) {
				return
			}
		}
	}
}
