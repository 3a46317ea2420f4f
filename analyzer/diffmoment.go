package analyzer

import "maps"

// atMoment returns a summary whose peaks are what was live at the moment that it was asked for, so that moments are compared as peaks are. What is only known of peaks is left out.
func atMoment(s *Summary) *Summary {
	if s.At == nil {
		return s
	}
	v := *s
	v.Framework, v.Driver = s.Framework.at(s.At.Framework), s.Driver.at(s.At.Driver)
	v.Other = map[string]Level{}
	known := make(map[int16]MomentDevice)
	for _, d := range s.At.Devices {
		known[d.Index] = d
	}
	v.Devices = nil
	for _, d := range s.Devices {
		at := known[d.Index]
		d.Framework, d.Driver = d.Framework.at(at.Framework), d.Driver.at(at.Driver)
		d.ReservedBytesPeak, d.ReservedBytesPeakLower = at.ReservedBytes, nil
		v.Devices = append(v.Devices, d)
	}
	v.Groups = nil
	for _, g := range s.Groups {
		v.Groups = append(v.Groups, groupAt(g, s.At.Groups))
	}
	return &v
}

// at is a level whose peak is what was live at a moment.
func (l Level) at(m MomentLevel) Level {
	l.PeakBytes, l.PeakBytesLower = m.LiveBytes, m.LiveBytesLower
	return l
}

func groupAt(g Group, moments []MomentGroup) Group {
	held := make(map[string]MomentRow)
	for i := range moments {
		if m := &moments[i]; m.By == g.By && m.Level == g.Level {
			for _, row := range m.Rows {
				held[row.Key] = row
			}
		}
	}
	rows := make([]Row, 0, len(g.Rows))
	left := maps.Clone(held)
	for _, row := range g.Rows {
		row.PeakBytes, row.PeakBytesLower = held[row.Key].LiveBytes, held[row.Key].LiveBytesLower
		rows = append(rows, row)
		delete(left, row.Key)
	}
	for key, row := range left {
		rows = append(rows, Row{Key: key, Label: row.Label, PeakBytes: row.LiveBytes, PeakBytesLower: row.LiveBytesLower})
	}
	g.Rows = rows
	return g
}
