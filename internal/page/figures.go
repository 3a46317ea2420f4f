package page

import (
	"io"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// figure is one of the few at the top of the page.
type figure struct {
	Name, Value, Note string
	Alarm             bool
}

// figures are the peak, what the framework's allocator reserved, how much of a device that is, and growth.
func figures(s *report.Summary) (list []figure) {
	main := s.Main()
	if main.PeakBytes == 0 {
		return nil
	}
	marked := layout.NewPage(io.Discard, layout.Options{}).Marked
	list = append(list, figure{Name: "peak", Value: marked(main.PeakBytesLower, main.PeakBytes, s.Bounds),
		Note: "of " + layout.LevelName(s) + ", at " + layout.Moment(main.PeakTimeNS)})
	var most, fullest *report.Device
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.ReservedBytesPeak > 0 && (most == nil || d.ReservedBytesPeak > most.ReservedBytesPeak) {
			most = d
		}
		if d.TotalBytes > 0 && d.Driver.PeakBytes > 0 && (fullest == nil || shareOf(d) > shareOf(fullest)) {
			fullest = d
		}
	}
	if most != nil {
		list = append(list, figure{Name: "reserved",
			Value: marked(most.ReservedBytesPeakLower, most.ReservedBytesPeak, s.Bounds),
			Note:  "by " + layout.FrameworkName(s.Versions) + " on " + layout.DeviceName(most.Index)})
	}
	if fullest != nil {
		list = append(list, figure{Name: "share of the device",
			Value: sharePercent(fullest),
			Note:  layout.Bytes(fullest.TotalBytes) + " on " + layout.DeviceName(fullest.Index)})
	}
	return append(list, growthFigure(s))
}

// sharePercent is how much of a device was in use, which is not nothing.
func sharePercent(d *report.Device) string {
	if d.Driver.PeakBytes < d.TotalBytes/1000 {
		return "< 0.1%"
	}
	return layout.PercentOf(d.Driver.PeakBytes, d.TotalBytes)
}

func shareOf(d *report.Device) float64 { return float64(d.Driver.PeakBytes) / float64(d.TotalBytes) }

func growthFigure(s *report.Summary) figure {
	switch f := (figure{Name: "growth", Value: "none"}); s.GrowthKind() {
	case report.GrowthSteady:
		t := s.Growing()[0]
		f.Value, f.Alarm = layout.GrowthRate(t), true
		f.Note = layout.Bytes(t.Bytes) + " since " + layout.Moment(t.FromTimeNS)
		return f
	case report.GrowthUnknown:
		f.Value, f.Note = "not known", "too little to judge by"
		return f
	default:
		if little := s.GrowingLittle(); len(little) > 0 {
			f.Note = "of more than " + layout.Bytes(little[0].FloorBytes)
		}
		return f
	}
}

// shownHeights are those of an interval.
func shownHeights(h *report.Heights, from, to int64) []uint64 {
	first := min(max((from-h.FromNS)/max(h.WidthNS, 1), 0), int64(len(h.PeakBytes)-1))
	behind := min(max((to-h.FromNS)/max(h.WidthNS, 1)+1, first+1), int64(len(h.PeakBytes)))
	return h.PeakBytes[first:behind]
}
