package diff

import (
	"maps"

	"memtrace/analyzer/report"
)

// AtMoment returns a summary whose peaks are replaced by the live memory at the requested moment, so that moments are
// compared as peaks are. Fields known only for peaks are left out.
func AtMoment(s *report.Summary) *report.Summary {
	if s.At == nil {
		return s
	}
	v := *s
	v.Framework, v.Driver = s.Framework.At(s.At.Framework), s.Driver.At(s.At.Driver)
	v.Other = map[string]report.Level{}
	known := make(map[int16]report.MomentDevice)
	for _, d := range s.At.Devices {
		known[d.Index] = d
	}
	v.Devices = nil
	for _, d := range s.Devices {
		at := known[d.Index]
		d.Framework, d.Driver = d.Framework.At(at.Framework), d.Driver.At(at.Driver)
		d.ReservedBytesPeak, d.ReservedBytesPeakLower = at.ReservedBytes, nil
		v.Devices = append(v.Devices, d)
	}
	v.Groups = nil
	for _, g := range s.Groups {
		v.Groups = append(v.Groups, groupAt(g, s.At.Groups))
	}
	return &v
}

func groupAt(g report.Group, moments []report.MomentGroup) report.Group {
	held := make(map[string]report.MomentRow)
	for i := range moments {
		if m := &moments[i]; m.By == g.By && m.Level == g.Level {
			for _, row := range m.Rows {
				held[row.Key] = row
			}
		}
	}
	rows := make([]report.Row, 0, len(g.Rows))
	left := maps.Clone(held)
	for _, row := range g.Rows {
		row.PeakBytes, row.PeakBytesLower = held[row.Key].LiveBytes, held[row.Key].LiveBytesLower
		rows = append(rows, row)
		delete(left, row.Key)
	}
	for key, row := range left {
		rows = append(rows, report.Row{Key: key, Label: row.Label, PeakBytes: row.LiveBytes,
			PeakBytesLower: row.LiveBytesLower})
	}
	g.Rows = rows
	return g
}

// backwards reports that a difference of two moments goes from the later to the earlier one.
func (d *Diff) backwards() []string {
	if !d.SameRun || d.Base.Moment == "" || d.New.Moment == "" || d.Base.TimeNS <= d.New.TimeNS {
		return nil
	}
	return []string{"The moment " + d.Base.Moment + " is later than " + d.New.Moment +
		": what is new here was there before."}
}
